"""The benchmark of localpachd runs; its figures are not checked."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import localpachd
from benchmarks.kit import report

TINY = [
    *("--rounds", "1", "--put", "5", "--list", "5", "--logs", "5", "--batched", "3", "--unbatched", "3"),
    *("--jobs", "4", "8", "--steps", "16", "--read", "1", "--calls", "5", "--held", "2", "2", "2"),
    *("--scale", "4", "4", "4", "4"),
]


@pytest.mark.soak
def test_every_section_measures_ours_beside_a_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "figures.json"
    assert localpachd.main([*TINY, "--history", "3", "--markdown", "--json", str(kept)]) == 0
    figures = json.loads(kept.read_text())
    assert figures.keys() == {"machine", "versions", "commit", "rows"}
    names: dict[str, set[str]] = {}
    for row in figures["rows"]:
        assert row.keys() == {"section", "name", "seconds", "rate", "peak_mib"}
        assert row["seconds"] or row["peak_mib"]
        names.setdefault(row["section"], set()).add(row["name"])
    assert len(names) == 21
    assert all({"ours", "bound"} <= each for each in names.values())
    printed = capsys.readouterr()
    assert printed.out.count("\n| ") == 2 + 30
    assert "measuring history" in printed.err


def test_the_document_matches_the_printed_table() -> None:
    document = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text()
    first, _, *table = report.markdown([], report.machine(), report.versions(localpachd.PACKAGES), "").splitlines()
    assert re.search(
        rf"^{first.split()[0]} on [^|]*commit \w+\+?\.\n\n{re.escape(chr(10).join(table))}\n\| put", document, re.M
    )
    for section in localpachd.SECTIONS:
        assert f"| {section} | " in document


def test_invalid_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["speed"], ["put", "--put", "0"], ["put", "--put", "many"]):
        with pytest.raises(SystemExit):
            localpachd.main(wrong)
    assert "speed is not a section: choose from put, list" in capsys.readouterr().err
