"""The choice among runs: the best cross-validated accuracy, of equal ones the smallest network.

Pure; only the standard library. Held-out pictures have no say, so their accuracy is an honest one of the chosen run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from stages.classify.training.run_records import FORMAT, TrainingRun
from stages.datum.text_format import counted

NO_RUNS = "there is no run: put parameters into the repo parameters with `lookalike classify train FILE`"


def ranked(runs: Iterable[TrainingRun]) -> list[TrainingRun]:
    """The runs, the best first, failed ones last. Of equal accuracy: those with fewer trained numbers, then by name."""
    return sorted(runs, key=_place)


def best(runs: Iterable[TrainingRun]) -> TrainingRun | None:
    """The run to use; None if none has a model."""
    first = next(iter(ranked(runs)), None)
    return None if first is None or not _succeeded(first) else first


def note(runs: Sequence[TrainingRun]) -> str:
    """The reason for which there is no model, with what to do; "" if there is one."""
    if best(runs) is not None:
        return ""
    if not runs:
        return NO_RUNS
    reasons = {run.failure for run in runs}
    if len(reasons) == 1:
        failed = "the run" if len(runs) == 1 else f"all {len(runs):,} runs"
        return f"{failed} failed: {reasons.pop()}"
    return f"all {counted(len(runs), 'run', 'runs')} failed, for {len(reasons):,} reasons: see them in the report"


def as_data(runs: Sequence[TrainingRun]) -> dict[str, Any]:
    """All runs as JSON values, the best first: the content of runs.json."""
    chosen = best(runs)
    return {
        "format": FORMAT,
        "chosen": "" if chosen is None else chosen.name,
        "runs": [run.as_data() for run in ranked(runs)],
    }


def _succeeded(run: TrainingRun) -> bool:
    return not run.failure and run.cross_validation is not None


def _place(run: TrainingRun) -> tuple[bool, Fraction, int, str]:
    found = run.cross_validation
    if run.failure or found is None:
        return True, Fraction(0), 0, run.name
    return False, -Fraction(found.right, found.of), run.weights, run.name
