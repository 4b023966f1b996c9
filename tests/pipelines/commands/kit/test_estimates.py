"""The time left of a job, and its result in words."""

from dataclasses import replace

import pytest

from pipelines.client.jobs.jobs import Job
from pipelines.client.jobs.workers import BusyWorker, DatumProgress
from pipelines.commands.kit.estimates import JobEstimate, comparison_seconds, datums_done, result, time_left
from stages.datum.text_format import rounded_time

JOB = Job("features", "0" * 32, "running", 0, 0, 0, 64, 10.0, "")


def test_an_estimate_needs_something_that_was_computed() -> None:
    estimate = JobEstimate()
    assert estimate.left(JOB, 100.0) is None
    assert estimate.left(replace(JOB, skipped=32), 100.0) is None


def test_skipped_datums_cost_nothing() -> None:
    assert JobEstimate().left(replace(JOB, processed=8, skipped=40), 100.0) == pytest.approx(20.0)


def test_an_estimate_runs_down_until_there_is_news_and_ends_when_it_is_overdue() -> None:
    estimate = JobEstimate()
    half = replace(JOB, processed=32)
    assert estimate.left(half, 100.0) == pytest.approx(10.0)
    assert estimate.left(replace(half, seconds=14.0), 104.0) == pytest.approx(6.0)
    assert estimate.left(replace(half, seconds=20.0), 110.0) is None
    assert estimate.left(replace(half, processed=48, seconds=24.0), 114.0) == pytest.approx(8.0)


def test_the_parts_of_datums_at_work_count() -> None:
    busy = BusyWorker(("/dir",), 30.0, DatumProgress(100, 400, "pictures")), BusyWorker(("/other",), 1.0)
    job = replace(JOB, total=1, busy=busy, seconds=30.0)
    assert datums_done(job) == 0.25
    assert JobEstimate().left(job, 0.0) == pytest.approx(90.0)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(3, "about 10 s left"), (44, "about 50 s left"), (61, "about 2 min left"), (4000, "about 2 hours left")],
)
def test_remaining_time_in_words(seconds: float, words: str) -> None:
    assert time_left(seconds) == words


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (replace(JOB, state="success", total=0), "nothing to do"),
        (replace(JOB, state="killed", total=0), "killed"),
        (replace(JOB, state="success", processed=64), "success, 64 of 64 datums"),
        (replace(JOB, state="success", processed=3, skipped=61), "success, 3 of 64 datums computed, 61 unchanged"),
        (
            replace(JOB, state="failure", processed=2, skipped=61, failed=1),
            "failure, 2 of 64 datums computed, 61 unchanged, 1 failed",
        ),
    ],
)
def test_results_in_words(job: Job, words: str) -> None:
    assert result(job) == words


def test_comparing_grows_with_the_square_of_the_pictures() -> None:
    once, more = comparison_seconds(10_000, 2), comparison_seconds(100_000, 2)
    assert more == pytest.approx(100 * once)
    assert rounded_time(more) == "about 3 min"
    assert comparison_seconds(10_000, 1) == pytest.approx(2 * once)
