"""The table of runs on terminals of any width."""

import io

import pytest
from rich.console import Console

from pipelines.analysis.classifiers.experiments import Experiment
from pipelines.commands.classify.classify_tables import table
from stages.classify.training.run_records import AccuracyScore, PictureCounts, TrainingRun
from stages.classify.training.training_parameters import parse


def run(name: str, right: int, parameters: bytes = b"{}") -> Experiment:
    score = AccuracyScore.counted(right, 1000)
    found = TrainingRun(
        name,
        parse(f"{name}.json", parameters),
        labels=("a", "b"),
        pictures=PictureCounts(1000, 1000, 0),
        cross_validation=score,
        held_out=score,
        device="cpu",
    )
    return Experiment(found, "c" * 32, None, 12.34, "1" * 32, "2" * 32, "3" * 32, chosen=right > 990)


RUNS = [run("linear", 985), run("wide-and-long", 991, b'{"head": "mlp", "hidden": [512, 128], "label_smoothing": 0.1}')]


def lines(width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    console.print(table(RUNS, width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_nothing_is_cut_off(width: int) -> None:
    found = lines(width)
    assert max(map(len, found)) <= width
    said = " ".join(found)
    for each in ("linear@cccccc", "wide-and-long@cccccc", "chosen", "98.5", "97.5 to 99.1", "1,000", "111111", "222222",
                 "12.3 s", "cpu", "head=mlp", "validated, %", "held out, %", "device"):  # fmt: skip
        assert each in said, each


def test_a_wide_terminal_has_a_line_for_each_run() -> None:
    assert len(lines(200)) == 1 + len(RUNS)
