"""The places outside of this server that URLs of its callers may lead to: directories of this machine, and addresses.

Without an option no directory is one, and of all addresses only those of the public internet. Reads no file.
"""

import ipaddress
import os
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from localpachd.errors import FailedPrecondition, PachError

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_KERNEL = (Path("/proc"), Path("/sys"), Path("/dev"))
"""Files here hold the server's own environment and memory."""
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
"""Addresses of IPv6 behind which a translator reaches those of IPv4."""
_OF_AZURE = ipaddress.ip_address("168.63.129.16")  # every machine there finds its platform at this public address
_SPECIAL = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20")))
"""Networks with a special purpose that older versions of Python take for public, in IANA's registries."""
_SECONDS = 60.0  # for the addresses of a name
_UNICAST = ipaddress.ip_network("2000::/3")
"""The addresses of IPv6 that are given out; a public one is among them."""


@dataclass(frozen=True, slots=True)
class UrlReach:
    """`directories` may be read and written by file URLs, and all below them but `private` files and directories;
    `networks` may be asked though they are not public."""

    directories: tuple[Path, ...] = ()
    networks: tuple[IpNetwork, ...] = ()
    private: tuple[Path, ...] = ()

    def place(self, path: str | Path, url: str) -> tuple[Path, Path]:
        """The directory of `directories` in which a path of a URL lies, and the path, both without symbolic links.
        Raises FailedPrecondition if there is none."""
        if not self.directories:
            raise FailedPrecondition(
                f"{url}: URLs of files are turned off on this server; its option --file-urls DIR allows those of a "
                "directory"
            )
        real = Path(os.path.realpath(path))
        if any(_holds(Path(os.path.realpath(each)), real) for each in (*self.private, *_KERNEL)):
            raise FailedPrecondition(f"{url}: {path} belongs to the server or the system itself")
        for each in self.directories:
            allowed = Path(os.path.realpath(each))
            if _holds(allowed, real):
                return allowed, real
        raise FailedPrecondition(
            f"{url}: {path} is not in a directory that --file-urls allows (links are followed first)"
        )

    def addresses(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host, each of which may be asked. To connect to one of these, not to the name: it may have
        others a moment later. Raises FailedPrecondition, and OSError for an unknown name."""
        found = _resolved(host, port)
        if not all(public(each, self.networks) for each in found):
            raise FailedPrecondition(
                f"{host} is not on the public internet; the server's option --url-network CIDR allows others"
            )
        return found

    def endpoint(self, url: str) -> str:
        """The URL of an object store's endpoint that a caller has named, all addresses of which have to be in
        `networks`: it gets requests signed with the server's credentials, and may redirect them. Over http the name is
        replaced by one of them; over https a certificate proves it. Raises FailedPrecondition, and OSError."""
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        found = _resolved(host, port or (443 if parts.scheme == "https" else 80))
        if not all(_within(ipaddress.ip_address(each.partition("%")[0]), self.networks) for each in found):
            raise FailedPrecondition(
                f"{host} is not in a network that the server's option --url-network allows, so it cannot be an "
                "endpoint; the server's own is in AWS_ENDPOINT_URL"
            )
        if parts.scheme != "http":
            return url
        address = f"[{found[0]}]" if ":" in found[0] else found[0]
        return urlunsplit(("http", f"{address}:{port}" if port else address, parts.path, parts.query, ""))


def network(text: str) -> IpNetwork:
    """A network in CIDR notation. Raises PachError."""
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise PachError(f"{text} is not a network such as 10.1.0.0/16 or fd00::/8: {error}") from error


def public(address: str, allowed: Sequence[IpNetwork] = ()) -> bool:
    """Whether an address is one of the public internet, or of an allowed network."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if inner is None and found in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            return public(str(inner), allowed)
    if _within(found, allowed):
        return True
    if found == _OF_AZURE or _within(found, _SPECIAL):
        return False
    given_out = found in _UNICAST if found.version == 6 else not (found.is_multicast or found.is_reserved)
    return found.is_global and given_out


def _within(address: ipaddress.IPv4Address | ipaddress.IPv6Address, networks: Sequence[IpNetwork]) -> bool:
    return any(address in each for each in networks if each.version == address.version)


def _resolved(host: str, port: int) -> Sequence[str]:
    """The addresses of a host. Raises OSError, also where the system's resolver takes long: it knows no other limit."""
    answer: Future[Any] = Future()

    def look() -> None:
        try:
            answer.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as failure:
            answer.set_exception(failure)

    threading.Thread(target=look, name="resolve", daemon=True).start()
    try:
        return list(dict.fromkeys(str(each[4][0]) for each in answer.result(timeout=_SECONDS)))
    except TimeoutError as error:
        raise OSError(f"the addresses of {host} are not known after {_SECONDS:g} s") from error


def _holds(directory: Path, path: Path) -> bool:
    return path == directory or directory in path.parents
