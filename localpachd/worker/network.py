"""How a service is reached: its port on the machine's loopback, and, where that can be, a network of its own.

Two services may then listen on one and the same internal port. In a network of its own a service reaches the server
and nothing else; where there can be none, services share the machine's, and an internal port must be free.
"""

import contextlib
import socket
import sys
import threading
from pathlib import Path

from localpachd.worker import relay
from localpachd.worker.relay import LOOPBACK
from localpachd.worker.tasks import Ports


class PortTaken(Exception):
    """A port of the machine's is not to be had; the text is the reason."""


class Network:
    """The way to one running command, or none without `ports`. `own` says that it will run in a network namespace of
    its own. To be closed when the command has ended. Raises PortTaken.

    `relay` is a program to be run beside the command, or with it as its arguments behind `--`, in any case with the
    descriptors `inherited`; () where none is needed. `statement` tells people where the command can be reached.
    """

    def __init__(self, ports: Ports | None, own: bool) -> None:
        self.own = own
        self.relay: tuple[str, ...] = ()
        self.inherited: tuple[int, ...] = ()
        self.statement = ""
        self._open: list[socket.socket] = []
        if ports is None:
            return
        outside = ports.external
        if own or outside not in (0, ports.internal):
            outside = self._prepare(ports, own)
        else:
            outside = ports.internal  # there it listens by itself
        self.statement = f"serving on {LOOPBACK}:{outside}" + (
            f", with a network of its own in which only the server can be reached, at {LOOPBACK}:{ports.server}"
            if own
            else f"; the machine's network is shared, so its port {ports.internal} must be free"
        )

    def _prepare(self, ports: Ports, own: bool) -> int:
        """Makes the relay necessary; returns the port outside."""
        try:
            listener = socket.create_server((LOOPBACK, ports.external), backlog=128)
        except OSError as error:
            raise PortTaken(f"external_port {ports.external} cannot be had here: {error.strerror}") from error
        self._open.append(listener)
        options = ["--listener", str(listener.fileno()), "--port", str(ports.internal)]
        self.inherited = (listener.fileno(),)
        if own:
            here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._open += [here, there]
            options += ["--door", str(there.fileno()), "--peer", str(ports.server)]
            self.inherited += (there.fileno(),)
            threading.Thread(target=_answer, args=(here, ports.server), name="door", daemon=True).start()
        self.relay = (sys.executable, "-I", "-S", str(Path(relay.__file__)), *options)
        return int(listener.getsockname()[1])

    def close(self) -> None:
        """Lets go of the port."""
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def _answer(door: socket.socket, server: int) -> None:
    """Connects a service's calls, which come in through the door, with the server."""
    with contextlib.suppress(OSError):
        while found := socket.recv_fds(door, 1, 1)[1]:
            relay.call(server, socket.socket(fileno=found[0]))
