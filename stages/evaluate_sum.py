"""The evaluate-sum stage: all segments' rankings as measures, a calibration and a report.

Input `evaluate`: the whole repo that the stage evaluate writes. Writes /metrics.json, /calibration.json,
/queries.parquet (Rankings of all labelled pictures, whose neighbours are rows of the same table) and /index.html. A
library without labels, or with too few, gives a report that says what to do, never a failure.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.contract
    from stages import contract

    raise SystemExit(contract.run("stages.evaluate_sum"))

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stages import evaluation, judging
from stages.contract import Datum, StageError
from stages.evaluationpage import page
from stages.tables.rankings import read_rankings, write_rankings


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Has no parameters."""

    def process(datum: Datum) -> None:
        summarise(datum.inputs["evaluate"].path, datum.out)

    return process


def summarise(evaluated: Path, out: Path) -> None:
    """Writes the files of the report. Raises StageError if the stage evaluate did not write all of its own."""
    tables = sorted((evaluated / "queries").glob("*.parquet"))
    told = evaluated / "labels.json"
    if not tables or not told.exists():
        raise StageError("evaluate wrote no rankings: reprocess it with `lookalike deploy --reprocess evaluate`")
    left_out = json.loads(told.read_bytes())
    rankings = judging.join([read_rankings(table) for table in tables])
    verdicts = judging.judge(rankings)
    metrics = evaluation.metrics(rankings, verdicts, left_out)
    calibration = evaluation.calibrated(rankings, verdicts)
    write_rankings(rankings, out / "queries.parquet")
    _write(out / "metrics.json", metrics)
    _write(out / "calibration.json", calibration)
    (out / "index.html").write_text(page(metrics, calibration), encoding="utf-8", newline="\n")
    print(f"evaluate-sum: {metrics['queries']} queries of {metrics['labels']} labels")


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="ascii")
