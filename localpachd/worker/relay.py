"""Stands between a service and the machine's loopback, inside the service's network namespace if it has one.

Run as a program it starts the service's command, if it is given one, hands on to it what comes to an inherited
listening socket, and sends what the command has for the server outside. Uses the standard library alone: it is
started by its path.
"""

import argparse
import contextlib
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

_BLOCK = 1 << 16
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_INTERFACE = "16sH14x"
LOOPBACK = "127.0.0.1"
_PAUSE = 0.05


def join(left: socket.socket, right: socket.socket) -> None:
    """Passes on what either of two connections says until both have ended, in threads of its own."""

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(_BLOCK):
                target.sendall(piece)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def both() -> None:
        back = threading.Thread(target=pass_on, args=(right, left), daemon=True)
        back.start()
        pass_on(left, right)
        back.join()
        left.close()
        right.close()

    threading.Thread(target=both, daemon=True).start()


def call(port: int, caller: socket.socket) -> None:
    """Connects a caller with a port of the loopback; hangs up on it where nobody answers."""
    try:
        join(caller, socket.create_connection((LOOPBACK, port)))
    except OSError:
        caller.close()


def _attend(listener: socket.socket, answer: Callable[[socket.socket], None]) -> None:
    def loop() -> None:
        while True:
            try:
                answer(listener.accept()[0])
            except OSError:  # a caller that is gone already, or no more descriptors for now
                time.sleep(_PAUSE)

    threading.Thread(target=loop, daemon=True).start()


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        reply = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack(_INTERFACE, b"lo", 0))
        flags = struct.unpack(_INTERFACE, reply)[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack(_INTERFACE, b"lo", flags | _IFF_UP))


def _reach_out(port: int, door: socket.socket) -> None:
    """Takes calls for the server's port in this namespace and hands them out through `door`."""

    def answer(caller: socket.socket) -> None:
        with caller:
            socket.send_fds(door, [b"c"], [caller.fileno()])

    _attend(socket.create_server((LOOPBACK, port)), answer)


def main(arguments: Sequence[str]) -> int:
    """Runs the command to its end and returns its exit status; without one, says that it has begun and never ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--listener", type=int, required=True, help="descriptor of the socket outside")
    parser.add_argument("--port", type=int, required=True, help="the command's own port")
    parser.add_argument("--door", type=int, help="descriptor that calls to the server go out by; with it, --peer")
    parser.add_argument("--peer", type=int, help="the server's port")
    parser.add_argument("command", nargs="*")
    given = parser.parse_args(arguments)
    if given.door is not None:
        _raise_loopback()
        _reach_out(given.peer, socket.socket(fileno=given.door))
    listener = socket.socket(fileno=given.listener)
    process = subprocess.Popen(given.command) if given.command else None
    _attend(listener, lambda caller: call(given.port, caller))
    if process is None:
        print(flush=True)
        while True:
            signal.pause()
    code = process.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
