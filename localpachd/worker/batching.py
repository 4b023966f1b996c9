"""The NextDatum side of one batched process: its calls come in here, its datums go out. Knows no gRPC, no files."""

from localpachd.worker.tasks import BatchServer
from localpachd.worker.watch import Watch


class Batch:
    """What one batched process is doing, told by its NextDatum calls.

    The first call says that it is ready; each later one ends the datum that the previous reply gave it. A call blocks
    until `give` has the next datum's variables. Every process has its own batch, so that a late call of a killed one
    cannot be taken for its successor's.
    """

    def __init__(self, server: BatchServer, watch: Watch) -> None:
        self._server = server
        self._watch = watch
        self._calls = 0
        self._env: list[str] | None = None
        self._working = False
        self._closed = False
        self._error = ""
        self.port = server.open(self.next_datum)

    @property
    def idle(self) -> bool:
        """Whether the process waits in a call for a datum. Asked with the watch's condition held."""
        return self._calls > 0 and self._env is None and not self._working

    @property
    def error(self) -> str:
        """What the process said of the last datum it was given: "" for success."""
        return self._error

    def give(self, env: list[str]) -> None:
        """Answers the waiting call with a datum's `KEY=value` list."""
        with self._watch.condition:
            self._error = ""
            self._env = env
            self._watch.condition.notify_all()

    def close(self) -> None:
        """Releases every waiting call and stops listening."""
        with self._watch.condition:
            self._closed = True
            self._watch.condition.notify_all()
        self._server.close(self.port)

    def next_datum(self, error: str) -> list[str] | None:
        """One NextDatum call: the next datum's variables, or None when there will be none."""
        condition = self._watch.condition
        with condition:
            self._calls += 1
            mine = self._calls
            if self._working:  # otherwise nothing was being processed, and there is nothing to report on
                self._working = False
                self._error = error
            condition.notify_all()
            # A call that comes while another waits is the same process asking again after its client gave up.
            condition.wait_for(lambda: self._closed or self._calls != mine or self._env is not None)
            if self._closed or self._calls != mine:
                return None
            env, self._env = self._env, None
            self._working = True
            return env
