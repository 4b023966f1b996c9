"""The files of an evaluation: the rankings with their measures, a calibration and a page. Owns their names; knows no
input.

A library without labels, or with too few, gives a report that says what to do, never a failure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stages.files.tables.ranking_table import RankingTable, write_rankings
from stages.quality import evaluation, ranking_verdicts
from stages.report.evaluation_page import page


def write(rankings: RankingTable, left_out: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """Writes metrics.json, calibration.json, queries.parquet and index.html; returns the values of the first.
    left_out: the numbers of pictures and of those with labels, and all that has none, as `evaluation.metrics` takes
    them."""
    verdicts = ranking_verdicts.judge(rankings)
    metrics = evaluation.metrics(rankings, verdicts, left_out)
    calibration = evaluation.calibrated(rankings, verdicts)
    write_rankings(rankings, out / "queries.parquet")
    _write(out / "metrics.json", metrics)
    _write(out / "calibration.json", calibration)
    (out / "index.html").write_text(page(metrics, calibration), encoding="utf-8", newline="\n")
    return metrics


def _write(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="ascii")
