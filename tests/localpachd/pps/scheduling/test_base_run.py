"""Work in a thread of its own that can be cancelled at any moment."""

import threading

import pytest

from localpachd.pps.pps_entities import Job, Pipeline
from localpachd.pps.scheduling.base_run import BaseRun


class Part:
    """Runs until it is cancelled."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        self.cancelled.set()


class Waiting(BaseRun):
    """Waits for `go`, then holds a part until it is cancelled."""

    def __init__(self) -> None:
        self.go, self.holds, self.over = threading.Event(), threading.Event(), threading.Event()
        super().__init__("waiting", Job(Pipeline("default", "edges"), "1" * 32), lambda run: self.over.set())

    def _work(self) -> None:
        assert self.go.wait(30)
        part = self._hold(Part())
        self.holds.set()
        assert part.cancelled.wait(30)


@pytest.mark.parametrize("held", [False, True])
def test_a_part_is_cancelled_whether_it_is_held_before_or_after(held: bool) -> None:
    run = Waiting()
    run.start()
    if held:
        run.go.set()
        assert run.holds.wait(30)
    run.cancel()
    run.go.set()
    run.join()
    assert run.over.is_set()
