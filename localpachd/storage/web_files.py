"""Files of the web, by http and https, from the addresses that a server may reach. Knows no other kind of URL.

A name is resolved once, and the connection goes to an address that was checked: a name that resolves to another one a
moment later changes nothing. Redirects are checked in the same way. Proxies are not used, since they resolve names
themselves.
"""

import http.client
import socket
import ssl
from collections.abc import Iterator, Sequence
from urllib.parse import urljoin, urlsplit

from localpachd.errors import FailedPrecondition
from localpachd.storage.url_reach import UrlReach

_BLOCK = 1 << 20
_SECONDS = 60.0
"""For a connection, and for each piece of an answer."""
_MOVED = (301, 302, 303, 307, 308)
_REDIRECTS = 10


class HttpError(OSError):
    """An answer that is not the file: its status and reason, as text."""


def get(url: str, reach: UrlReach, seconds: float = _SECONDS) -> Iterator[bytes]:
    """The bytes at a URL. Raises FailedPrecondition for an address that may not be asked, HttpError, OSError,
    ValueError for an invalid URL."""
    for _ in range(_REDIRECTS + 1):
        connection = _WebConnection(url, reach, seconds)
        try:
            connection.http.request("GET", connection.path, headers={"User-Agent": "localpachd", "Accept": "*/*"})
            response = connection.http.getresponse()
            moved = response.headers["Location"] if response.status in _MOVED else None
            if not moved:
                yield from _content(response)
                return
        except http.client.HTTPException as error:
            raise OSError(f"the answer is not HTTP: {type(error).__name__}") from error
        finally:
            connection.http.close()
        url = urljoin(url, moved)
    raise OSError(f"more than {_REDIRECTS} redirects")


def _content(response: http.client.HTTPResponse) -> Iterator[bytes]:
    if response.status != http.client.OK:
        raise HttpError(f"{response.status} {response.reason}")
    while piece := response.read(_BLOCK):
        yield piece
    if response.length:  # the library takes the end of the connection for that of the content
        raise OSError(f"the connection ended {response.length} bytes before the end of the file")


class _WebConnection:
    """A connection to the host of a URL, at an address that may be asked."""

    def __init__(self, url: str, reach: UrlReach, seconds: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url} is not a URL of the web")
        if any(each <= " " or each == "\x7f" for each in url) or not url.isascii():
            raise ValueError(f"{url} has characters that must be encoded with %")
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        self.path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            addresses = reach.addresses(parts.hostname, port)
        except FailedPrecondition as refusal:
            raise FailedPrecondition(f"{url}: {refusal}") from None
        self.http = http.client.HTTPConnection(parts.hostname, port, timeout=seconds)
        self.http.default_port = 443 if secure else 80  # left out of the header Host
        raw = _connected(addresses, port, seconds)
        try:
            self.http.sock = (
                ssl.create_default_context().wrap_socket(raw, server_hostname=parts.hostname) if secure else raw
            )
        except BaseException:
            raw.close()
            raise


def _connected(addresses: Sequence[str], port: int, seconds: float) -> socket.socket:
    """A connection to the first of the addresses that can be reached, as this machine may lack IPv6."""
    for number, address in enumerate(addresses, 1):
        try:
            return socket.create_connection((address, port), timeout=seconds)
        except OSError:
            if number == len(addresses):
                raise
    raise OSError("the name has no address")
