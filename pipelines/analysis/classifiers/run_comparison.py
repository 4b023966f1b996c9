"""Two runs compared: parameters, data, results, and the pictures on which they disagree. Knows no terminal."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.analysis.classifiers.experiments import TRAIN, Experiment
from pipelines.client.deployment.first_files import LABELS
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from stages.classify.report import training_words
from stages.classify.training.run_records import PREDICTIONS, AccuracyScore
from stages.files.tables.prediction_table import PredictionTable
from stages.record import label_files

EXAMPLES = 10
"""Most examples of each kind of difference."""


@dataclass(frozen=True, slots=True)
class CountWithExamples:
    """A number of things, and some of them."""

    count: int
    examples: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RunDisagreement:
    """A picture that two runs take for different labels, or only one of them knows rightly: its source, its label, and
    what each takes it for."""

    source: str
    label: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class RunComparison:
    """What differs between the runs a and b.

    parameters: the values of both by field, None where one has none. labels: the sources that b has and a has not,
    those that a alone has, and those with another label: (source, label of a, label of b); None where the commits of
    labels are gone. pictures: numbers of a and b by kind. scores: of a and b by name. gained, lost: the pictures, as
    both have seen them, that b alone predicts rightly, and that a alone does; None where one has no predictions.
    """

    a: Experiment
    b: Experiment
    parameters: Mapping[str, tuple[Any, Any]]
    labels: Mapping[str, CountWithExamples] | None
    pictures: Mapping[str, tuple[int, int]]
    scores: Mapping[str, tuple[AccuracyScore | None, AccuracyScore | None]]
    gained: CountWithExamples | None
    lost: CountWithExamples | None


def compare(connection: Connection, a: Experiment, b: Experiment) -> RunComparison:
    """Compares two runs. Reads their predictions, and the labels of then."""
    gained, lost = _verdicts(_predictions(connection, a), _predictions(connection, b))
    counts = {name: (getattr(a.run.pictures, name), getattr(b.run.pictures, name)) for name in _COUNTS}
    scores = {name: (getattr(a.run, name), getattr(b.run, name)) for name in ("cross_validation", "held_out")}
    return RunComparison(a, b, _differing(a, b), _labels(connection, a, b), counts, scores, gained, lost)


_COUNTS = ("training", "held_out", "unlearnable")


def parameters_of(experiment: Experiment) -> dict[str, Any]:
    """The parameters of a run by name, those of a group with its name and a dot before theirs; none if they could not
    be read."""
    return {} if experiment.run.parameters is None else training_words.flattened(experiment.run.parameters.as_data())


def _differing(a: Experiment, b: Experiment) -> dict[str, tuple[Any, Any]]:
    ours, theirs = parameters_of(a), parameters_of(b)
    names = dict.fromkeys((*ours, *theirs))
    return {name: (ours.get(name), theirs.get(name)) for name in names if ours.get(name) != theirs.get(name)}


def _labels(connection: Connection, a: Experiment, b: Experiment) -> dict[str, CountWithExamples] | None:
    if not (a.labels and b.labels):
        return None
    old, new = (_labels_at(connection, each.labels) for each in (a, b))
    changed = [(source, old[source], new[source]) for source in sorted(old.keys() & new.keys())]
    return {
        "added": _some(sorted(new.keys() - old.keys())),
        "removed": _some(sorted(old.keys() - new.keys())),
        "changed": _some([each for each in changed if each[1] != each[2]]),
    }


def _labels_at(connection: Connection, commit: str) -> Mapping[str, str]:
    files = connection.retry(Repository(connection, LABELS, commit).contents)
    return label_files.unite((name, each) for name, each in files.items() if label_files.is_for_training(name)).of


def _predictions(connection: Connection, experiment: Experiment) -> PredictionTable | None:
    if experiment.run.failure:
        return None
    repo, path = Repository(connection, TRAIN, experiment.commit), f"/{experiment.run.name}/{PREDICTIONS}"
    if not connection.retry(repo.exists, path):
        return None
    return PredictionTable.read(io.BytesIO(connection.retry(repo.read, path)))


def _verdicts(
    a: PredictionTable | None, b: PredictionTable | None
) -> tuple[CountWithExamples | None, CountWithExamples | None]:
    """The pictures of both, with the same label and on the same side, that only b predicts rightly, and only a."""
    if a is None or b is None:
        return None, None
    known = {id_: place for place, id_ in enumerate(a.ids)}
    both = [(known[id_], place) for place, id_ in enumerate(b.ids) if id_ in known]
    found = [
        RunDisagreement(b.sources[there], b.labels[there], a.predicted[here], b.predicted[there])
        for here, there in both
        if (a.labels[here], a.splits[here]) == (b.labels[there], b.splits[there])
    ]
    return _some(_right_in(found, "b", "a")), _some(_right_in(found, "a", "b"))


def _right_in(found: list[RunDisagreement], right: str, wrong: str) -> list[RunDisagreement]:
    only = (each for each in found if getattr(each, right) == each.label != getattr(each, wrong))
    return sorted(only, key=lambda each: each.source)


def _some(items: list[Any]) -> CountWithExamples:
    return CountWithExamples(len(items), tuple(items[:EXAMPLES]))
