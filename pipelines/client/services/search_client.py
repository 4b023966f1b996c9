"""Questions to a running service over HTTP: searches, labels, thumbnails, originals.

Knows neither the finding of services nor the meaning of an answer."""

import contextlib
import http.client
import json
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import urlencode

from pipelines.client.services.service_discovery import ServiceEndpoint
from pipelines.errors import LookalikeError

_WITHIN = 90.0
"""Seconds within which a service answers; it gives up on a question after 60 itself."""

_PATIENCE = 30.0
"""Seconds for which a busy service is asked again."""

_AT_ONCE = 16
"""Pictures in one request: the most that a service takes."""

_PIECE = 1 << 18


class SearchError(LookalikeError):
    """A service did not answer as asked. status: of HTTP, 0 for no answer at all. code: the service's own."""

    def __init__(self, message: str, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    @property
    def answered(self) -> bool:
        """Whether a service said so itself; otherwise none is there that can be asked."""
        return self.status > 0


@dataclass(frozen=True, slots=True)
class QueryPicture:
    """A picture to search for, by one of: the content of a file, a URL, the id of a library picture. box: its region as
    shares of the picture (left, top, right, bottom)."""

    content: bytes | None = None
    name: str = ""
    url: str = ""
    id: str = ""
    box: tuple[float, float, float, float] | None = None


class SearchClient:
    """Asks one service, on a connection that is kept. May be used from several threads, which take turns."""

    def __init__(self, service: ServiceEndpoint) -> None:
        self.service = service
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> "SearchClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def search(self, pictures: Sequence[QueryPicture], **options: Any) -> dict[str, Any]:
        """The answer of POST /search to one question. options: further fields of a question; None leaves one out.
        Raises SearchError."""
        files: list[QueryPicture] = []
        return _renamed(self._answered("/search", _question(pictures, options, files), files))

    def classify(self, pictures: Sequence[QueryPicture], **options: Any) -> dict[str, Any]:
        """The answer of POST /classify to one question; see search."""
        files: list[QueryPicture] = []
        return self._answered("/classify", _question(pictures, options, files), files)

    def search_each(self, pictures: Sequence[QueryPicture], **options: Any) -> list[dict[str, Any]]:
        """The answers to each picture alone, for few pictures at a time, which share the work of the service. Raises
        SearchError for the first one that is refused."""
        found: list[dict[str, Any]] = []
        for begin in range(0, len(pictures), _AT_ONCE):
            files: list[QueryPicture] = []
            questions = [_question([each], options, files) for each in pictures[begin : begin + _AT_ONCE]]
            for answer in self._answered("/search", {"requests": questions}, files)["answers"]:
                if "error" in answer:
                    raise SearchError(str(answer["error"]["message"]), 400, str(answer["error"]["code"]))
                found.append(_renamed(answer))
        return found

    def _answered(self, path: str, asked: Mapping[str, Any], files: Sequence[QueryPicture]) -> dict[str, Any]:
        if not files:
            return self._json("POST", path, json.dumps(asked).encode(), "application/json")
        boundary = uuid.uuid4().hex
        body = b"".join(_form(asked, files, boundary))
        return self._json("POST", path, body, f"multipart/form-data; boundary={boundary}")

    def status(self) -> dict[str, Any]:
        """The answer of GET /status. Raises SearchError."""
        return self._json("GET", "/status")

    def facets(self, where: str = "", filter: str = "", columns: Sequence[str] = ()) -> dict[str, Any]:
        """The answer of GET /facets. Raises SearchError."""
        asked = {"where": where, "filter": filter, "columns": ",".join(columns)}
        return self._json("GET", f"/facets?{urlencode(asked)}")

    def thumbnail(self, id: str) -> bytes:
        """The JPEG file of a library picture's thumbnail. Raises SearchError."""
        with self._asked("GET", f"/images/{id}") as answer:
            return answer.read()

    def original(self, id: str, to: BinaryIO, source: int = 0) -> None:
        """Writes the file that a library picture came from; of several, the one with this number. Raises
        SearchError."""
        with self._asked("GET", f"/originals/{id}?{urlencode({'source': source, 'download': 1})}") as answer:
            expected = answer.length
            while piece := answer.read(_PIECE):
                to.write(piece)
                expected = None if expected is None else expected - len(piece)
            if expected:
                raise SearchError("the service sent the file cut off: try again")

    def close(self) -> None:
        """Closes the connection; the next question opens another."""
        with self._lock:
            self._drop()

    def _json(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> dict[str, Any]:
        with self._asked(method, path, body, {"Content-Type": kind} if kind else {}) as answer:
            try:
                found: dict[str, Any] = json.loads(answer.read())
            except ValueError as error:
                raise SearchError(f"{self.service.words} does not answer as lookalike does: is it another?") from error
            return found

    @contextlib.contextmanager
    def _asked(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """The response to a request, to be read at once. A service that is busy is asked again, for a while."""
        with self._lock:
            try:
                yield self._patiently(method, path, body, dict(headers or {}))
            except (OSError, http.client.HTTPException) as error:
                self._drop()
                raise SearchError(f"{self.service.words} does not answer: {_reason(error)}") from error
            except BaseException:
                self._drop()  # what is left of the response would be taken for the next one
                raise

    def _patiently(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        until = time.monotonic() + _PATIENCE
        while True:
            answer = self._sent(method, path, body, headers)
            if answer.status == http.client.OK:
                return answer
            content = answer.read()
            wait = _seconds(answer.headers.get("Retry-After"))
            if answer.status not in (429, 503) or time.monotonic() + wait > until:
                raise _refusal(answer.status, content, self.service.words)
            time.sleep(wait)

    def _sent(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> http.client.HTTPResponse:
        """One request. A kept connection may have been closed by the service in the meantime."""
        kept = self._connection
        if kept is None and self.service.exposes_its_token:
            raise SearchError(f"{self.service.url} has no TLS, so its token would be readable on the way: use https")
        connection = self._connection = kept or self.service.connection(_WITHIN)
        try:
            connection.request(method, path, body, headers | self.service.headers())
            return connection.getresponse()
        except (ConnectionError, http.client.BadStatusLine):
            self._drop()
            if kept is None:
                raise
            return self._sent(method, path, body, headers)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _question(
    pictures: Sequence[QueryPicture], options: Mapping[str, Any], files: list[QueryPicture]
) -> dict[str, Any]:
    """A question in JSON. Its uploads are added to the files."""
    asked: list[dict[str, Any]] = []
    for each in pictures:
        one: dict[str, Any] = {"id": each.id} if each.id else {"url": each.url}
        if each.content is not None:
            one = {"upload": len(files)}
            files.append(each)
        asked.append(one | ({} if each.box is None else {"box": list(each.box)}))
    return {"pictures": asked} | {name: value for name, value in options.items() if value is not None}


def _form(asked: Mapping[str, Any], files: Sequence[QueryPicture], boundary: str) -> Iterator[bytes]:
    """A body of multipart/form-data; names are escaped as browsers do."""
    yield _part(boundary, 'name="request"', json.dumps(asked).encode())
    for each in files:
        plain = (each.name or "picture").encode("utf-8", "replace").decode()
        safe = plain.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        yield _part(boundary, f'name="picture"; filename="{safe}"', each.content or b"")
    yield f"--{boundary}--\r\n".encode()


def _part(boundary: str, about: str, content: bytes) -> bytes:
    return f"--{boundary}\r\nContent-Disposition: form-data; {about}\r\n\r\n".encode() + content + b"\r\n"


def _seconds(text: str | None) -> float:
    try:
        return max(0.1, float(text or 1))
    except ValueError:
        return 1.0


def _refusal(status: int, content: bytes, words: str) -> SearchError:
    try:
        said = json.loads(content)["error"]
        return SearchError(str(said["message"]), status, str(said["code"]))
    except (ValueError, LookupError, TypeError):
        return SearchError(f"{words} answered with HTTP {status}: is it a service of lookalike's?", status)


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()


def _renamed(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer with its `neighbors`, which services before version 8 spell like the pipeline."""
    return {"neighbors": answer.pop("neighbours"), **answer} if "neighbours" in answer else answer
