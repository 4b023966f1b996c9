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
from functools import cache
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
from stages.classify.training.run_records import CURVES, TrainingFailure, backbone_data
from stages.classify.training.trainer import Trainer, TrainerSettings
from stages.classify.training.training_loop import TrainingLoop, TrainingPictures
from stages.classify.training.training_parameters import FineTuneParameters, TrainingParameters
from stages.classify.training.training_pixels import LARGEST
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
            return _trained(dataset, parameters, tune, file, spec, names, keeping)


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


def notes(dataset: Dataset) -> list[str]:
    """What people should know about fine-tuning on these pictures, in sentences."""
    size = dataset.origin.image_size
    if size <= LARGEST:
        return []
    return [
        f"The network takes pictures of {size} px, but was trained on scaled-up thumbnails of {LARGEST} px at most; a "
        f"backbone of {LARGEST} px or less loses nothing."
    ]


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


def _trained(
    dataset: Dataset,
    parameters: TrainingParameters,
    tune: FineTuneParameters,
    file: Path,
    spec: BackboneSpec,
    names: list[str],
    keeping: CheckpointStore | None,
) -> TrainingResult:
    network = _Network(file, spec, dataset, parameters, tune)
    settings = TrainerSettings(tune.batch_size, tune.weight_decay, parameters.label_smoothing)
    tuned = Trainer(network.build, settings, names)
    start = tuned.state()

    fitting = cache(
        lambda: heads.fitting(dataset, parameters)
    )  # made only if a training begins: one that goes on needs none

    def begin(number: int, rows: DatasetRows) -> None:
        tuned.restore(start)
        joint_network.take(network.head, fitting()(rows, number))

    pictures = TrainingPictures.of(dataset, tune.augmentation, parameters.seed)
    course = TrainingLoop(dataset, parameters, tune, tuned, pictures, begin, keeping)
    course.run()
    means = course.curves.mean(axis=0)
    return TrainingResult(
        network=tuned.network,
        logits=course.logits,
        held_out=course.logits_of(dataset.unseen),
        curves={name: means[:, place].tolist() for place, name in enumerate(CURVES)},
        weights=joint_network.trained_numbers(tuned.network),
        notes=notes(dataset),
    )


class _Network:
    """The parts of the network; `build` makes them where the trainer wants them."""

    head: keras.Model

    def __init__(
        self, file: Path, spec: BackboneSpec, dataset: Dataset, parameters: TrainingParameters, tune: FineTuneParameters
    ) -> None:
        self._file, self._spec, self._labels = file, spec, len(dataset.labels)
        self._parameters, self._tune = parameters, tune

    def build(self) -> keras.Model:
        """The network of the backbone and a head, with the layers to train. Raises Failure if it cannot be trained."""
        backbone = load_checked(self._file, self._spec)
        if not joint_network.takes_any_number(backbone):
            raise TrainingFailure(
                f"the backbone {self._spec.name} takes batches of exactly {backbone.inputs[0].shape[0]} pictures, and "
                "fine-tuning needs one that takes any number: build it with an input without a fixed batch"
            )
        trained, of = joint_network.train_last(backbone, self._tune.layers)
        print(f"trains {trained} of {of} layers of {self._spec.described} that have weights, and the head")
        self.head = joint_network.head(self._spec.dimension, heads.layers(self._parameters, self._labels))
        return joint_network.joined(backbone, self.head)
