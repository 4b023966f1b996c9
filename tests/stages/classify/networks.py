"""Small networks for the tests of classifiers."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import numpy as np

from stages.classify.classifier_description import ClassifierDescription
from stages.classify.training.run_records import AccuracyScore
from stages.classify.training.training_parameters import InputKind
from stages.record.origin import Origin

SIDE, DIMENSION = 8, 6
BACKBONE = Origin("ab" * 32, "pad", SIDE, DIMENSION, "small at 8 px")


def score() -> AccuracyScore:
    """Any score."""
    found = AccuracyScore.counted(9, 10)
    assert found is not None
    return found


def described(labels: Sequence[str] = ("ape", "cat", "dog"), takes: InputKind = "vectors") -> ClassifierDescription:
    """The description of `network`."""
    return ClassifierDescription("linear", tuple(labels), takes, BACKBONE, score(), None)


def network(seed: int = 0, labels: int = 3, takes: InputKind = "vectors") -> keras.Model:
    """A network with random weights that are always the same."""
    shape = (DIMENSION,) if takes == "vectors" else (SIDE, SIDE, 3)
    taken = keras.Input(shape, name="taken")
    x = taken if takes == "vectors" else keras.layers.GlobalAveragePooling2D(name="mean")(taken)
    given = keras.layers.Dense(labels, activation="softmax", name="probabilities")(x)
    model = keras.Model(taken, given, name="classifier")
    lot = np.random.default_rng(seed)
    model.set_weights([lot.normal(size=each.shape).astype(np.float32) for each in model.get_weights()])
    return model
