"""Small classifiers as the stage select writes them: real networks with made weights, and their descriptions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stages.classify import classifier_description
from stages.classify.classifier_description import ClassifierDescription
from stages.classify.training.run_records import MODEL, AccuracyScore
from stages.record.origin import Origin
from stages.serving.follow.promoted_model import ModelCommits, PromotedModel

if TYPE_CHECKING:  # TensorFlow takes seconds
    from stages.backbone.backbone_spec import BackboneSpec
    from stages.backbone.embedder import Embedder

LABELS = ("bird", "car", "cat", "dog", "ship")


def backbone(spec: BackboneSpec) -> Origin:
    """A backbone as a classifier names it."""
    return Origin(spec.sha256, "pad", spec.image_size, spec.dimension, spec.described)


def write(
    directory: Path,
    of: Origin,
    seed: int = 0,
    labels: Sequence[str] = LABELS,
    takes: str = "vectors",
    run: str = "",
) -> Path:
    """The directory, now with the files of a classifier whose weights the seed gives."""
    import keras  # noqa: PLC0415

    from stages.backbone.backbones import save_keras  # noqa: PLC0415

    directory.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    if takes == "vectors":
        given = keras.Input((of.dimension,), name="vector")
        inner, width = given, of.dimension
    else:
        given = keras.Input((of.image_size, of.image_size, 3), dtype="uint8", name="picture")
        scaled = keras.layers.Rescaling(1 / 255, name="scaled")(given)
        small = keras.layers.AveragePooling2D(of.image_size // 4, name="small")(scaled)
        inner, width = keras.layers.Flatten(name="flat")(small), 48
    dense = keras.layers.Dense(len(labels), activation="softmax", name="probabilities")
    model = keras.Model(given, dense(inner), name="classifier")
    dense.set_weights([random.normal(size=(width, len(labels))), random.normal(size=len(labels))])
    save_keras(model, directory / MODEL)
    described = ClassifierDescription(
        run or f"run-{seed}",
        tuple(labels),
        "vectors" if takes == "vectors" else "pictures",
        of,
        AccuracyScore(90, 100, 0.9, 0.825634, 0.944772),
        AccuracyScore(17, 20, 0.85, 0.639588, 0.947642),
    )
    (directory / classifier_description.FILE).write_bytes(classifier_description.format_description(described))
    return directory


def promoted(
    directory: Path, of: Embedder, commit: str = "5" * 32, seed: int = 0, takes: str = "vectors"
) -> PromotedModel:
    """A promoted classifier of an embedder's vectors, or of its pictures."""
    from stages.classify import classifier  # noqa: PLC0415

    found = classifier.open(write(directory, backbone(of.spec), seed, takes=takes))
    commits = ModelCommits("default", commit, "6" * 32, "7" * 32, "8" * 32, "2" * 32, "3" * 32)
    return PromotedModel(commits, found, f"{seed:064x}", of if takes == "vectors" else None, "cpu")
