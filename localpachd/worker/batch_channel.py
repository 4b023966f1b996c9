"""The NextDatum calls of one batched process, and the datums that answer them. Knows neither gRPC nor files."""

import threading

from localpachd.worker.tasks import BatchServer


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
        self._error = ""
        self.port = server.open(self.next_datum)

    @property
    def idle(self) -> bool:
        """Whether the process is waiting in a call for a datum. To be read with the condition held."""
        return self._calls > 0 and self._env is None and not self._working

    @property
    def error(self) -> str:
        """The error that the process reported for its last datum: "" for success."""
        return self._error

    def give(self, env: list[str]) -> None:
        """Answers the waiting call with a datum's `KEY=value` list."""
        with self._condition:
            self._error = ""
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
                self._error = error
            condition.notify_all()
            # A call that arrives while another waits is the same process asking again after its client gave up.
            condition.wait_for(lambda: self._closed or self._calls != mine or self._env is not None)
            if self._closed or self._calls != mine:
                return None
            env, self._env = self._env, None
            self._working = True
            return env
