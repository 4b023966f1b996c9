"""The experiment's benchmark at tiny sizes: it measures what it says, and what it is measured beside is right too."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import experiment, searching
from benchmarks.plots import bars
from benchmarks.report import Row


def test_preprocessing_is_measured_written_and_plotted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        experiment.main(["preprocess", "--rounds", "1", f"--json={tmp_path}/r.json", f"--plot={tmp_path}/r.svg"]) == 0
    )
    rows = json.loads((tmp_path / "r.json").read_text())["rows"]
    assert [row["name"] for row in rows] == [
        "96 px JPEG, blocks",
        "STL-10, one file",
        "STL-10, blocks",
        "12-megapixel JPEG",
    ]
    assert all(row["rate"] > 0 for row in rows)
    assert "pictures/s/core" in capsys.readouterr().out
    assert (tmp_path / "r.svg").read_text().count("<rect") == 5


def test_contenders_answer_and_agree(tmp_path: Path) -> None:
    searching._write_vectors(tmp_path, 300, 40)
    names = ["ours", "faiss", "sklearn"]
    for name in [*names, "numpy:Haswell"]:
        with searching.Contender(name, tmp_path) as contender:
            assert contender.seconds() > 0
            contender.finish()
            assert contender.peak_mib is not None
            assert contender.peak_mib > 20
    rows, lines = searching._agreements(tmp_path, names)
    assert len(rows) == 3
    assert {line.met for line in lines} == {"yes"}
    assert {row.rate for row in rows} == {1.0}
    library, queries = (np.load(tmp_path / f"{name}.npy").astype(float) for name in ("library", "queries"))
    true = np.sqrt(((queries[:, None] - library) ** 2).sum(axis=2))
    found = np.load(tmp_path / "ours.npz")
    np.testing.assert_allclose(found["distances"], np.sort(true)[:, :3], rtol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(true, found["rows"], axis=1), found["distances"], rtol=1e-6)


def test_a_contender_that_cannot_run_says_why(tmp_path: Path) -> None:
    searching._write_vectors(tmp_path, 30, 4)
    with pytest.raises(RuntimeError, match="annoy does not run here: KeyError: 'annoy'"):
        searching.Contender("annoy", tmp_path).__enter__()


@pytest.mark.parametrize(
    ("flags", "kernels"),
    [
        ("fpu avx2 fma avx512f avx512bw avx512dq avx512vl", ["Haswell", "SkylakeX"]),
        ("fpu avx2 fma sse4a", ["Haswell", "Zen"]),
        ("fpu", []),
    ],
)
def test_only_kernels_that_the_processor_can_run_are_tried(flags: str, kernels: list[str], tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor: 0\nflags\t\t: {flags}\nbugs: many\n")
    assert searching._kernels(tmp_path / "cpuinfo") == kernels


def test_wrong_arguments_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["nothing"], ["--pictures", "10"], ["--rounds", "0"]):
        with pytest.raises(SystemExit):
            experiment.main(wrong)
    assert "10 is not a number from 1,000" in capsys.readouterr().err


def test_bars_leave_out_what_has_no_rate_and_escape() -> None:
    rows = [Row("knn", "a<b", 1.0, 20.0), Row("knn", "ours", 1.0, 40.0), Row("agreement", "x", rate=1.0)]
    drawn = bars(rows, {"processor": "A & B", "cores": 2, "date": "2026-01-01"})
    assert "a&lt;b" in drawn
    assert "A &amp; B" in drawn
    assert drawn.count("<rect") == 3
    assert 'width="210.0"' in drawn
    assert 'width="420.0"' in drawn
