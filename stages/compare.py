"""The compare stage: two evaluations of the same library side by side.

Runs on plain directories only, for `lookalike evaluate --model A --model B`. Inputs: `a` and `b`, directories with the
queries.parquet of the stage evaluate; `about`, a JSON file with the versions of both; and, if the page is to show
pictures, `index`, the directory of an index of the same pictures. Writes /comparison.json and /index.html.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.compare"))

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stages.datum.contract import Datum, StageError
from stages.files.tables.index_table import TABLE, IndexTable
from stages.files.tables.ranking_table import RankingTable
from stages.files.thumbnail_files import DIRECTORY, ThumbnailFiles
from stages.quality.ranking_comparison import compare_rankings
from stages.quality.ranking_verdicts import RankingVerdicts, judge
from stages.report.comparison_page import page


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Has no parameters."""

    def process(datum: Datum) -> None:
        sides = [_side(datum.inputs[name].path) for name in ("a", "b")]
        about = json.loads(datum.inputs["about"].path.read_bytes())
        found = {"about": about, **compare_rankings(*sides)}
        drawn = _thumbnails(datum.inputs["index"].path, found) if "index" in datum.inputs else {}
        text = json.dumps(found, indent=1, sort_keys=True)
        (datum.out / "comparison.json").write_text(text + "\n", encoding="ascii")
        (datum.out / "index.html").write_text(page(found, drawn), encoding="utf-8", newline="\n")
        print(f"compare: {found['queries']} queries")

    return process


def _side(directory: Path) -> RankingVerdicts:
    file = directory / "queries.parquet"
    if not file.exists():
        raise StageError(f"{directory.name} holds no rankings: it should be a directory that evaluate wrote")
    return judge(RankingTable.read(file))


def _thumbnails(index: Path, found: Mapping[str, Any]) -> dict[str, bytes]:
    """The JPEG file of each picture that the examples name, by source."""
    examples = [each for kind in found.get("examples", {}).values() for each in kind]
    wanted = {shown["source"] for each in examples for shown in (each, each["a"], each["b"])}
    drawn: dict[str, bytes] = {}
    for segment in sorted(path.parent for path in index.glob(f"*/{TABLE}")):
        if wanted <= drawn.keys():
            break
        images, files = IndexTable.read(segment / TABLE), ThumbnailFiles(segment / DIRECTORY)
        for row, sources in enumerate(images.sources):
            drawn |= {each.path: files.read(images.thumbnails[row]) for each in sources if each.path in wanted}
    return drawn
