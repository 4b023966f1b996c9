"""Files of trainings and of evaluations in JSON: parameters of a run, the record of a run, calibrations."""

import json
from collections.abc import Iterator

from stages import similarity
from stages.classify import parameters, runs
from stages.classify.runs import Run
from stages.contract import StageError
from tests.fuzz.target import Target

_DISTANCES = (0.0, 0.5, 2.0)


def _parameters(data: bytes) -> None:
    """What was read can be written and read again."""
    try:
        found = parameters.parse("linear.json", data)
    except StageError as reason:
        assert str(reason).startswith("linear.json")
        return
    assert parameters.parse("linear.json", parameters.written(found)) == found


def _run(data: bytes) -> None:
    try:
        runs.parse(data)
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


def _runs() -> Iterator[bytes]:
    yield runs.written(Run("broken", None, failure="broken.json: it is not valid JSON"))
    yield runs.written(Run("a", parameters.parse("a.json", b"{}"), labels=("cat", "dog"), notes=("a note",)))


_WORDS = (b'"fine_tune"', b'"hidden"', b'"epochs"', b'"augmentation"', b"null", b"1e400", b"-1", b"NaN", b"[]", b"{}")

TARGETS = (
    Target("parameters", _parameters, _files, _WORDS, 600),
    Target("runs", _run, _runs, (*_WORDS, b'"format"', b'"pictures"', b'"curves"'), 1200),
    Target(
        "calibrations",
        _calibration,
        lambda: (b'{"knots": [[0, 0.9], [0.5, 0.4], [1.5, 0]], "facts": {"model": "m", "metric": "euclidean"}}',),
        (*_WORDS, b'"knots"', b'"facts"'),
        400,
    ),
)
