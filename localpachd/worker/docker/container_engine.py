"""The container engine of this machine, called over its Unix socket: Docker's Engine API, which Podman serves too.

Knows how calls and answers are encoded, and nothing of their meaning.
"""

import http.client
import json
import os
import socket
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

_PATIENCE = 120.0
"""Seconds that an engine may take to answer a call that does not ask it to wait."""
_BLOCK = 1 << 16
_LONGEST_HEAD = 1 << 16


class EngineError(Exception):
    """The engine cannot do what it is asked, or does not answer; the text is its own.

    `status` is that of HTTP, 0 if no answer came.
    """

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class _EngineConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, patience: float | None) -> None:
        super().__init__("localhost", timeout=patience)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class ContainerEngine:
    """An engine by its socket. Thread-safe: every call has a connection of its own. All methods raise EngineError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def podman(self) -> bool:
        """Whether this is Podman, which differs in details."""
        return "podman" in str(self.call("GET", "/version").get("Components", "")).lower()

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, /, **query: str) -> Any:
        """One call: its answer, decoded; None for an empty answer."""
        with self._answered(method, path, body, query) as answer:
            data = answer.read()
        return json.loads(data) if data.strip() else None

    def heading(self, path: str, header: str, /, **query: str) -> str:
        """A header of the answer that a path would give."""
        with self._answered("HEAD", path, None, query) as answer:
            return answer.headers.get(header, "")

    def progress(self, path: str, headers: Mapping[str, str], /, **query: str) -> Iterator[Mapping[str, Any]]:
        """A call that reports its progress: the reports, as they arrive. Waits for as long as it takes."""
        with self._answered("POST", path, None, query, headers, patience=None) as answer:
            for line in answer:
                if line.strip():
                    yield json.loads(line)

    @contextmanager
    def archive(self, path: str, /, **query: str) -> Iterator[tarfile.TarFile]:
        """A call that answers with a tar, to be read once from its beginning to its end."""
        try:
            with self._answered("GET", path, None, query) as answer, tarfile.open(fileobj=answer, mode="r|") as tar:
                yield tar
        except tarfile.TarError as failure:
            raise EngineError(f"the container engine sent an invalid archive: {failure}") from failure

    def converse(self, path: str, body: Mapping[str, Any]) -> tuple[socket.socket, bytes]:
        """A call whose connection becomes a stream both ways: the socket, and the bytes that were read already."""
        data = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: Upgrade\r\n"
            f"Upgrade: tcp\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        stream = socket.socket(socket.AF_UNIX)
        try:
            stream.settimeout(_PATIENCE)
            stream.connect(str(self.path))
            stream.sendall(head.encode() + data)
            answer, early = _head(stream)
            status = int(answer.split()[1])
            if status not in (http.HTTPStatus.SWITCHING_PROTOCOLS, http.HTTPStatus.OK):
                raise EngineError(_words(_rest(stream, early)), status)
        except (OSError, ValueError, IndexError) as failure:
            stream.close()
            raise self._silent(failure) from failure
        except BaseException:
            stream.close()
            raise
        stream.setblocking(False)
        return stream, early

    @contextmanager
    def _answered(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
        patience: float | None = _PATIENCE,
    ) -> Iterator[http.client.HTTPResponse]:
        connection = _EngineConnection(self.path, patience)
        sent = {**(headers or {}), **({"Content-Type": "application/json"} if body is not None else {})}
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, f"{path}?{urlencode(query)}" if query else path, data, sent)
            answer = connection.getresponse()
            if answer.status >= http.HTTPStatus.BAD_REQUEST:
                raise EngineError(_words(answer.read()), answer.status)
            yield answer
        except (OSError, http.client.HTTPException) as failure:
            raise self._silent(failure) from failure
        finally:
            connection.close()

    def _silent(self, failure: Exception) -> EngineError:
        return EngineError(f"the container engine at {self.path} does not answer: {failure}")


def find(environment: Mapping[str, str] = os.environ) -> ContainerEngine:
    """The engine that $DOCKER_HOST names, or else the first of the usual ones that answers. Raises EngineError."""
    named = environment.get("DOCKER_HOST", "")
    if named and not named.startswith("unix://"):
        raise EngineError(
            f"DOCKER_HOST is {named}: an engine on another machine cannot see this one's files; unset it, or name a "
            "unix:// socket"
        )
    places = [named.removeprefix("unix://")] if named else _usual(environment)
    complaints = []
    for place in places:
        engine = ContainerEngine(Path(place))
        try:
            engine.call("GET", "/_ping")
            return engine
        except json.JSONDecodeError:  # the answer is OK, which is not JSON
            return engine
        except EngineError as failure:
            complaints.append(str(failure))
    raise EngineError(f"no container engine answers: start Docker or Podman ({'; '.join(complaints)})")


def component(text: str) -> str:
    """A name, quoted for a path of the API."""
    return quote(text, safe="/:@")


def _usual(environment: Mapping[str, str]) -> Sequence[str]:
    own = environment.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    return ("/var/run/docker.sock", f"{own}/docker.sock", "/run/podman/podman.sock", f"{own}/podman/podman.sock")


def _head(stream: socket.socket) -> tuple[str, bytes]:
    """The status line of an answer, and the bytes that came after its headers."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = stream.recv(_BLOCK)
        if not piece or len(data) > _LONGEST_HEAD:
            raise OSError("it hung up")
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0].decode(errors="replace"), rest


def _rest(stream: socket.socket, data: bytes) -> bytes:
    stream.settimeout(1.0)  # an error's text has arrived by now, but the connection may stay open
    try:
        while piece := stream.recv(_BLOCK):
            data += piece
    except TimeoutError:
        pass
    return data


def _words(data: bytes) -> str:
    """The error text of an answer."""
    text = data.decode(errors="replace").strip()
    start = text.find("{")
    try:
        found = json.loads(text[start : text.rfind("}") + 1]) if start >= 0 else {}
    except ValueError:
        found = {}
    return str(found.get("message") or found.get("cause") or text or "no reason given")
