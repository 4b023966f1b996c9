"""The time that a job needs until its end, estimated from its datums so far, and its result in words. Pure."""

from dataclasses import dataclass

from pipelines.analysis.measurement.optional_deployment import ComparisonWork
from pipelines.client.jobs.jobs import Job
from stages.datum.text_format import counted, rounded_time

_A_PAIR = 50e-9
"""Seconds of a core for a pair of pictures: a comparison of hashes, and of few what follows; docs/benchmarks.md has
measured ones."""

_A_PICTURE = 0.0002
"""Seconds that a report on all pictures takes for one: docs/explaining.md has evaluate's."""

_A_JOB = 0.5
"""Seconds of a job with nothing to do."""


@dataclass(slots=True)
class JobEstimate:
    """The estimate of one job, brought up to date by `left`."""

    _done: float = 0.0
    _end: float | None = None

    def left(self, job: Job, now: float) -> float | None:
        """The seconds until the job's end; None before something of it has been computed, and once it is overdue.
        `now` is in seconds by any clock."""
        done = datums_done(job)
        computed = done - job.skipped
        if done != self._done and job.seconds and computed > 0:
            self._done = done
            self._end = now + job.seconds * (job.total - done) / computed
        if self._end is None or self._end <= now:
            return None
        return self._end - now


def datums_done(job: Job) -> float:
    """The datums that are done, and the parts of those at work."""
    parts = [each.progress.done / each.progress.total for each in job.busy if each.progress and each.progress.total]
    return min(job.done + sum(parts), float(job.total))


def time_left(seconds: float) -> str:
    """Remaining time in words, rounded up."""
    return f"{rounded_time(seconds)} left"


def comparison_seconds(pictures: int, cores: int) -> float:
    """The seconds in which so many processor cores compare the hashes of all pictures with each other."""
    return _A_PAIR * pictures**2 / (2 * cores)


def later_seconds(work: ComparisonWork, pipelines: int, compares: bool, datum: float, comparison: float) -> float:
    """The seconds that opt-in pipelines, so many, add to each later change. compares: whether one of them compares the
    part of a new picture with every other one. datum: the seconds of a datum of index, which reads a segment as they
    do. comparison: those of comparing all pictures with each other."""
    parts = work.parts if compares else 0
    return parts * datum + comparison * 2 / max(2, parts) + pipelines * _A_JOB + work.pictures * _A_PICTURE


def is_idle(job: Job) -> bool:
    """Whether a job has succeeded without any datum."""
    return job.state == "success" and not job.total


def result(job: Job) -> str:
    """The result of a job that has ended, in words."""
    if not job.total:
        return "nothing to do" if is_idle(job) else job.state
    datums = counted(job.total, "datum", "datums")
    if job.skipped:
        counts = f"{job.processed:,} of {datums} computed, {job.skipped:,} unchanged"
    else:
        counts = f"{job.done:,} of {datums}"
    failed = f", {job.failed:,} failed" if job.failed else ""
    return f"{job.state}, {counts}{failed}"
