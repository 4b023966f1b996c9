"""The processor time of a server and of every process below it, those that end meanwhile too. Memory as in
`benchmarks.kit.trees`, whose sums lose processes that end without being waited for: warm ones of pipelines do.
"""

from __future__ import annotations

import threading
from types import TracebackType

from benchmarks.kit.trees import Tree, Usage, members, parents, processor_seconds

_EVERY = 0.5
"""Seconds between two looks; what a process spends after the last one is not counted."""


class Spending:
    """A server's processes, watched while this is open."""

    def __init__(self, server: int) -> None:
        self._server = server
        self._tree = Tree(server)
        self._before: dict[int, float] = {}
        self._last: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="spending", daemon=True)

    def __enter__(self) -> Spending:
        self._tree.__enter__()
        self._look()
        self._before = dict(self._last)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        self._tree.__exit__(kind, error, at)

    def usage(self) -> Usage:
        """What was used since this was opened; `own` is the server's."""
        self._look()
        spent = {process: seconds - self._before.get(process, 0.0) for process, seconds in self._last.items()}
        return Usage(sum(spent.values()), spent[self._server], self._tree.peak)

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY):
            self._look()

    def _look(self) -> None:
        for process in members(self._server, parents()):
            spent, _ = processor_seconds(process)
            self._last[process] = max(spent, self._last.get(process, 0.0))
