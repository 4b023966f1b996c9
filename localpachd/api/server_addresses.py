"""The addresses that the server listens on, TLS on them, and the rule which of them need protection. Knows no service.

Workers' processes and official clients inside of them connect to the loopback without TLS, so a server with TLS, or
without the loopback among its addresses, has one more port there.
"""

import ipaddress
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from localpachd.errors import FailedPrecondition, Unavailable

LOOPBACK = "127.0.0.1"
_WITH_LOOPBACK = frozenset((LOOPBACK, "localhost", "0.0.0.0"))
_SHORTEST = 16
"""Characters of a token: what a program makes is longer, and shorter ones can be guessed."""


@dataclass(frozen=True, slots=True)
class AccessProtection:
    """Against strangers: a file with the token that callers must send, one with a certificate and those that it was
    issued with, and one with its key, both in PEM. `insecure`: to listen on any address without them."""

    token_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False

    @property
    def tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.certificate is not None


@dataclass(frozen=True, slots=True)
class ServerAddresses:
    """A server's addresses: the one for clients, its port, and the port of the loopback for workers."""

    address: str
    port: int
    workers_port: int


def check(host: str, protection: AccessProtection) -> None:
    """Refuses, as FailedPrecondition, an address that strangers could reach without TLS and a token. Raises Unavailable
    for a name that is not known. The rule for the port of the metrics is the same."""
    if (protection.certificate is None) != (protection.key is None):
        raise FailedPrecondition("--tls-cert and --tls-key belong together: give both")
    if protection.insecure or (protection.tls and protection.token_file is not None):
        return
    if not _is_loopback(host):
        raise FailedPrecondition(
            f"{host} is not a loopback address, so others could read and change everything here: give --tls-cert, "
            "--tls-key and --token-file, or type --insecure if all who can reach this address may do that"
        )


def token(file: Path | None) -> str:
    """The token in a file, without white space around it; "" for no file. Raises FailedPrecondition."""
    if file is None:
        return ""
    try:
        text = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it has characters outside of ASCII"
        raise FailedPrecondition(f"cannot read the token in {file}: {said}") from error
    if len(text) < _SHORTEST or not text.isprintable() or " " in text:
        raise FailedPrecondition(
            f"{file} must hold a token of at least {_SHORTEST} characters, without spaces, such as that of "
            "`openssl rand -hex 32`"
        )
    return text


def listen(server: grpc.Server, host: str, port: int, protection: AccessProtection) -> ServerAddresses:
    """Adds the ports to a server that has not been started. Raises Unavailable if they are taken, FailedPrecondition
    for an invalid certificate or key."""
    name = host.strip("[]")
    place = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    credentials = _credentials(protection)
    try:
        found = server.add_insecure_port(place) if credentials is None else server.add_secure_port(place, credentials)
    except RuntimeError:
        found = 0
    if found == 0:
        raise Unavailable(f"cannot listen on {place}: another program may be using it; choose another --port (0: any)")
    shared = credentials is None and name in _WITH_LOOPBACK
    workers = found if shared else server.add_insecure_port(f"{LOOPBACK}:0")
    scheme = "grpc" if credentials is None else "grpcs"
    return ServerAddresses(f"{scheme}://{place.rpartition(':')[0]}:{found}", int(found), int(workers))


def tls_context(protection: AccessProtection) -> ssl.SSLContext | None:
    """The certificate and its key for a port that is not gRPC's; None without. Raises FailedPrecondition if they cannot
    be used."""
    certificate, key = protection.certificate, protection.key
    if certificate is None or key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with _usable(certificate, key):
        context.load_cert_chain(certificate, key, password="")  # one with a password would ask for it
    return context


def _credentials(protection: AccessProtection) -> grpc.ServerCredentials | None:
    certificate, key = protection.certificate, protection.key
    if certificate is None or key is None:
        return None
    tls_context(protection)  # gRPC would listen with any text, and fail each connection
    with _usable(certificate, key):
        return grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])


@contextmanager
def _usable(certificate: Path, key: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # SSLError is an OSError
        said = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise FailedPrecondition(f"cannot use the certificate {certificate} with the key {key}: {said}") from error


def _is_loopback(host: str) -> bool:
    name = host.strip("[]")
    try:
        found = {str(each[4][0]) for each in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)}
    except OSError as error:
        raise Unavailable(f"cannot listen on {host}: {error.strerror}") from error
    return all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in found)
