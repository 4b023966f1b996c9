"""Pictures fetched by their URLs, from public addresses only, within limits of time and size.

A name is resolved once, every address that it has is checked, and the connection goes to a checked one: a name that
resolves to another address a moment later changes nothing. Each redirect is checked in the same way.
"""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import urljoin, urlsplit

from stages.files.public_addresses import Network, public
from stages.files.timed_connection import HostResolver, TimedConnection, reach, resolve_in_time, secure

_PIECE = 1 << 16
_MOVED = (301, 302, 303, 307, 308)
_BUSY = (408, 425, 429)
_NO_HEAD = (400, 405, 501)
"""What servers say that answer only with content."""
_NOT_FETCHED = "url-not-fetched"
TOO_LARGE = "too-large"


class FetchError(Exception):
    """A file that is not fetched. status, code, message: what an HTTP service says of it. temporary: whether it may be
    there later; wait: the seconds after which, if the server says so."""

    def __init__(
        self, status: int, code: str, message: str, temporary: bool = False, wait: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.temporary = temporary
        self.wait = wait


@dataclass(frozen=True)
class FetchedFile:
    """A file, and what its server said of the version: "" for nothing. size: of a file that was not fetched, in bytes,
    -1 if that is not known."""

    content: bytes
    etag: str = ""
    modified: str = ""
    size: int = -1


@dataclass(frozen=True)
class FetchLimits:
    """bytes: of a file. seconds: for all of it, redirects included. allowed: networks that may be asked though they are
    not public."""

    bytes: int = 64 << 20
    seconds: float = 20.0
    redirects: int = 5
    allowed: tuple[Network, ...] = ()


def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses that the system's resolver gives."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def fetch(url: str, limits: FetchLimits, resolve: HostResolver = resolve) -> bytes:
    """The bytes at a URL of http or https. Raises FetchError, with the reason."""
    found = fetch_newer(url, limits, resolve=resolve)
    assert found is not None
    return found.content


def fetch_newer(
    url: str,
    limits: FetchLimits,
    etag: str = "",
    modified: str = "",
    resolve: HostResolver = resolve,
    to: BinaryIO | None = None,
) -> FetchedFile | None:
    """The file at a URL of http or https; None if its server says that it is still the one that had this `etag` and
    date. to: an open file that its content goes to instead. Raises FetchError, with the reason."""
    known = {"If-None-Match": etag, "If-Modified-Since": modified}
    return _followed(url, limits, {name: each for name, each in known.items() if each}, resolve, to)


def state(url: str, limits: FetchLimits, resolve: HostResolver = resolve) -> FetchedFile:
    """What a server says of the file at a URL of http or https, without its content; nothing if it says so only with
    that. Raises FetchError, with the reason."""
    found = _followed(url, limits, {}, resolve, None, "HEAD")
    assert found is not None
    return found


def _followed(
    url: str,
    limits: FetchLimits,
    conditions: Mapping[str, str],
    resolve: HostResolver,
    to: BinaryIO | None,
    method: str = "GET",
) -> FetchedFile | None:
    until = time.monotonic() + limits.seconds
    for _ in range(limits.redirects + 1):
        found = _ask(url, limits, conditions, resolve, until, to, method)
        if not isinstance(found, str):
            return found
        url = urljoin(url, found)
    raise _refused(f"the URL redirects more than {limits.redirects} times")


def _ask(
    url: str,
    limits: FetchLimits,
    conditions: Mapping[str, str],
    resolve: HostResolver,
    until: float,
    to: BinaryIO | None,
    method: str,
) -> FetchedFile | str | None:
    """The file at a URL, where it has moved, or None if it has not changed."""
    parts = _parts(url)
    connection, raw = _connected(parts.scheme, str(parts.hostname), parts.port, limits, resolve, until)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, path, headers={"Accept": "image/*", "User-Agent": "lookalike", **conditions})
        response = connection.getresponse()
        if response.status in _MOVED and response.headers["Location"]:
            return str(response.headers["Location"])
        if response.status == 304 and conditions:
            return None
        if method == "HEAD" and response.status in _NO_HEAD:
            return FetchedFile(b"")
        if response.status != 200:
            wait = response.headers["Retry-After"] or ""
            raise FetchError(
                422,
                _NOT_FETCHED,
                f"{parts.hostname} answers with HTTP {response.status}",
                temporary=response.status in _BUSY or response.status >= 500,
                wait=float(wait) if wait.isascii() and wait.isdigit() else None,
            )
        etag, modified = (response.headers[name] or "" for name in ("ETag", "Last-Modified"))
        if method == "HEAD":
            size = response.headers["Content-Length"] or ""
            return FetchedFile(b"", etag, modified, int(size) if size.isascii() and size.isdigit() else -1)
        return FetchedFile(_content(response, limits, to), etag, modified)
    except TimeoutError as error:
        raise _slow(limits) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _refused(f"{parts.hostname} does not answer as a web server does", temporary=True) from error
    finally:
        raw.close()


def _parts(url: str) -> Any:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _refused("this is not a valid URL") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise _refused("url must begin with http:// or https:// and name a host")
    if parts.username is not None or not url.isascii() or any(each <= " " or each == "\x7f" for each in url):
        raise _refused("url must not have a user, spaces or characters outside ASCII: encode them with %")
    return parts


def _connected(
    scheme: str, host: str, port: int | None, limits: FetchLimits, resolve: HostResolver, until: float
) -> tuple[http.client.HTTPConnection, socket.socket]:
    """A connection to an address of the host, all of which are public, and its socket."""
    number = port or (443 if scheme == "https" else 80)
    try:
        addresses = resolve_in_time(resolve, host, number, until)
    except TimeoutError as error:
        raise _slow(limits) from error
    except (OSError, UnicodeError) as error:
        raise _refused(f"there is no host {host}", temporary=True) from error
    if not addresses or not all(public(each, limits.allowed) for each in addresses):
        raise FetchError(
            403, "private-address", f"{host} is not on the public internet, so it is not asked for pictures"
        )
    connection = http.client.HTTPConnection(host, number)
    connection.default_port = 443 if scheme == "https" else 80  # left out of the header Host
    try:
        raw = secure(reach(addresses, number, until), scheme, host, until)
    except TimeoutError as error:
        raise _slow(limits) from error
    except (OSError, ValueError) as error:
        raise _refused(f"{host} cannot be reached", temporary=True) from error
    connection.sock = TimedConnection(raw, until)
    return connection, raw


def _content(response: http.client.HTTPResponse, limits: FetchLimits, to: BinaryIO | None) -> bytes:
    gathered, size = bytearray(), 0
    while max(size, response.length or 0) <= limits.bytes:
        piece = response.read1(_PIECE)
        if not piece:
            break
        size += len(piece)
        if to is None:
            gathered += piece
        else:
            to.write(piece)
    else:
        raise FetchError(413, TOO_LARGE, f"the file at the URL has more than {limits.bytes:,} bytes")
    if response.length:
        raise _refused("the file at the URL is cut off", temporary=True)
    return bytes(gathered)


def _refused(message: str, temporary: bool = False) -> FetchError:
    return FetchError(422, _NOT_FETCHED, message, temporary)


def _slow(limits: FetchLimits) -> FetchError:
    return _refused(f"the URL did not answer within {limits.seconds:g} s", temporary=True)
