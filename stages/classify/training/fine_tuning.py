"""Fine-tuning: a head and the whole backbone, or its last layers, trained together on pixels.

It begins with a head that `heads` has trained on vectors: one with random weights would first spoil the backbone's.
An attempt that goes on from a checkpoint gives the same bytes, on one device, as one that was never interrupted; on
several GPUs results are equal in accuracy alone. TensorFlow only.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import keras
import numpy as np
import PIL
import tensorflow as tf

from stages.backbone import devices
from stages.backbone.backbone_file import check
from stages.backbone.backbone_spec import BackboneSpec, read_models
from stages.backbone.backbones import load_checked
from stages.classify.training import heads, joint_network, trainer
from stages.classify.training.checkpoint_store import CheckpointStore
from stages.classify.training.dataset import Dataset, DatasetRows
from stages.classify.training.run_records import TrainingFailure, backbone_data
from stages.classify.training.trainer import Trainer
from stages.classify.training.training_loop import TrainingLoop
from stages.classify.training.training_parameters import FineTuneParameters, TrainingParameters
from stages.classify.training.validation import TrainingResult
from stages.datum.contract import spool
from stages.datum.stage_version import STAGE
from stages.files.bucket import BadUrl


def train(
    dataset: Dataset,
    parameters: TrainingParameters,
    tune: FineTuneParameters,
    models: Path,
    environment: Mapping[str, str],
) -> TrainingResult:
    """Fine-tunes a network for each fold and one on all training pictures.

    models: the directory of backbone.keras and backbone.json, which may be pipes. Raises Failure for a training that
    diverges, for a backbone that is not that of the vectors, and for a bad URL of checkpoints; StageError for damaged
    files, and for a bucket that cannot be used.
    """
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        file, spec = _backbone(models, Path(scratch), dataset)
        names = trainer.devices()
        with _kept(dataset, parameters, tune, names, environment) as keeping:
            build = partial(_network, file, spec, dataset, parameters, tune)
            tuned = Trainer(build, tune, parameters.label_smoothing, names)
            start = tuned.state()
            # Made only if a training begins: one that goes on needs none.
            fitting = cache(lambda: heads.fitting(dataset, parameters))

            def begin(number: int, rows: DatasetRows) -> None:
                tuned.restore(start)
                joint_network.take(tuned.network, fitting()(rows, number))

            return TrainingLoop(dataset, parameters, tune, tuned, begin, keeping).run()


def fingerprint(
    dataset: Dataset, parameters: TrainingParameters, names: list[str], environment: Mapping[str, str]
) -> str:
    """64 hex digits that stand for all that determines a result: the pictures and labels, the parameters, the backbone,
    the kind and number of devices, and the versions of the code. names: of devices.

    The place of checkpoints and their number are not part of it, since they change no result.
    """
    digest = hashlib.sha256()
    tune = parameters.fine_tune and replace(parameters.fine_tune, checkpoints="", checkpoint_steps=0)
    facts = {
        "parameters": replace(parameters, name="", fine_tune=tune).as_data(),
        "backbone": backbone_data(dataset.origin),
        "devices": [devices.kind(), len(names)],
        "versions": [tf.__version__, keras.__version__, np.__version__, PIL.__version__, environment.get(STAGE, "")],
        "labels": list(dataset.labels),
        "share": dataset.share,
    }
    digest.update(json.dumps(facts, sort_keys=True).encode())
    for row, id in enumerate(dataset.ids):
        thumbnail = hashlib.sha256(dataset.thumbnails[row]).hexdigest()
        digest.update(f"{id} {dataset.codes[row]} {dataset.held_out[row]} {thumbnail}\n".encode())
    digest.update(np.ascontiguousarray(dataset.vectors).tobytes())
    return digest.hexdigest()


def _backbone(models: Path, scratch: Path, dataset: Dataset) -> tuple[Path, BackboneSpec]:
    file, spec = read_models(models)
    if spec.sha256 != dataset.origin.model:
        raise TrainingFailure(
            f"the repo models holds {spec.described} ({spec.sha256[:16]}), but the vectors of the labelled pictures "
            f"come from {dataset.origin.backbone} ({dataset.origin.model[:16]}): push that model again, or let "
            "features and labelled compute the vectors of the other one, with lookalike deploy"
        )
    file = spool(file, scratch)
    check(file, spec)
    return file, spec


@contextmanager
def _kept(
    dataset: Dataset,
    parameters: TrainingParameters,
    tune: FineTuneParameters,
    names: list[str],
    environment: Mapping[str, str],
) -> Iterator[CheckpointStore | None]:
    """The place of the states of a training, None without one; they are removed when it has ended, well or not."""
    if not tune.checkpoints:
        yield None
        return
    try:
        found = CheckpointStore(tune.checkpoints, parameters.name, fingerprint(dataset, parameters, names, environment))
    except BadUrl as error:
        raise TrainingFailure(f"fine_tune.checkpoints: {error}") from error
    try:
        yield found
    except TrainingFailure:
        found.delete()
        raise
    found.delete()


def _network(
    file: Path, spec: BackboneSpec, dataset: Dataset, parameters: TrainingParameters, tune: FineTuneParameters
) -> keras.Model:
    """The network of the backbone and a head, with the layers to train. Raises Failure if it cannot be trained."""
    backbone = load_checked(file, spec)
    if (fixed := backbone.inputs[0].shape[0]) is not None:
        raise TrainingFailure(
            f"the backbone {spec.name} takes batches of exactly {fixed} pictures, and fine-tuning needs one that takes "
            "any number: build it with an input without a fixed batch"
        )
    trained, of = joint_network.train_last(backbone, tune.layers)
    print(f"trains {trained} of {of} layers of {spec.described} that have weights, and the head")
    return joint_network.joined(backbone, spec.dimension, heads.layers(parameters, len(dataset.labels)))
