"""The short benchmark: what counts as slower, the committed figures, and a small run."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from benchmarks import committed, short
from benchmarks.committed import MARGIN, Figure
from benchmarks.kit.report import Row
from tests.example_counts import examples

SECONDS = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=4).map(tuple)


def test_ours_is_compared_with_its_bound_and_other_programs_are_left_out() -> None:
    rows = [
        Row("put", "ours", 2.0),
        Row("put", "bound", 1.0),
        Row("put", "disk", 0.1),
        Row("knn", "ours", 3.0),
        Row("knn", "ceiling", 1.5),
        Row("product", "numpy", 1.0),
        Row("preprocess", "96 px JPEG", 0.5),
        Row("held", "ours", None, peak_mib=90.0),
    ]
    found = committed.figures([rows, rows])
    assert found == {
        "put": Figure((2.0, 2.0), (1.0, 1.0)),
        "knn": Figure((3.0, 3.0), (1.5, 1.5)),
        "preprocess 96 px JPEG": Figure((0.5, 0.5)),
    }
    assert found["put"].ratios == (2.0, 2.0)


@pytest.mark.parametrize(
    ("now", "before", "word"),
    [
        (Figure((1.2, 1.3)), Figure((1.0, 1.05)), "slower"),
        (Figure((1.0, 1.3)), Figure((1.0, 1.05)), ""),
        (Figure((1.0, 1.05)), Figure((1.2, 1.3)), "faster"),
        # A busy machine: everything takes twice as long.
        (Figure((2.4, 2.6), (2.0, 2.0)), Figure((1.2, 1.3), (1.0, 1.0)), ""),
        # A lucky bound.
        (Figure((1.2, 1.3), (0.5, 0.5)), Figure((1.2, 1.3), (1.0, 1.0)), ""),
        (Figure((2.4, 2.6), (1.0, 1.0)), Figure((1.2, 1.3), (1.0, 1.0)), "slower"),
        (Figure((2.4, 2.6)), Figure((1.2, 1.3), (1.0, 1.0)), "slower"),
    ],
)
def test_slower_is_more_than_noise(now: Figure, before: Figure, word: str) -> None:
    assert committed.verdict(now, before) == word


@settings(max_examples=examples(100))
@given(SECONDS, SECONDS)
def test_what_overlaps_has_not_changed(one: tuple[float, ...], other: tuple[float, ...]) -> None:
    there, back = committed.verdict(Figure(one), Figure(other)), committed.verdict(Figure(other), Figure(one))
    assert {there, back} in ({""}, {"slower", "faster"})
    if min(one) <= max(other) * MARGIN and min(other) <= max(one) * MARGIN:
        assert there == ""


def test_kept_figures_are_those_of_a_class_of_machine(tmp_path: Path) -> None:
    file = tmp_path / "committed.json"
    facts = {"date": "2026-01-02", "load": 0.1}
    committed.keep(file, "large", {"put": Figure((1.0, 2.0), (0.5, 0.25))}, facts, "abc")
    committed.keep(file, "small", {"put": Figure((9.0,))}, facts, "def")
    committed.keep(file, "large", {"list": Figure((3.0,))}, facts, "ghi")
    found, said = committed.read(file, "large")
    assert found == {"put": Figure((1.0, 2.0), (0.5, 0.25)), "list": Figure((3.0,))}
    assert said == "committed: ghi, 2026-01-02, load 0.1 at the start"
    assert committed.read(file, "small")[0] == {"put": Figure((9.0,))}
    none, said = committed.read(file, "other")
    assert none == {}
    assert "no figures are committed for other" in said


@pytest.mark.parametrize("text", ["[]", "{", '{"a": {}}', '{"a": {"figures": {"put": 1}}}'])
def test_a_damaged_file_is_said(tmp_path: Path, text: str) -> None:
    file = tmp_path / "committed.json"
    file.write_text(text)
    with pytest.raises(ValueError, match="is not a file of committed figures: restore it from git"):
        committed.read(file, "a")


def test_the_committed_file_can_be_read() -> None:
    for kind in json.loads(committed.FILE.read_text()):
        found, said = committed.read(committed.FILE, kind)
        assert found
        assert said.startswith("committed: ")


def test_a_run_says_what_got_slower(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "committed.json"
    arguments = ["read", "--passes", "1", "--committed", str(file)]
    assert short.main([*arguments, "--keep"]) == 0
    said = capsys.readouterr().out
    assert "read 64 MiB" in said
    assert "new\n" in said
    assert "slower by more than noise: nothing" in said
    kept = json.loads(file.read_text())
    (machine,) = kept
    for figure in kept[machine]["figures"].values():
        figure["seconds"] = [each / 1000 for each in figure["seconds"]]
    file.write_text(json.dumps(kept))
    assert short.main(arguments) == 1
    assert "slower by more than noise: read 64 MiB" in capsys.readouterr().out
    file.write_text("{")
    assert short.main(arguments) == 2
    assert "restore it from git" in capsys.readouterr().err
