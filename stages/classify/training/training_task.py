"""The part of the stage train that computes: a dataset and parameters in, the record and the files of a run out.

Imports TensorFlow, so `stages.train` imports it only for datums without a flaw in what they are given.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import keras

from stages.backbone import devices
from stages.backbone.backbones import save_keras
from stages.classify.training import convolutional, fine_tuning, heads
from stages.classify.training.dataset import Dataset
from stages.classify.training.run_records import MODEL, PREDICTIONS, TrainingRun
from stages.classify.training.training_parameters import TrainingParameters
from stages.classify.training.validation import judge


def train(
    dataset: Dataset, parameters: TrainingParameters, models: Path, environment: Mapping[str, str], out: Path
) -> TrainingRun:
    """Trains, and writes model.keras and predictions.parquet into the directory `out`, which it makes.

    models: the directory of the backbone's files, which may be pipes; it is read for fine-tuning alone. Raises Failure
    for a training that cannot succeed; then nothing is written.
    """
    print(devices.prepare(environment))
    if parameters.fine_tune is not None:
        trained = fine_tuning.train(dataset, parameters, parameters.fine_tune, models, environment)
    elif parameters.convolutional is not None:
        trained = convolutional.train(dataset, parameters, parameters.convolutional)
    else:
        trained = heads.train(dataset, parameters)
    judged = judge(dataset, trained)
    out.mkdir(parents=True, exist_ok=True)
    save_keras(with_probabilities(trained.network, judged.temperature), out / MODEL)
    judged.predictions.write(out / PREDICTIONS)
    return replace(
        dataset.run(parameters),
        cross_validation=judged.cross_validation,
        held_out=judged.held_out,
        temperature=judged.temperature,
        ece=judged.ece,
        curves=trained.curves,
        weights=trained.weights,
        device=devices.kind(),
        notes=trained.notes,
    )


def with_probabilities(network: keras.Model, temperature: float) -> keras.Model:
    """The network, which gives logits (batch, L), with probabilities (batch, L) of the logits over the temperature
    as its last layers."""
    divided = keras.layers.Rescaling(1 / temperature, name="temperature", dtype="float32")(network.outputs[0])
    given = keras.layers.Softmax(name="probabilities", dtype="float32")(divided)
    return keras.Model(network.inputs[0], given, name="classifier")
