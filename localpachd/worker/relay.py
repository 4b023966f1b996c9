"""Connects a service to the machine's loopback, from inside the service's network namespace if it has one.

Run as a program it starts the service's command, if it is given one, passes on to it the connections to an inherited
listening socket, and passes the command's calls to the server outside. Started by its path, so it imports the standard
library only.
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
    """Passes data between two connections, both ways, until both have ended, in threads of its own."""

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
    """Connects a caller to a port of the loopback; hangs up if nobody listens there."""
    try:
        join(caller, socket.create_connection((LOOPBACK, port)))
    except OSError:
        caller.close()


def _attend(listener: socket.socket, answer: Callable[[socket.socket], None]) -> None:
    def loop() -> None:
        while True:
            try:
                answer(listener.accept()[0])
            except OSError:  # the caller is gone already, or no more descriptors are free for now
                time.sleep(_PAUSE)

    threading.Thread(target=loop, daemon=True).start()


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        reply = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack(_INTERFACE, b"lo", 0))
        flags = struct.unpack(_INTERFACE, reply)[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack(_INTERFACE, b"lo", flags | _IFF_UP))


def _reach_out(port: int, gateway: socket.socket) -> None:
    """Accepts calls to the server's port in this namespace and passes them out through `gateway`."""

    def answer(caller: socket.socket) -> None:
        with caller:
            socket.send_fds(gateway, [b"c"], [caller.fileno()])

    _attend(socket.create_server((LOOPBACK, port)), answer)


def main(arguments: Sequence[str]) -> int:
    """Runs the command to its end and returns its exit status; without a command, reports its start and never ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--listener", type=int, required=True, help="descriptor of the socket outside")
    parser.add_argument("--port", type=int, required=True, help="the command's own port")
    parser.add_argument("--gateway", type=int, help="descriptor for calls to the server; needs --peer")
    parser.add_argument("--peer", type=int, help="the server's port")
    parser.add_argument("--passed", type=int, action="append", default=[], help="descriptor that the command inherits")
    parser.add_argument("command", nargs="*")
    given = parser.parse_args(arguments)
    if given.gateway is not None:
        _raise_loopback()
        _reach_out(given.peer, socket.socket(fileno=given.gateway))
    listener = socket.socket(fileno=given.listener)
    process = subprocess.Popen(given.command, pass_fds=given.passed) if given.command else None
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
