"""Stages, and the decoders that they start, forked from a process that has imported what they import: that is most of
the work of a stage with a few small pictures. What a stage sees is what it would see otherwise: its arguments,
variables, directory, open files, processors, and the worker's namespaces.

    python -m tests.forked_stages KIND FD DIRECTORY    # serves the requests of tests/forked_python.py

`python` is a program for the place of Python, which asks for that: a server's, or a command's.
"""

import contextlib
import ctypes
import fcntl
import gc
import importlib
import marshal
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests import forked_python
from tests.forking import become

_ROOT = Path(__file__).parent.parent
_PYTHON = Path(sys.executable)
_LONGEST = 200_000  # bytes of arguments and variables
_MOST_FILES = 250
_HIGH = 600  # the numbers of files that are on their way to their own
_PR_SET_PDEATHSIG = 1

READ_ONCE = (
    "PYTHONPATH", "PYTHONWARNINGS", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE",
    "MKL_NUM_THREADS", "TF_ENABLE_ONEDNN_OPTS", "XLA_FLAGS", "KERAS_BACKEND", "KERAS_HOME",
)  # fmt: skip
"""Variables that Python and libraries read as they start. A stage with another value is started, not forked."""

STARTED = ("serve", "classify_serve", "layout")
"""Stages that are started: services heed signals, and the layout comes before NumPy's threads."""

_BY_KERAS = ("train", "zoo")
_DECODER = "from stages.decode.decoder_processes import main; main()"
_STAGES = (
    "annotations", "duplicates", "evaluate", "features", "fetch", "index", "labelled", "listing", "map", "neighbours",
    "partition", "preprocess", "render", "search", "select", "vector_index",
)  # fmt: skip
_LATER = (
    "stages.backbone.embedder_factory", "stages.backbone.feature_extractor", "stages.backbone.text_points",
    "stages.backbone.text_tower", "stages.files.question", "stages.filters.entry_question",
    "stages.filters.where_clause", "stages.decode.decoder_processes",
)  # fmt: skip
"""Modules that stages import when they need them."""

# Starts only what is asked for by its own name: anything else is Python's, as quickly as before.
_IN_PLACE = """#!/bin/sh
case "$*" in
{started}) ;;
{by_keras}) exec {ask} {keras} {python} "$@" ;;
"-m stages."* | "-P -m stages."* | "-c "*"{decoder}") exec {ask} {usual} {python} "$@" ;;
esac
exec {python} "$@"
"""

_made: dict[int, Path] = {}
"""By the process that made it, which may have been forked since."""


def python() -> Path:
    """The program for the place of Python. It is in a directory with all others that are beside Python."""
    if os.getpid() not in _made:
        _made[os.getpid()] = _make()
    return _made[os.getpid()] / _PYTHON.name


def _make() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="python-"))
    directory.chmod(0o755)
    usual, keras = (_start(kind, directory) for kind in ("usual", "keras"))
    python = shlex.quote(str(_PYTHON))
    text = _IN_PLACE.format(
        started=_patterns(STARTED),
        by_keras=_patterns(_BY_KERAS),
        ask=f"{python} -IS {shlex.quote(forked_python.__file__)}",
        usual=usual,
        keras=keras,
        python=python,
        decoder=_DECODER,
    )
    for each in _PYTHON.parent.iterdir():
        if each.name.startswith("python"):
            (directory / each.name).write_text(text)
            (directory / each.name).chmod(0o755)
        else:
            (directory / each.name).symlink_to(each)
    return directory


def _patterns(stages: Sequence[str]) -> str:
    return " | ".join(f'"{options}-m stages.{each}"*' for each in stages for options in ("", "-P "))


def _start(kind: str, directory: Path) -> str:
    """Starts the process that stages are forked from, which ends with this one; returns its address."""
    address = f"lookalike-{uuid4().hex}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"\0{address}")
        listener.listen(128)
        command = [str(_PYTHON), "-m", "tests.forked_stages", kind, str(listener.fileno()), str(directory)]
        process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])
    _running.append(process)
    return address


_running: list["subprocess.Popen[bytes]"] = []


def _prepare(kind: str) -> None:
    """Imports what stages import, and forgets the stages themselves, which are the programs."""
    before = dict(os.environ)
    gc.disable()
    from_ = importlib.import_module
    with from_("stages.backbone.keras_import").quiet():
        # Not by its own name, which remembers that it has set the variables for this.
        from_("stages.backbone.graphs.tensorflow_library").library.__wrapped__()
        if kind == "keras":
            from_("stages.classify.training.training_task")
    for name in (*(f"stages.{each}" for each in _STAGES), *_LATER):
        from_(name)
    for each in _STAGES:
        del sys.modules[f"stages.{each}"]
    os.environ.clear()
    os.environ.update(before)
    gc.freeze()
    gc.enable()


class _Origin:
    """The process that all are forked from. It ends with the tests, and what it has forked with what asked for it."""

    def __init__(self, kind: str, listener: socket.socket, directory: str) -> None:
        self._kind = kind
        self._listener = listener
        self._directory = directory
        self._asking: dict[int, tuple[int, socket.socket]] = {}
        self._woken, self._wake = socket.socketpair()
        self._own = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in forked_python.NAMESPACES]
        self._libc = ctypes.CDLL(None)

    def serve(self) -> Mapping[str, Any]:
        """Forks a process for each request; returns in these processes, with the request, not in this one."""
        self._wake.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        prepared = False
        while True:
            given: list[Any] = [0, self._woken, self._listener, *self._asking]
            ready, _, _ = select.select(given, [], [])
            if 0 in ready:
                shutil.rmtree(self._directory, ignore_errors=True)
                os._exit(0)
            if self._woken in ready:
                self._woken.recv(4096)
                self._reap()
            for each in self._asking.keys() & set(ready):  # it has ended
                os.kill(self._asking[each][0], signal.SIGKILL)
            if self._listener in ready:
                if not prepared:
                    _prepare(self._kind)
                    prepared = True
                if (request := self._answer(self._listener.accept()[0])) is not None:
                    return request

    def _reap(self) -> None:
        for number, (pid, connection) in [*self._asking.items()]:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self._asking[number]
                with contextlib.suppress(OSError):
                    connection.send(marshal.dumps(os.waitstatus_to_exitcode(status)))
                connection.close()

    def _answer(self, connection: socket.socket) -> Mapping[str, Any] | None:
        """Forks the program that is asked for, unless it has to be started; returns its request in it alone."""
        message, files, _, _ = socket.recv_fds(connection, _LONGEST, _MOST_FILES)
        request: dict[str, Any] = marshal.loads(message) if message else {}
        spaces, given = files[: len(self._own)], files[len(self._own) :]
        pid = self._fork(spaces[-1]) if request and _alike(request) else -1
        if pid == 0:
            self._enter(spaces[:-1], connection)
            _take(given, request["numbers"])
            return request
        if pid > 0:
            self._asking[connection.fileno()] = (pid, connection)
            with contextlib.suppress(OSError):  # it has been killed
                connection.send(forked_python.ACCEPTED)
        else:
            connection.close()
        for file in files:
            os.close(file)
        return None

    def _fork(self, space: int) -> int:
        """Forks a process into a namespace of processes; -1 if that cannot be, since all in it have ended, say."""
        if self._libc.setns(space, 0):
            return -1
        try:
            pid = os.fork()
        except OSError:
            pid = -1
        if pid:
            self._libc.setns(self._own[-1], 0)
        return pid

    def _enter(self, spaces: Sequence[int], connection: socket.socket) -> None:
        """Makes a forked process one of these namespaces, without what belongs to this one."""
        self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if any(self._libc.setns(each, 0) for each in spaces):
            os._exit(1)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        asking = (other for _, other in self._asking.values())
        for each in (self._listener, self._woken, self._wake, connection, *asking):
            each.detach()  # its number will be another's


def _alike(request: Mapping[str, Any]) -> bool:
    """Whether a program would be what it would be if it was started."""
    variables = request["variables"]
    same = all(variables.get(each) == os.environ.get(each) for each in READ_ONCE)
    return same and request["user"] == os.getresuid()


def _take(given: Sequence[int], numbers: Sequence[int]) -> None:
    """Gives open files their numbers, and closes all others."""
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD, _HIGH) for each in given]
    for each, number in zip(moved, numbers, strict=True):
        os.dup2(each, number)
    for low, high in pairwise([-1, *sorted(numbers), 1024]):
        if high - low > 1:  # closerange would take none for all
            os.closerange(low + 1, high)


def _run(arguments: list[str]) -> None:
    """What Python does with these arguments."""
    if arguments[0] == "-P":
        del arguments[0]
    option, program, *rest = arguments
    sys.argv[:] = [option, *rest]
    if option == "-c":
        exec(program, {"__name__": "__main__"})
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)


def main() -> None:
    kind, number, directory = sys.argv[1:]
    del sys.path[0]  # where this was started
    heeded = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tests end it
    request = _Origin(kind, socket.socket(fileno=int(number)), directory).serve()
    signal.signal(signal.SIGINT, heeded)
    os.sched_setaffinity(0, request["processors"])
    arguments = request["arguments"]
    become(arguments, request["variables"], request["directory"], f"{directory}/{_PYTHON.name}")
    if arguments[0] != "-P":
        sys.path.insert(0, request["directory"])
    _run(arguments)


if __name__ == "__main__":
    main()
