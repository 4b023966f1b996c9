"""One datum set from its first datum to its last: the attempts at each, their processes and their outcomes.

The retry rules are Pachyderm's (`src/server/worker/datum/datum.go`, `.../pipeline/transform/worker.go`), with one
difference: an attempt that succeeds after a recovered one counts as processed. Knows no jobs.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from localpachd.worker.batching import Batch
from localpachd.worker.commands import Process, how, judged
from localpachd.worker.environment import WORKER_PORT, EnvironmentProblem, datum_variables, task_variables
from localpachd.worker.layout.outputs import OutputError, Outputs
from localpachd.worker.layout.placing import PlacementError
from localpachd.worker.tasks import BatchServer, DatumResult, DatumWork, LogLine, Outcome, Stats, Task
from localpachd.worker.watch import Watch
from localpachd.worker.workplace import Workplace


class DatumSet:
    """Processes datums one after the other at one workplace. Everything happens in the thread that calls `run`."""

    def __init__(
        self, task: Task, workplace: Workplace, server: BatchServer, watch: Watch, log: Callable[[LogLine], None]
    ) -> None:
        self._task = task
        self._workplace = workplace
        self._server = server
        self._watch = watch
        self._log = log
        self._datum_id = ""
        self._pipes = workplace.layout.lazy_pipes(workplace.stores.pipes, self._note, watch.end)
        self._process: Process | None = None
        self._batch: Batch | None = None
        self._started = 0.0
        self._stillborn: list[str] = []

    def run(self, datums: Sequence[DatumWork], done: Callable[[DatumResult], None]) -> None:
        """Calls `done` for each datum in order. Raises Cancelled, NoSpace, and what `done` and the log raise."""
        try:
            for work in datums:
                self._watch.check()
                done(self._datum(work))
        finally:
            self._stop()
            self._pipes.close()

    def _datum(self, work: DatumWork) -> DatumResult:
        recovered = False
        for left in range(max(self._task.tries, 1) - 1, -1, -1):
            result = self._attempt(work, last=left == 0)
            if result.state == Outcome.PROCESSED:
                return result
            recovered = recovered or result.state == Outcome.RECOVERED
        return replace(result, state=Outcome.RECOVERED if recovered else Outcome.FAILED)

    def _attempt(self, work: DatumWork, last: bool) -> DatumResult:
        self._datum_id = work.id
        self._watch.begin(work.id)
        try:
            result = self._measured(work, last)
            if result.state != Outcome.PROCESSED:
                self._workplace.stores.chunks.disk.check(result.reason)
            return result
        except BaseException:
            self._stop()
            raise
        finally:
            self._watch.finish()
            self._datum_id = ""
            self._pipes.clear()
            try:
                self._workplace.layout.clear(work.id)
            except OSError as failure:  # the next datum fails if this is in its way; the current one is done
                self._note(f"cannot clear /pfs: {failure}")

    def _measured(self, work: DatumWork, last: bool) -> DatumResult:
        variables = datum_variables(work, self._workplace.layout.shown)
        env = [f"{name}={value}" for name, value in {**self._workplace.env, **variables}.items()]
        failed = self._boot()  # a batched process starts while its datum is put in place
        begun = time.monotonic()
        try:
            own = {**task_variables(self._task), **variables}
            placed = self._workplace.layout.place(work, own, self._pipes, self._watch.check)
        except PlacementError as failure:
            return DatumResult(work.id, Outcome.FAILED, str(failure), Stats(download_time=time.monotonic() - begun))
        placed_at = time.monotonic()
        failed = failed or self._ready()
        given_at = time.monotonic()
        reason, recovered = self._run(env, variables, failed)
        processed_at = time.monotonic()
        place = self._workplace
        outputs = Outputs(place.layout, placed, place.stores.chunks, place.linked_files, self._watch.check)
        stats = Stats(placed_at - begun, processed_at - given_at, 0.0, placed.downloaded + self._pipes.bytes_served)
        if not reason:
            try:
                return self._kept(work, outputs, stats, processed_at)
            except OutputError as failure:
                reason = str(failure)
                self._note(reason)
        salvaged = outputs.salvage() if last else ()
        return DatumResult(work.id, Outcome.RECOVERED if recovered else Outcome.FAILED, reason, stats, salvaged)

    def _kept(self, work: DatumWork, outputs: Outputs, stats: Stats, since: float) -> DatumResult:
        output = outputs.collect()
        uploaded = sum(file.content.size for file in output)
        stats = replace(stats, upload_time=time.monotonic() - since, upload_bytes=uploaded)
        return DatumResult(work.id, Outcome.PROCESSED, "", stats, output)

    def _run(self, env: list[str], variables: Mapping[str, str], failed: str) -> tuple[str, bool]:
        """Runs user code on the datum in place: (the reason why it failed or "", whether err_cmd then succeeded)."""
        timeout = self._task.datum_timeout
        deadline = None if timeout is None else time.monotonic() + timeout
        if not failed:
            if self._task.batching:
                failed = self._hand_out(env, deadline)
            else:
                failed = self._execute("user code", self._task.cmd, self._task.stdin, variables, deadline)
        if not failed or not self._task.err_cmd:
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
            failed = failed or judged(process, self._task.accept_return_code)
        self._note(_ending(name, begun, failed))
        return failed

    def _boot(self) -> str:
        """Makes sure that a batched process is running or starting: the reason why it cannot, or ""."""
        if not self._task.batching or self._process is not None:
            return ""
        if len(self._stillborn) >= max(self._task.tries, 1):
            return self._stillborn[-1]  # it never saw a datum, so with the next one it would end in the same way
        self._note("beginning to run user code")
        self._started = time.monotonic()
        batch = Batch(self._server, self._watch)
        port = {WORKER_PORT: str(batch.port)}
        try:
            self._process = self._workplace.start(
                self._task.cmd, self._task.stdin, port, self._user_line, self._watch.notify
            )
        except EnvironmentProblem as problem:
            batch.close()
            return str(problem)
        self._batch = batch
        return ""

    def _ready(self) -> str:
        """Waits until the batched process asks for a datum: "", or the reason why it does not; then it is stopped."""
        process, batch = self._process, self._batch
        if process is None or batch is None:
            return ""
        failed = self._watch.wait(lambda: process.ended or batch.idle) or ""
        if not failed and process.ended:
            if batch.idle:
                failed = f"user code exited while it waited for a datum: {how(process)}"
            else:
                failed = process.refusal or f"user code exited before its first call of NextDatum: {how(process)}"
                self._stillborn.append(failed)
        else:
            self._stillborn.clear()
        if failed:
            self._stop(failed)
        return failed

    def _hand_out(self, env: list[str], deadline: float | None) -> str:
        """Gives the datum in place to the waiting process: "", or the reason why that failed; then it is stopped."""
        process, batch = self._process, self._batch
        assert process is not None and batch is not None
        batch.give([*env, f"{WORKER_PORT}={batch.port}"])
        failed = self._watch.wait(lambda: process.ended or batch.idle, deadline)
        process.catch_up()  # this datum's output must not appear under the next one
        if failed is None:
            failed = batch.error if batch.idle else f"user code exited prematurely: {how(process)}"
        if failed:
            self._stop(failed)
        return failed

    def _stop(self, failed: str = "") -> None:
        """Ends the batched process, if there is one."""
        process, batch = self._process, self._batch
        self._process = self._batch = None
        try:
            if process is not None:
                process.stop()
                self._note(_ending("user code", self._started, failed))
        finally:
            if batch is not None:  # closed last, so that the process does not see its call fail
                batch.close()

    def _user_line(self, text: str) -> None:
        self._log(LogLine(self._datum_id, True, text))

    def _note(self, text: str) -> None:
        self._log(LogLine(self._datum_id, False, text))


def _ending(name: str, begun: float, failed: str) -> str:
    seconds = f"{time.monotonic() - begun:.3f}s"
    return f"errored running {name} after {seconds}: {failed}" if failed else f"finished running {name} after {seconds}"
