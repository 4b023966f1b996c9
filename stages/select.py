"""The select stage: the best of all trainings, with a report on all of them.

The best has the highest cross-validated accuracy, and of equal ones is the smallest network. Held-out pictures have no
say, so their accuracy is an honest one of the chosen run.

Inputs, lazy or not: `labelled`, `labels` and `train`, whole repos; `models`, the description of the backbone or
the directory that holds it, or no such input. Writes /metrics.json, /runs.json and /index.html; and, if a
training succeeded, /model.keras and /labels.json, which are its classifier, and /model-card.md.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.select"))

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from stages.backbone.backbone_spec import SPEC_FILE, BackboneSpec, parse_spec
from stages.classify import classifier_description
from stages.classify.report import label_census
from stages.classify.report.model_card import card
from stages.classify.report.training_report import MOST_EXAMPLES, page
from stages.classify.training import prediction_measures, run_records
from stages.classify.training.run_records import TrainingRun
from stages.datum.contract import Datum, StageError, spool
from stages.datum.text_format import counted
from stages.files.tables.prediction_table import PredictionTable
from stages.quality.picture_labels import read_labels
from stages.record.label_files import is_for_training

VERSION = 3
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

METRICS, RUNS, PAGE, CARD = "metrics.json", "runs.json", "index.html", "model-card.md"

NO_RUNS = "there is no run: put parameters into the repo parameters with `lookalike classify train FILE`"


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Has no parameters."""

    def process(datum: Datum) -> None:
        datum.require("select needs labelled, labels and train", "labelled", "labels", "train")
        models = datum.inputs.get("models")
        labelled, labels, train = (datum.inputs[name].path for name in ("labelled", "labels", "train"))
        select(labelled, labels, train, None if models is None else models.directory, datum.out)

    return process


def select(labelled: Path, labels: Path, train: Path, models: Path | None, out: Path) -> None:
    """Writes the chosen classifier and the report. Raises StageError for files that the stages did not write so."""
    every = [run_records.parse(file.read_bytes()) for file in sorted(train.glob(f"*/{run_records.FILE}"))]
    best = best_run(every)
    found = {} if best is None else _measured(train / best.name, best)
    wanted = {each["id"] for each in found.get("mistakes", ())[:MOST_EXAMPLES]}
    census = label_census.read(labelled, wanted)
    left_out = census.left_out(read_labels(labels, is_for_training))
    metrics = _metrics(every, best, census.pictures(), len(census.learnable())) | {"left_out": left_out} | found
    records = runs_as_data(every)
    _write(out / METRICS, metrics)
    _write(out / RUNS, records)
    (out / PAGE).write_text(page(metrics, records, census.thumbnails), encoding="utf-8", newline="\n")
    if best is not None:
        described = classifier_description.of_run(best)
        (out / classifier_description.FILE).write_bytes(classifier_description.format_description(described))
        _copy(train / best.name / run_records.MODEL, out / run_records.MODEL)
        told = card(metrics, best.as_data(), _backbone(models, best))
        (out / CARD).write_text(told, encoding="utf-8", newline="\n")
    print(f"select: {metrics['run'] or 'no run'} of {len(every)}")


def ranked(runs: Iterable[TrainingRun]) -> list[TrainingRun]:
    """The runs, the best first, failed ones last. Of equal accuracy: those with fewer trained numbers, then by name."""
    return sorted(runs, key=_place)


def best_run(runs: Iterable[TrainingRun]) -> TrainingRun | None:
    """The run to use; None if none has a model."""
    return next((run for run in ranked(runs) if not run.failure and run.cross_validation is not None), None)


def missing_note(runs: Sequence[TrainingRun]) -> str:
    """The reason for which there is no model, with what to do; "" if there is one."""
    if best_run(runs) is not None:
        return ""
    if not runs:
        return NO_RUNS
    reasons = {run.failure for run in runs}
    if len(reasons) == 1:
        failed = "the run" if len(runs) == 1 else f"all {len(runs):,} runs"
        return f"{failed} failed: {reasons.pop()}"
    return f"all {counted(len(runs), 'run', 'runs')} failed, for {len(reasons):,} reasons: see them in the report"


def runs_as_data(runs: Sequence[TrainingRun]) -> dict[str, Any]:
    """All runs as JSON values, the best first: the content of runs.json."""
    chosen = best_run(runs)
    return {
        "format": run_records.FORMAT,
        "chosen": "" if chosen is None else chosen.name,
        "runs": [run.as_data() for run in ranked(runs)],
    }


def _place(run: TrainingRun) -> tuple[bool, Fraction, int, str]:
    found = run.cross_validation
    if run.failure or found is None:
        return True, Fraction(0), 0, run.name
    return False, -Fraction(found.right, found.of), run.weights, run.name


def _metrics(
    every: list[TrainingRun], best: TrainingRun | None, pictures: dict[str, int], labels: int
) -> dict[str, Any]:
    """The values of metrics.json that do not come from predictions."""
    failed = sum(bool(run.failure) for run in every)
    return {
        "format": run_records.FORMAT,
        "run": "" if best is None else best.name,
        "note": missing_note(every),
        "runs": {"succeeded": len(every) - failed, "failed": failed},
        "labels": labels if best is None else len(best.labels),
        "pictures": pictures,
        "cross_validation": None,
        "held_out": None,
    }


def _measured(directory: Path, run: TrainingRun) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        predictions = PredictionTable.read(spool(_file(directory / run_records.PREDICTIONS), Path(scratch)))
    return prediction_measures.measure_run(predictions, run.labels)


def _backbone(models: Path | None, run: TrainingRun) -> BackboneSpec | None:
    """The description of the run's backbone; None if the repo holds that of another one, or none."""
    if models is None or not (models / SPEC_FILE).exists():
        return None
    spec = parse_spec((models / SPEC_FILE).read_bytes())
    return spec if run.origin is not None and spec.sha256 == run.origin.model else None


def _file(path: Path) -> Path:
    if not path.exists():
        raise StageError(
            f"the run {path.parent.name} has no {path.name}: train it again with `lookalike deploy --reprocess train`"
        )
    return path


def _copy(source: Path, target: Path) -> None:
    with _file(source).open("rb") as read, target.open("wb") as written:
        shutil.copyfileobj(read, written, 1 << 20)


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="ascii")
