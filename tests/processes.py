"""Tests run in several processes, which are forked from the one that has collected all of them: so modules are imported
once, TensorFlow among them, and share their memory.

A process takes the next group of tests whenever it is free. Fixtures of the session are shared by the files that it
runs one after the other, but those of a group of several files end with it: they are large, and of no use to others. It
sends its reports to the collector, which shows and counts them as if it had run the tests itself. Knows nothing of the
order of tests, see `file_schedule`.
"""

import contextlib
import faulthandler
import multiprocessing
import os
import signal
import struct
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any, cast

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

Group = Sequence[pytest.Item]

ENDING = 120.0
"""Seconds for a process to end after its last test. One that has not ended then shows where each thread stands."""

_FORK = multiprocessing.get_context("fork")
_NUMBER = struct.Struct("=H")

_base: list[Path] = []


def shared(factory: pytest.TempPathFactory) -> Path:
    """The temporary directory of the run, which all of its processes see."""
    return _base[0] if _base else factory.getbasetemp()


class _Reports:
    """The plugin of a process that sends what happens to the collector."""

    def __init__(self, config: pytest.Config, collector: "Connection[Any, Any]") -> None:
        self._config = config
        self._collector = collector

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._collector.send(("logstart", (nodeid, location)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._collector.send(("logreport", data))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._collector.send(("logfinish", (nodeid, location)))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        said = warning_message
        what = str(said.message), said.category.__name__, said.filename, said.lineno
        self._collector.send(("warning", (what, when, nodeid, location)))


@dataclass
class _Process:
    """A process as the collector sees it. left: the tests of its group that have not ended. last: the one that began
    last."""

    process: ForkProcess
    reports: "Connection[Any, Any]"
    left: list[pytest.Item] = field(default_factory=list)
    last: pytest.Item | None = None


class Processes:
    """The plugin that runs the tests in so many processes, the first groups first."""

    def __init__(self, number: int, grouped: Any) -> None:
        self._number = number
        self._grouped = grouped

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        groups: list[list[pytest.Item]] = self._grouped(session.items)
        if session.config.option.collectonly or session.testsfailed or not groups:
            return None  # which pytest answers itself
        _Run(session, groups).finish(min(self._number, len(groups)))
        return True


class _Run:
    """The run of all groups. Their numbers lie in a pipe, from which each process takes the next."""

    def __init__(self, session: pytest.Session, groups: Sequence[Group]) -> None:
        self._session = session
        self._hook = session.config.hook
        self._groups = groups
        self._group_of = {item.nodeid: group for group in groups for item in group}
        self._running: list[_Process] = []
        self._started = 0
        _base[:] = [_directories(session.config).getbasetemp()]
        self._numbers, full = os.pipe()
        os.write(full, b"".join(map(_NUMBER.pack, range(len(groups)))))
        os.close(full)

    def finish(self, number: int) -> None:
        """Runs all groups in so many processes."""
        reporter: Any = self._session.config.pluginmanager.getplugin("terminalreporter")
        reporter.showfspath = False  # the files take turns
        try:
            for _ in range(number):
                self._fork([])
            while self._running:
                ready = wait([each.reports for each in self._running])
                for each in [each for each in self._running if each.reports in ready]:
                    self._hear(each)
                if self._session.shouldfail:
                    raise self._session.Failed(self._session.shouldfail)
                if self._session.shouldstop:
                    raise self._session.Interrupted(self._session.shouldstop)
        finally:
            for each in self._running:
                each.process.terminate()
            for each in self._running:
                each.process.join()

    def _fork(self, first: Group) -> None:
        """Starts a process that runs these tests, and then one group after the other."""
        receiver, sender = _FORK.Pipe(duplex=False)
        self._started += 1
        process = _FORK.Process(target=self._work, args=(self._started, first, sender))
        process.start()
        sender.close()
        self._running.append(_Process(process, receiver))

    def _hear(self, process: _Process) -> None:
        """Passes one report on, or notices the end of a process."""
        try:
            kind, what = process.reports.recv()
        except EOFError:
            self._end(process)
            return
        if kind == "logreport":
            report = self._hook.pytest_report_from_serializable(config=self._session.config, data=what)
            self._hook.pytest_runtest_logreport(report=report)
        elif kind == "warning":
            (text, category, file, line), when, nodeid, location = what
            message = warnings.WarningMessage(text, type(category, (Warning,), {}), file, line)
            self._hook.pytest_warning_recorded.call_historic(
                kwargs={"warning_message": message, "when": when, "nodeid": nodeid, "location": location}
            )
        elif kind == "logstart":
            group = list(self._group_of[what[0]])
            process.left = group[[item.nodeid for item in group].index(what[0]) :]
            process.last = process.left[0]
            self._hook.pytest_runtest_logstart(nodeid=what[0], location=what[1])
        else:
            del process.left[:1]
            self._hook.pytest_runtest_logfinish(nodeid=what[0], location=what[1])

    def _end(self, process: _Process) -> None:
        """Reports a test that has ended its process, and lets another process go on with the rest."""
        self._running.remove(process)
        process.process.join()
        if process.process.exitcode == 0:
            return
        (lost, *rest) = process.left or [process.last or self._session.items[-1]]
        when = "" if process.left else ", after its last test"
        reason = f"the process of this test ended with status {process.process.exitcode}{when}"
        report = pytest.TestReport(lost.nodeid, lost.location, {}, "failed", reason, "call")
        self._hook.pytest_runtest_logreport(report=report)
        self._fork(rest)

    def _work(self, number: int, first: Group, collector: "Connection[Any, Any]") -> None:
        """The work of a process."""
        for each in self._running:
            each.reports.close()
        session, config = self._session, self._session.config
        _settle(config, number)
        config.pluginmanager.register(_Reports(config, collector))
        item = first[0] if first else self._groups[0][0]
        with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):  # told to end, or the collector is gone
            for group in self._taken(first):
                kept = session if group[0].path == group[-1].path else None
                for item, following in zip(group, [*group[1:], kept], strict=True):
                    config.hook.pytest_runtest_protocol(item=item, nextitem=cast(pytest.Item, following))
        # Neither pytest-timeout nor the collector limits what follows, nor Python's wait for threads after it.
        faulthandler.dump_traceback_later(ENDING, exit=True, file=config.stash.get(fault_handler_stderr_fd_key, 2))
        for interrupt in (signal.SIGINT, signal.SIGTERM):
            signal.signal(interrupt, signal.SIG_IGN)
        call = pytest.CallInfo.from_call(lambda: session._setupstate.teardown_exact(None), when="teardown")
        if call.excinfo is not None:
            report = config.hook.pytest_runtest_makereport(item=item, call=call)
            config.hook.pytest_runtest_logreport(report=report)

    def _taken(self, first: Group) -> Iterator[Group]:
        if first:
            yield first
        while taken := os.read(self._numbers, _NUMBER.size):
            yield self._groups[_NUMBER.unpack(taken)[0]]


def _settle(config: pytest.Config, number: int) -> None:
    """Gives a forked process what it must not share: a directory, captured output, and a terminal."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    plugins: Any = config.pluginmanager
    plugins.getplugin("terminalreporter")._tw._file = Path(os.devnull).open("w")  # noqa: SIM115  until it ends
    capture = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    own = _base[0] / f"process-{number}"
    own.mkdir(mode=0o700)
    _directories(config)._basetemp = own


def _directories(config: Any) -> Any:
    return config._tmp_path_factory
