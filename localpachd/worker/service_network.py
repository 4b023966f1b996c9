"""The network of a service: its port on the machine's loopback and, where the machine allows it, one of its own.

Two services may then listen on the same internal port. In a network of its own a service reaches the server and nothing
else. Otherwise services share the machine's network, and an internal port must be free. Starts no command.
"""

import contextlib
import socket
import sys
import threading
from pathlib import Path

from localpachd.worker import relay
from localpachd.worker.relay import LOOPBACK
from localpachd.worker.tasks import ServicePorts


class PortUnavailable(Exception):
    """A port of the machine is not available; the text is the reason."""


class ServiceNetwork:
    """The network of one running command; without `ports` it cannot be reached. `own` says that the command will run in
    a network namespace of its own. To be closed when the command has ended. Raises PortUnavailable.

    `relay` is a program to be run beside the command, or with the command as its arguments after `--`; it inherits the
    descriptors `inherited`. It is () where none is needed. `statement` tells people where the command can be reached.
    """

    def __init__(self, ports: ServicePorts | None, own: bool) -> None:
        self.own = own
        self.relay: tuple[str, ...] = ()
        self.inherited: tuple[int, ...] = ()
        self.statement = ""
        self._open: list[socket.socket] = []
        if ports is None:
            return
        outside = ports.external
        if own or outside != ports.internal:  # otherwise the command itself listens there
            self._prepare(ports, own)
        self.statement = f"serving on {LOOPBACK}:{outside}" + (
            f", with a network of its own in which only the server can be reached, at {LOOPBACK}:{ports.server}"
            if own
            else f"; the machine's network is shared, so its port {ports.internal} must be free"
        )

    def _prepare(self, ports: ServicePorts, own: bool) -> None:
        try:
            listener = socket.create_server((LOOPBACK, ports.external), backlog=128)
        except OSError as error:
            raise PortUnavailable(f"external_port {ports.external} is not available: {error.strerror}") from error
        self._open.append(listener)
        options = ["--listener", str(listener.fileno()), "--port", str(ports.internal)]
        self.inherited = (listener.fileno(),)
        if own:
            here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._open += [here, there]
            options += ["--gateway", str(there.fileno()), "--peer", str(ports.server)]
            self.inherited += (there.fileno(),)
            threading.Thread(target=_answer, args=(here, ports.server), name="gateway", daemon=True).start()
        self.relay = (sys.executable, "-I", "-S", str(Path(relay.__file__)), *options)

    def close(self) -> None:
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def _answer(gateway: socket.socket, server: int) -> None:
    """Connects a service's calls, which come in through the gateway, to the server."""
    with contextlib.suppress(OSError):
        while found := socket.recv_fds(gateway, 1, 1)[1]:
            relay.call(server, socket.socket(fileno=found[0]))
