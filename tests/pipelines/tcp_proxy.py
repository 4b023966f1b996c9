"""A way to a server that is cut off once, in the middle of a command, as by a restart of pachd."""

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.command import Command

_AT_ONCE = struct.pack("ii", 1, 0)
"""The option that ends a connection without a farewell."""


@dataclass
class TcpProxy:
    """Passes connections on to a server. The first one is cut off when the client has sent `limit` bytes, if that is
    given; `sent` counts them."""

    server: str
    limit: int | None = None
    sent: int = 0
    was_cut: bool = False
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    def __post_init__(self) -> None:
        self.address = f"grpc://127.0.0.1:{self._listener.getsockname()[1]}"

    def serve(self) -> None:
        """Takes connections until `close`."""
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.accept()
                parts = urlsplit(self.server)
                server = socket.create_connection((parts.hostname, parts.port))
                threading.Thread(target=self._up, args=(client, server), daemon=True).start()

    def accept(self) -> tuple[socket.socket, object]:
        """The next connection of a client, and its address."""
        return self._listener.accept()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        down = threading.Thread(target=self._down, args=(client, server), daemon=True)
        with contextlib.suppress(OSError):
            while piece := client.recv(1 << 16):
                self.sent += len(piece)
                if self.limit is not None and self.sent > self.limit and not self.was_cut:
                    self.was_cut = True
                    break
                server.sendall(piece)
                if not down.ident:  # a client that is cut off at its first bytes has heard nothing of a server
                    down.start()
        for each in (client, server):
            with contextlib.suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
                each.shutdown(socket.SHUT_RDWR)
            if not down.ident:
                each.close()

    def _down(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := server.recv(1 << 16):
                client.sendall(piece)
        client.close()
        server.close()


@contextlib.contextmanager
def way(configuration: Path, limit: int | None = None) -> Iterator[TcpProxy]:
    """A way to the server of pachctl's configuration, which names the way as long as it is there."""
    before = configuration.read_text()
    document = json.loads(before)
    (context,) = document["v2"]["contexts"].values()
    found = TcpProxy(context["pachd_address"], limit)
    context["pachd_address"] = found.address
    configuration.write_text(json.dumps(document))
    threading.Thread(target=found.serve, daemon=True).start()
    try:
        yield found
    finally:
        configuration.write_text(before)
        found.close()


def outlasts(command: Command, configuration: Path, *arguments: str) -> None:
    """Asserts that a command that only reads does the same though its connection is cut off in its middle."""
    command.says(*arguments)  # from now on, what is remembered is read from this machine
    with way(configuration) as whole:
        usual = command.says(*arguments)
    told = False
    for tried, share in enumerate((0.4, 0.7, 0.5, 0.6, 0.3)):
        if told and tried > 1:
            break  # a cut within the acknowledgement of a whole reply is not noticed: others follow it
        with way(configuration, round(share * whole.sent)) as cut:
            said = command.says(*arguments)
        assert cut.was_cut
        lines = said.splitlines()
        told = told or any("does not answer, trying again" in line for line in lines)
        kept = [line for line in lines if cut.address not in line]
        assert kept == [line for line in usual.splitlines() if whole.address not in line]
    assert told
