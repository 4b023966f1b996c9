"""Small real web servers that behave as a test wants."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Behave = Callable[[socket.socket, str], None]


@dataclass
class Web:
    """A web server of this machine. asked: the request lines and headers that it has got."""

    port: int
    asked: list[str] = field(default_factory=list)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


@contextmanager
def web(behave: Behave, wrap: Callable[[socket.socket], socket.socket] = lambda raw: raw) -> Iterator[Web]:
    """A server that reads the headers of each request and then behaves in some way."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Web(listening.getsockname()[1])

        def answer(raw: socket.socket) -> None:
            try:
                with wrap(raw) as connection:
                    head = b""
                    while b"\r\n\r\n" not in head and (piece := connection.recv(4096)):
                        head += piece
                    server.asked.append(head.decode())
                    behave(connection, head.split(b" ")[1].decode() if b" " in head else "")
            except OSError:
                return  # the client has gone away

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown(socket.SHUT_RDWR)


def saying(content: bytes, *headers: str, status: str = "200 OK") -> Behave:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", *headers, "", ""]
    return lambda connection, _: connection.sendall("\r\n".join(lines).encode() + content)
