"""One datum set from its first datum to its last: the attempts at each, their processes and their outcomes.

The retry rules are Pachyderm's (`src/server/worker/datum/datum.go`, `.../pipeline/transform/worker.go`), with one
difference: an attempt that succeeds after a recovered one counts as processed. Knows no jobs.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from localpachd.worker.batch_session import BatchSession, end_log_line
from localpachd.worker.commands import failure_reason
from localpachd.worker.datum_set_watch import TIMED_OUT, DatumSetWatch
from localpachd.worker.environment import EnvironmentProblem, datum_variables, task_variables
from localpachd.worker.layout.output_collector import FoundOutput, OutputCollector, OutputError
from localpachd.worker.layout.pfs_layout import DatumPlacement, PlacementError
from localpachd.worker.layout.tree_removal import remove
from localpachd.worker.tasks import DatumOutcome, DatumResult, DatumStats, DatumWork, LogLine, OutputFile, Task
from localpachd.worker.workplace import Workplace

_LARGE = 4 << 20
"""Bytes of an output that is stored while the next datum runs: that takes 10 ms. To see whether a process still has
something of it open takes one."""


@dataclass(frozen=True, slots=True)
class _Unstored:
    """A datum that was processed, and whose output waits in a directory `aside` to be stored. `result` lacks that."""

    result: DatumResult
    outputs: OutputCollector
    found: tuple[FoundOutput, ...]
    aside: Path


class DatumSetRun:
    """Processes datums one after the other at one workplace, in the thread that calls `run`. A large output is stored
    in another one meanwhile."""

    def __init__(
        self,
        task: Task,
        workplace: Workplace,
        session: BatchSession,
        watch: DatumSetWatch,
        log: Callable[[LogLine], None],
    ) -> None:
        self._task = task
        self._workplace = workplace
        self._session = session
        self._inherited = False
        self._watch = watch
        self._log = log
        self._datum_id = ""
        self._pipes = workplace.layout.lazy_pipes(workplace.stores.pipes, self._note, watch.end)

    def run(self, datums: Sequence[DatumWork], done: Callable[[DatumResult], None]) -> bool:
        """Calls `done` for each datum in order, from any thread; returns whether all were processed. The session's
        process is still running then. Raises CancellationError, NoSpace, and what `done` and the log raise."""
        self._session.attach(self._said)
        outcomes: set[DatumOutcome] = set()
        storing: Future[DatumOutcome] | None = None  # of the datum before

        def stored(ended: _Unstored) -> DatumOutcome:
            result = self._stored(ended)
            done(result)
            return result.state

        with closing(self._pipes), ThreadPoolExecutor(1, "output") as writer:
            for work in datums:
                self._watch.check()
                ended = self._datum(work)
                if storing is not None:
                    outcomes.add(storing.result())
                    storing = None
                if isinstance(ended, _Unstored):
                    storing = writer.submit(stored, ended)
                else:
                    outcomes.add(ended.state)
                    done(ended)
            if storing is not None:
                outcomes.add(storing.result())
        return outcomes <= {DatumOutcome.PROCESSED}

    def _datum(self, work: DatumWork) -> DatumResult | _Unstored:
        recovered, left = False, max(self._task.tries, 1)
        while True:
            self._inherited = self._session.inherited
            ended = self._attempt(work, last=left == 1)
            if isinstance(ended, _Unstored) or ended.state == DatumOutcome.PROCESSED:
                return ended
            if self._excused(ended.reason):
                self._note("trying again in a new process: that one was kept from an earlier datum set")
                continue
            recovered = recovered or ended.state == DatumOutcome.RECOVERED
            left -= 1
            if not left:
                return replace(ended, state=DatumOutcome.RECOVERED if recovered else DatumOutcome.FAILED)

    def _excused(self, reason: str) -> bool:
        """Whether an attempt that failed for this reason does not count: no datum may fail because its process has seen
        an earlier datum set."""
        return self._inherited and not self._session.inherited and reason != TIMED_OUT

    def _attempt(self, work: DatumWork, last: bool) -> DatumResult | _Unstored:
        self._datum_id = work.id
        self._watch.begin(work.id)
        try:
            result = self._measured(work, last)
            if isinstance(result, DatumResult) and result.state != DatumOutcome.PROCESSED:
                self._workplace.stores.chunks.disk.check(result.reason)
            return result
        except BaseException:
            self._session.stop()
            raise
        finally:
            self._watch.finish()
            self._datum_id = ""
            self._pipes.clear()
            try:
                self._workplace.layout.clear(work.id)
            except OSError as failure:  # the next datum fails if this is in its way; the current one is done
                self._note(f"cannot clear /pfs: {failure}")

    def _measured(self, work: DatumWork, last: bool) -> DatumResult | _Unstored:
        variables = datum_variables(work, self._workplace.layout.shown)
        env = [f"{name}={value}" for name, value in {**self._workplace.env, **variables}.items()]
        failed = self._session.boot() if self._task.batching else ""  # it starts while its datum is put in place
        begun = time.monotonic()
        try:
            own = {**task_variables(self._task), **variables}
            placed = self._workplace.layout.place(work, own, self._pipes, self._watch.check)
        except PlacementError as failure:
            return DatumResult(
                work.id, DatumOutcome.FAILED, str(failure), DatumStats(download_time=time.monotonic() - begun)
            )
        placed_at = time.monotonic()
        failed = failed or self._session.ready(self._watch)
        given_at = time.monotonic()
        reason, recovered = self._run(env, variables, failed)
        processed_at = time.monotonic()
        place = self._workplace
        outputs = OutputCollector(place.layout, placed, place.stores.chunks, place.linked_files, self._watch.check)
        stats = DatumStats(
            placed_at - begun, processed_at - given_at, 0.0, placed.downloaded + self._pipes.bytes_served
        )
        if not reason:
            try:
                return self._kept(DatumResult(work.id, DatumOutcome.PROCESSED, "", stats), placed, outputs)
            except OutputError as failure:
                reason = str(failure)
                self._note(reason)
        salvaged = outputs.salvage() if last else ()
        return DatumResult(
            work.id, DatumOutcome.RECOVERED if recovered else DatumOutcome.FAILED, reason, stats, salvaged
        )

    def _kept(self, result: DatumResult, placed: DatumPlacement, outputs: OutputCollector) -> DatumResult | _Unstored:
        """The result with its output; a large one is stored later, if no other datum can reach it meanwhile."""
        begun = time.monotonic()
        found = outputs.find()
        if sum(each.size for each in found if each.content is None) >= _LARGE and outputs.own(found):
            aside = self._workplace.layout.set_aside(placed)
            if aside is not None:
                return _Unstored(result, outputs, found, aside)
        return _with_output(result, outputs.store(found, placed.tree), begun)

    def _stored(self, ended: _Unstored) -> DatumResult:
        begun = time.monotonic()
        datum = ended.result.id
        try:
            return _with_output(ended.result, ended.outputs.store(ended.found, ended.aside), begun)
        except OutputError as failure:
            self._workplace.stores.chunks.disk.check(str(failure))
            self._log(LogLine(datum, False, str(failure)))
            return replace(ended.result, state=DatumOutcome.FAILED, reason=str(failure))
        finally:
            try:
                remove(ended.aside)
            except OSError as failure:  # it goes with the workplace
                self._log(LogLine(datum, False, f"cannot delete {failure.filename}: {failure.strerror}"))

    def _run(self, env: list[str], variables: Mapping[str, str], failed: str) -> tuple[str, bool]:
        """Runs user code on the datum in place: (the reason why it failed or "", whether err_cmd then succeeded)."""
        timeout = self._task.datum_timeout
        deadline = None if timeout is None else time.monotonic() + timeout
        if not failed:
            if self._task.batching:
                failed = self._session.hand_out(env, self._watch, deadline)
            else:
                failed = self._execute("user code", self._task.cmd, self._task.stdin, variables, deadline)
        if not failed or not self._task.err_cmd or self._excused(failed):
            return failed, False
        # If the attempt was ended from outside (by its deadline, by a restart), so is this at once, as in Pachyderm.
        name = "user error handling code"
        return failed, not self._execute(name, self._task.err_cmd, self._task.err_stdin, variables, deadline)

    def _execute(
        self,
        name: str,
        cmd: tuple[str, ...],
        stdin: tuple[str, ...],
        variables: Mapping[str, str],
        deadline: float | None,
    ) -> str:
        """Runs a command to its end: the reason why it failed, or ""."""
        over = self._watch.over(deadline)
        if over is not None:
            return over
        self._note(f"beginning to run {name}")
        begun = time.monotonic()
        try:
            process = self._workplace.start(cmd, stdin, variables, self._user_line, self._watch.notify)
        except EnvironmentProblem as problem:
            failed = str(problem)
        else:
            try:
                failed = self._watch.wait(lambda: process.ended, deadline) or ""
            finally:
                process.stop()
            failed = failed or failure_reason(process, self._task.accept_return_code)
        self._note(end_log_line(name, begun, failed))
        return failed

    def _said(self, user: bool, text: str) -> None:
        self._log(LogLine(self._datum_id, user, text))

    def _user_line(self, text: str) -> None:
        self._said(True, text)

    def _note(self, text: str) -> None:
        self._said(False, text)


def _with_output(result: DatumResult, output: tuple[OutputFile, ...], since: float) -> DatumResult:
    uploaded = sum(file.content.size for file in output if not file.linked)
    stats = replace(result.stats, upload_time=time.monotonic() - since, upload_bytes=uploaded)
    return replace(result, stats=stats, output=output)
