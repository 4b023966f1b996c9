"""A classifier tried on pictures that it has not seen: its predictions, from vectors, or from thumbnails.

Imports TensorFlow, so the stage promotion imports it late. Knows no comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stages.backbone import devices
from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE, parse_spec
from stages.backbone.embedder import Embedder
from stages.backbone.embedder_factory import embedder
from stages.classify import classifier
from stages.classify.classifier import Classifier
from stages.classify.classifier_comparison import ClassifierPredictions
from stages.classify.held_out_pictures import HeldOutPictures
from stages.classify.training import training_pixels
from stages.datum.contract import StageError
from stages.datum.progress import Progress
from stages.record.framing import Framing
from stages.record.origin import Origin

_CHUNK = 256  # framed pictures that are in memory together


def predict(
    directory: Path, models: Path | None, unseen: HeldOutPictures, environment: Mapping[str, str]
) -> ClassifierPredictions:
    """The predictions of the classifier in a directory for the pictures.

    A classifier of vectors takes those of the pictures if they are its backbone's, and otherwise computes them from
    the thumbnails, by the backbone in the directory `models`. Raises StageError if it cannot be loaded, or that
    backbone is not there.
    """
    devices.prepare(environment)
    opened = classifier.open(directory)
    chosen, own, theirs = opened.chosen, opened.chosen.origin, unseen.origin
    same = (own.computed_by, own.fit) == (theirs.computed_by, theirs.fit)
    by_vectors = chosen.takes == "vectors" and same
    if by_vectors:
        probabilities = opened(unseen.vectors)
    else:
        backbone = None if chosen.takes == "pictures" else _embedder(models, own, environment)
        probabilities = _from_thumbnails(opened, backbone, unseen)
    return ClassifierPredictions(
        run=chosen.run,
        labels=chosen.labels,
        predicted=[chosen.labels[code] for code in probabilities.argmax(axis=1).tolist()],
        origin=own,
        by_thumbnails=not by_vectors,
    )


def _from_thumbnails(opened: Classifier, embedder: Embedder | None, unseen: HeldOutPictures) -> npt.NDArray[np.float32]:
    origin = opened.chosen.origin
    framing = Framing(origin.image_size, origin.fit)
    found = [np.empty((0, len(opened.chosen.labels)), np.float32)]
    progress = Progress("pictures", len(unseen))
    for begin in range(0, len(unseen), _CHUNK):
        framed = training_pixels.frame_thumbnails(unseen.thumbnails[begin : begin + _CHUNK], framing)
        found.append(opened(framed if embedder is None else embedder(framed)))
        progress.add(len(framed))
    return np.concatenate(found)


def _embedder(models: Path | None, wanted: Origin, environment: Mapping[str, str]) -> Embedder:
    if models is None or not all((models / name).is_file() for name in (MODEL_FILE, SPEC_FILE)):
        raise StageError(
            f"the backbone {wanted.backbone} ({wanted.model[:16]}) is not there: the repo models should hold it at "
            "the commit at which the classifier was trained"
        )
    spec = parse_spec((models / SPEC_FILE).read_bytes())
    if spec.sha256 != wanted.model:
        raise StageError(
            f"the repo models holds {spec.described} ({spec.sha256[:16]}), not the backbone of the classifier, "
            f"{wanted.backbone} ({wanted.model[:16]})"
        )
    return embedder(models / MODEL_FILE, spec, environment)
