"""Ctrl-C pressed at any moment, and where Python drops its exception."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import pytest

from pipelines.client.server.connection import Connection
from pipelines.library.datasets.samples import library_crops
from stages.backbone.photographs import open_photograph
from tests import pressed_command
from tests.command import HEED_INTERRUPTS, Command
from tests.example_counts import examples
from tests.forking import Forked

ROOT = Path(__file__).resolve().parents[4]

PROGRAM = """
import os, signal
from pipelines.commands.kit import interrupts

class Finalised:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # the handler runs in here
            pass

interrupts.listen()
interrupts.begin()
interrupts.check()
Finalised()
print("went on", flush=True)
try:
    interrupts.check()
except KeyboardInterrupt:
    print("interrupted")
"""


def started(program: str, *arguments: str) -> subprocess.Popen[str]:
    """A program that reacts to Ctrl-C even if the tests, started in the background, ignore it."""
    return subprocess.Popen(
        [sys.executable, "-c", f"{HEED_INTERRUPTS}\n{program}", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_an_interrupt_in_a_finaliser_is_raised_by_the_next_check() -> None:
    with started(PROGRAM) as process:
        assert process.communicate(timeout=50) == ("went on\ninterrupted\n", "")


@pytest.fixture
def silent(connected: threading.Event) -> Iterator[str]:
    """The address of a server that never answers a call."""
    over = threading.Event()

    def wait(request: bytes, context: grpc.ServicerContext) -> bytes:
        connected.set()
        over.wait(60)
        return b""

    class Silent(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
            return grpc.unary_unary_rpc_method_handler(wait)

    with ThreadPoolExecutor(4) as threads:
        server = grpc.server(threads, handlers=[Silent()])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield f"grpc://127.0.0.1:{port}"
        over.set()
        server.stop(None).wait()


@pytest.fixture
def connected() -> threading.Event:
    """Set when the server has got a call."""
    return threading.Event()


@pytest.mark.parametrize("arguments", [["results"], ["export", "there.tar"]], ids=["one reply", "a stream"])
def test_an_interrupt_during_a_call_ends_the_command(
    silent: str, connected: threading.Event, command: Command, arguments: list[str]
) -> None:
    command.environment["PACHD_ADDRESS"] = silent
    typed = command.as_process.start(*arguments, interruptible=True)
    assert connected.wait(60)
    typed.send_signal(signal.SIGINT)
    said, complained = typed.communicate(timeout=60)
    assert typed.returncode == 130
    assert "Traceback" not in said + complained


STUCK = """
import atexit, os, signal, sys, time
from pipelines.commands.kit import interrupts

def close():
    print("closing", flush=True)
    time.sleep(60)

interrupts.listen()
interrupts.begin()
atexit.register(close)
try:
    if sys.argv[1] == "before":
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
except KeyboardInterrupt:
    print("interrupted")
interrupts.leave(130)
"""
"""A program whose end waits as gRPC does for a call that an interrupt has left behind."""


def test_an_interrupted_command_does_not_wait_at_its_end() -> None:
    with started(STUCK, "before") as process:
        assert process.communicate(timeout=50) == ("interrupted\n", "lookalike: interrupted\n")
    assert process.returncode == 130


def test_an_interrupt_at_the_end_ends_the_command_without_a_word() -> None:
    with started(STUCK, "at the end") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "closing\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=50) == ("", "")
    assert process.returncode == 130


PRESSED = f"import sys; sys.path.append({str(ROOT)!r}); from tests.pressed_command import main; main()"


@dataclass
class Keyboard:
    """Types commands in a directory, and presses Ctrl-C while they run. from_the_start: each in a Python of its own,
    so that it is also pressed while others' modules are imported."""

    command: Command
    from_the_start: bool = False

    def press(self, moment: int, *arguments: str) -> tuple[int, str]:
        """Presses it at a moment; the exit status and stderr."""
        environment = {**os.environ, **self.command.environment, pressed_command.MOMENT: str(moment)}
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        with self._started(arguments, cwd=self.command.directory, env=environment, **streams) as process:
            try:
                _, complained = process.communicate(timeout=50)
            finally:
                process.kill()
        return process.returncode, complained

    def _started(self, arguments: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        if not self.from_the_start:
            return Forked(arguments, pressed_command.__name__, **options)
        words = [sys.executable, "-P", "-c", f"{HEED_INTERRUPTS}\n{PRESSED}", *arguments]
        return subprocess.Popen(words, text=True, start_new_session=True, **options)

    def press_often(self, times: int, *arguments: str) -> None:
        """Presses it at moments spread over the whole life of a command that succeeds, in a run for each."""
        status, complained = self.press(0, *arguments)
        assert status == 0, complained
        whole = int(complained)
        for number in range(times):
            moment = 1 + int(whole * (number * GOLDEN % 1))
            status, complained = self.press(moment, *arguments)
            if status == 0:
                assert not complained
            else:
                assert status == 130, (moment, whole, complained)
                assert re.fullmatch(r"(lookalike: (interrupted|no longer waiting, .*)\n)?", complained), complained


def seldom(*commands: list[str]) -> list[Any]:
    """Commands that are interrupted in `make test-all` alone, as they do little else than others."""
    return [pytest.param(each, marks=pytest.mark.only_in_all) for each in commands]


GOLDEN = 0.618
"""Its multiples fill the unit interval evenly, however many there are."""


@pytest.mark.parametrize(
    "arguments", [["specs", "-o", "there"], *seldom(["--help"], ["check"])], ids=lambda words: words[0]
)
def test_ctrl_c_while_the_command_starts(command: Command, arguments: list[str]) -> None:
    Keyboard(command, from_the_start=True).press_often(examples(5), *arguments)


LONG = (
    ["query", "new"],
    ["import", "whole.tar"],
    *seldom(["query", "new/0.png"], ["add", "new"], ["sync", "new"], ["export", "library.tar"], ["status"]),
)
"""Commands that read or write on the server, and wait for it."""


@pytest.mark.late_alone
@pytest.mark.parametrize("arguments", LONG, ids=" ".join)
def test_ctrl_c_during_a_long_command(
    as_user: Connection, sheets: Connection, preprocessing: Connection, command: Command, arguments: list[str]
) -> None:
    (command.directory / "new").mkdir()
    for number, crop in enumerate(islice(library_crops(open_photograph("cat"), "cat", 0), 5)):
        crop.save(command.directory / "new" / f"{number}.png")
    if arguments[0] not in ("add", "sync"):
        command.says("query", "new")
    command.says("export", "whole.tar")
    Keyboard(command).press_often(examples(3), *arguments)
    done = command.run(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
