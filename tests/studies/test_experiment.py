"""The original experiment on a small scale: it ends in a sheet, and its vectors can be searched again."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.races import searching
from stages.report.result_grid import TILE
from studies import experiment

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


def test_the_experiment_ends_in_a_sheet_of_real_neighbours(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.png"
    result = experiment.measure(300, 1, sheet=sheet, sklearn=False)
    with Image.open(sheet) as drawn:
        assert drawn.height > 5 * TILE
        assert drawn.width > 4 * TILE
    done = [row.name for row in result.rows if row.section == "end to end"]
    assert done == ["preprocess", "features", "partition", "index", "search"]
    searched = {row.name: row for row in result.rows if row.section == "knn, the pictures' vectors"}
    assert {"ours", "faiss"} <= searched.keys()
    assert all(row.rate and row.peak_mib for row in searched.values())
    agreed = {row.name: row.rate for row in result.rows if row.section.startswith("agreement")}
    assert {"ours and faiss", "ours and pipeline", "faiss and pipeline"} <= agreed.keys()
    assert set(agreed.values()) == {1.0}


def test_the_vectors_of_pictures_are_written_and_searched(tmp_path: Path) -> None:
    assert experiment.main(["--pictures", "1000", "--vectors", str(tmp_path / "vectors")]) == 0
    library, queries = (np.load(tmp_path / "vectors" / name) for name in searching.FILES)
    assert len(queries) == 100
    assert 800 < len(library) <= 900, "copies are one picture"
    result = searching.measure(5_000, 1, sklearn=False, vectors=tmp_path / "vectors")
    lines = {line.what: line for line in result.lines}
    (product,) = (row for row in result.rows if (row.section, row.name) == ("product", "numpy"))
    assert product.seconds and product.rate == 2 * library.size * len(queries) / product.seconds
    assert any(what.startswith(f"search 100 × {len(library)} × 1,280, ours, beside ") for what in lines)
    assert any(what.startswith("the same in processor time, beside ") for what in lines)
    assert {path.name for path in (tmp_path / "vectors").iterdir()} == set(searching.FILES)
