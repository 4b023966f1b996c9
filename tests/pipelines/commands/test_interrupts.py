"""Ctrl-C pressed where Python drops its exception."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from tests.command import HEED_INTERRUPTS, Command

PROGRAM = """
import os, signal
from pipelines.commands import interrupts

class Finalised:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # the handler runs in here
            pass

interrupts.listen()
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
    typed = command.start(*arguments, interruptible=True)
    assert connected.wait(60)
    typed.send_signal(signal.SIGINT)
    said, complained = typed.communicate(timeout=60)
    assert typed.returncode == 130
    assert "Traceback" not in said + complained


STUCK = """
import atexit, os, signal, sys, time
from pipelines.commands import interrupts

def close():
    print("closing", flush=True)
    time.sleep(60)

interrupts.listen()
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
        assert process.communicate(timeout=50) == ("interrupted\n", "")
    assert process.returncode == 130


def test_an_interrupt_at_the_end_kills_the_command() -> None:
    with started(STUCK, "at the end") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "closing\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(50) == -signal.SIGINT
