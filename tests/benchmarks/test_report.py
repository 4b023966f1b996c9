import json
import re
from itertools import count
from pathlib import Path

from benchmarks.kit import report
from benchmarks.kit.report import Line, Row


def test_measures_take_turns_and_the_least_of_each_counts() -> None:
    turns: list[str] = []
    numbers = count(5, -1)

    def measure(name: str) -> float:
        turns.append(name)
        return float(next(numbers))

    assert report.interleaved(3, lambda: measure("a"), lambda: measure("b")) == [1.0, 0.0]
    assert turns == ["a", "b"] * 3


def test_a_line_is_in_words() -> None:
    assert report.line("put", 3000.4, 6000.0, "files/s", "3,000 files/s", True, 0) == Line(
        "put", "3,000 files/s", "6,000 files/s", "0.50", "3,000 files/s", "yes"
    )
    assert report.line("growth", 2.04, None, "times", met=False) == Line("growth", "2.0 times", "", "", "", "no")


def test_the_tables_hold_every_line() -> None:
    lines = [Line("one thing", "1 s"), Line("two", "10 s", "5 s", "2.00", "under 20 s", "yes")]
    first, *others = report.plain(lines).splitlines()
    assert first.split() == ["what", "ours", "lower", "bound", "ratio", "goal", "met"]
    assert others[1] == "two        10 s  5 s          2.00   under 20 s  yes"
    text = report.markdown(lines, report.machine(), {"python": "3.11.1"}, "abc")
    assert text.splitlines()[2:] == [
        "| what | ours | lower bound | ratio | goal | met |",
        "| --- | --- | --- | --- | --- | --- |",
        "| one thing | 1 s |  |  |  |  |",
        "| two | 10 s | 5 s | 2.00 | under 20 s | yes |",
    ]
    assert re.match(r"Measured on \d{4}-\d\d-\d\d: .+, \d+ cores, \d+ GiB, .+ python 3\.11\.1; commit abc\.", text)


def test_the_json_names_its_origin(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    used = report.versions(["grpcio"])
    report.write_json(kept, [Row("put", "ours", 2.0, 50.0)], report.machine(), used, report.commit())
    read = json.loads(kept.read_text())
    assert read["rows"] == [{"section": "put", "name": "ours", "seconds": 2.0, "rate": 50.0, "peak_mib": None}]
    assert read["machine"]["cores"] > 0
    assert read["versions"].keys() == {"python", "grpcio"}
    assert re.fullmatch(r"([0-9a-f]{12}\+?)?", read["commit"])
