"""One batched process at a workplace: started, given datums by its NextDatum calls, ended. Kept warm, it serves several
datum sets.

Knows no attempts and no files.
"""

import threading
import time
from collections import deque
from collections.abc import Callable

from localpachd.worker.commands import CommandProcess, describe_end
from localpachd.worker.datum_set_watch import DatumSetWatch
from localpachd.worker.environment import WORKER_PORT, EnvironmentProblem
from localpachd.worker.tasks import BatchServer, Task
from localpachd.worker.workplace import Workplace

LineCallback = Callable[[bool, str], None]
"""Takes a line of the log: whether user code wrote it, and its text."""

_MOST_LINES = 1000
"""Lines of a process between two datum sets that the second one's log gets; the last ones, if there are more."""


class BatchChannel:
    """The progress of one batched process, as its NextDatum calls show it.

    The first call says that the process is ready; each later one ends the datum that the previous reply carried. A call
    blocks until `give` has the next datum's variables. Every process has its own batch, so that a late call from a
    killed process cannot be mistaken for its successor's. `condition` guards its state, and is notified of each change.
    """

    def __init__(self, server: BatchServer, condition: threading.Condition) -> None:
        self._server = server
        self._condition = condition
        self._calls = 0
        self._env: list[str] | None = None
        self._working = False
        self._closed = False
        self.error = ""
        """The error that the process reported for its last datum: "" for success."""
        self.port = server.open(self.next_datum)

    @property
    def idle(self) -> bool:
        """Whether the process is waiting in a call for a datum. To be read with the condition held."""
        return self._calls > 0 and self._env is None and not self._working

    def give(self, env: list[str]) -> None:
        """Answers the waiting call with a datum's `KEY=value` list."""
        with self._condition:
            self.error = ""
            self._env = env
            self._condition.notify_all()

    def close(self) -> None:
        """Releases every waiting call and stops listening."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        self._server.close(self.port)

    def next_datum(self, error: str) -> list[str] | None:
        """Serves one NextDatum call: the next datum's variables, or None when no datum will follow."""
        condition = self._condition
        with condition:
            self._calls += 1
            mine = self._calls
            if self._working:  # otherwise no datum was being processed, and the error concerns none
                self._working = False
                self.error = error
            condition.notify_all()
            # A call that arrives while another waits is the same process asking again after its client gave up.
            condition.wait_for(lambda: self._closed or self._calls != mine or self._env is not None)
            if self._closed or self._calls != mine:
                return None
            env, self._env = self._env, None
            self._working = True
            return env


class BatchSession:
    """The batched process of a task, if one is running, for the datum set that is attached.

    `start` runs a function that starts a process and returns it, in the thread to which the process is to belong.
    `condition` is notified when the process asks for a datum or ends; watches of attached sets must share it.
    """

    def __init__(
        self,
        task: Task,
        workplace: Workplace,
        server: BatchServer,
        condition: threading.Condition,
        start: Callable[[Callable[[], CommandProcess]], CommandProcess],
    ) -> None:
        self.condition = condition
        self._task = task
        self._workplace = workplace
        self._server = server
        self._start = start
        self._process: CommandProcess | None = None
        self._batch: BatchChannel | None = None
        self._begun = 0.0
        self._stillborn: list[str] = []
        self._lock = threading.Lock()
        self._say: LineCallback | None = None
        self._unsaid: deque[tuple[bool, str]] = deque(maxlen=_MOST_LINES)
        self._unsayable = False
        self.inherited = False
        """Whether the running process was started for an earlier datum set."""

    @property
    def waiting(self) -> bool:
        """Whether a process is running that waits for a datum, and whose output could all be passed on."""
        with self.condition:
            process, batch = self._process, self._batch
            return process is not None and batch is not None and batch.idle and not (process.ended or self._unsayable)

    @property
    def held(self) -> int:
        """The bytes of memory that the process holds."""
        return 0 if self._process is None else self._process.held

    def attach(self, say: LineCallback) -> None:
        """Passes lines of the log to a datum set from now on: first those that no set has had."""
        if self._process is not None:
            self._process.catch_up()
        with self._lock:
            self._say = say
            while self._unsaid:
                say(*self._unsaid.popleft())

    def detach(self) -> None:
        """Leaves a datum set, whose log gets no more lines when this returns. A process that is running is inherited by
        the next one."""
        with self._lock:
            self._say = None
        self.inherited = self._process is not None

    def boot(self) -> str:
        """Makes sure that the process is running or starting: the reason why it cannot, or ""."""
        if self._process is not None:
            return ""
        if len(self._stillborn) >= max(self._task.tries, 1):
            return self._stillborn[-1]  # it never saw a datum, so with the next one it would end in the same way
        self.inherited = False
        self._line(False, "beginning to run user code")
        self._begun = time.monotonic()
        batch = BatchChannel(self._server, self.condition)
        try:
            self._process = self._start(lambda: self._started(batch.port))
        except EnvironmentProblem as problem:
            batch.close()
            return str(problem)
        self._batch = batch
        return ""

    def ready(self, watch: DatumSetWatch) -> str:
        """Waits until the process asks for a datum: "", or the reason why it does not; then it is stopped. An inherited
        one that has died meanwhile is replaced."""
        process, batch = self._process, self._batch
        if process is None or batch is None:
            return ""
        failed = watch.wait(lambda: process.ended or batch.idle) or ""
        if not failed and process.ended and self.inherited:
            self.stop(describe_end(process))
            return self.boot() or self.ready(watch)
        if not failed and process.ended:
            if batch.idle:
                failed = f"user code exited while it waited for a datum: {describe_end(process)}"
            else:
                failed = (
                    process.refusal or f"user code exited before its first call of NextDatum: {describe_end(process)}"
                )
                self._stillborn.append(failed)
        else:
            self._stillborn.clear()
        if failed:
            self.stop(failed)
        return failed

    def hand_out(self, env: list[str], watch: DatumSetWatch, deadline: float | None) -> str:
        """Gives the datum in place to the waiting process: "", or the reason why that failed; then it is stopped."""
        process, batch = self._process, self._batch
        assert process is not None and batch is not None
        batch.give([*env, f"{WORKER_PORT}={batch.port}"])
        failed = watch.wait(lambda: process.ended or batch.idle, deadline)
        process.catch_up()  # this datum's output must not appear under the next one
        if failed is None:
            failed = batch.error if batch.idle else f"user code exited prematurely: {describe_end(process)}"
        if failed:
            self.stop(failed)
        return failed

    def stop(self, failed: str = "") -> None:
        """Ends the process, if there is one."""
        process, batch = self._process, self._batch
        self._process = self._batch = None
        self.inherited = False
        try:
            if process is not None:
                process.stop()
                self._line(False, end_log_line("user code", self._begun, failed))
        finally:
            if batch is not None:  # closed last, so that the process does not see its call fail
                batch.close()

    def _started(self, port: int) -> CommandProcess:
        variables = {WORKER_PORT: str(port)}
        return self._workplace.start(self._task.cmd, self._task.stdin, variables, self._user_line, self._notify)

    def _notify(self) -> None:
        with self.condition:
            self.condition.notify_all()

    def _user_line(self, text: str) -> None:
        try:
            self._line(True, text)
        except Exception:  # stopping the process raises it
            self._unsayable = True
            raise

    def _line(self, user: bool, text: str) -> None:
        with self._lock:
            if self._say is None:
                self._unsaid.append((user, text))
            else:
                self._say(user, text)


def end_log_line(name: str, begun: float, failed: str) -> str:
    """The line of the log at the end of a command that began then, on the monotonic clock."""
    seconds = f"{time.monotonic() - begun:.3f}s"
    return f"errored running {name} after {seconds}: {failed}" if failed else f"finished running {name} after {seconds}"
