"""The choice among runs."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from stages.classify import run_selection
from stages.classify.training.run_records import AccuracyScore, TrainingRun


def made(name: str, right: int, of: int = 10**6, weights: int = 5) -> TrainingRun:
    return TrainingRun(name, None, cross_validation=AccuracyScore.counted(right, of), weights=weights)


FAILED = TrainingRun("a-failed", None, "it diverged")


def test_the_most_accurate_run_is_the_best() -> None:
    runs = [made("b", 8), made("c", 9), FAILED, made("a", 7)]
    assert [run.name for run in run_selection.ranked(runs)] == ["c", "b", "a", "a-failed"]
    assert run_selection.best(runs) == runs[1]
    assert run_selection.as_data(runs)["chosen"] == "c"


def test_rounding_decides_nothing() -> None:
    """The accuracies of the records are equal."""
    runs = [made("a", 5 * 10**6 - 1, 10**7), made("b", 5 * 10**6, 10**7)]
    score = runs[0].cross_validation
    assert score is not None
    assert score.accuracy == 0.5
    assert [run.name for run in run_selection.ranked(runs)] == ["b", "a"]


def test_of_equal_runs_the_smallest_is_chosen_and_then_the_first_by_name() -> None:
    runs = [made("z", 8, weights=4), made("b", 8), made("a", 8)]
    assert [run.name for run in run_selection.ranked(runs)] == ["z", "a", "b"]


def test_held_out_pictures_have_no_say() -> None:
    runs = [made("a", 8), replace(made("b", 7), held_out=AccuracyScore.counted(10, 10))]
    found = run_selection.best(runs)
    assert found is not None and found.name == "a"


@given(st.permutations([made("a", 8), made("b", 8), made("c", 9), made("d", 9, weights=1), FAILED]))
def test_the_order_of_runs_does_not_matter(runs: list[TrainingRun]) -> None:
    assert [run.name for run in run_selection.ranked(runs)] == ["d", "c", "a", "b", "a-failed"]


def test_without_a_model_a_note_says_why() -> None:
    assert run_selection.note([made("a", 8), FAILED]) == ""
    assert run_selection.note([]) == run_selection.NO_RUNS
    assert run_selection.note([FAILED]) == "the run failed: it diverged"
    assert run_selection.note([FAILED, FAILED]) == "all 2 runs failed: it diverged"
    assert run_selection.best([FAILED]) is None
