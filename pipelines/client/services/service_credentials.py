"""The protection of a deployed service: its token and its certificate, in files of this user and in a secret of the
server. Knows no pipelines but those that have the secret."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from pipelines.client.server.connection import Connection
from pipelines.client.services.service_discovery import certificate_file, state_directory, token_file
from pipelines.client.services.service_roles import SEARCH, ServiceRole
from pipelines.errors import LookalikeError

TOKEN, CERTIFICATE, KEY = "token", "tls.crt", "tls.key"
"""The names of the values of the secret."""

_BYTES = 24


@dataclass(frozen=True, slots=True)
class ServiceCredentials:
    """A token, and a certificate with its key as in their files; b"" without TLS."""

    token: str = field(repr=False)
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)


def token(connection: Connection, given: str = "", role: ServiceRole = SEARCH) -> str:
    """The token of the service that this user deploys: the given one, the one that is kept, or else a new one.

    Raises LookalikeError if somebody else has made the one that the server has.
    """
    found = given or _text(token_file(connection, role))
    if not found and exists(connection, role):
        raise LookalikeError(
            f"the server has a secret {role.secret} whose token this user does not have: ask for it and name its file "
            f"with --token-file, or delete it with `pachctl delete secret {role.secret}`"
        )
    return found or secrets.token_urlsafe(_BYTES)


def kept_certificate(connection: Connection, role: ServiceRole = SEARCH) -> Path | None:
    """The certificate of the service that this user has deployed, None without one."""
    path = certificate_file(token_file(connection, role))
    return path if path.is_file() else None


def put(connection: Connection, wanted: ServiceCredentials, role: ServiceRole = SEARCH) -> bool:
    """Keeps the protection for this user, and makes it the secret; returns whether the secret is another one now. A
    kept certificate stays if none is given. Raises LookalikeError where that is not possible."""
    there = exists(connection, role)
    kept = token_file(connection, role)
    held = certificate_file(kept)
    same = wanted.token == _text(kept) and (not wanted.certificate or _bytes(held) == wanted.certificate)
    if there and same:
        return False
    if there and held.is_file() and not wanted.certificate:
        raise LookalikeError(
            "another token needs the certificate and its key again: name them with --tls-cert and --tls-key"
        )
    if there:
        connection.client.delete_secret(role.secret)
    values = {TOKEN: wanted.token.encode(), CERTIFICATE: wanted.certificate, KEY: wanted.key}
    connection.client.create_secret(role.secret, {name: value for name, value in values.items() if value})
    _write(kept, wanted.token.encode() + b"\n")
    if wanted.certificate:
        _write(held, wanted.certificate)
    return True


def remove(connection: Connection, role: ServiceRole = SEARCH) -> bool:
    """Forgets the protection, and deletes the secret unless a pipeline still has it; returns whether it was deleted."""
    kept = token_file(connection, role)
    for path in (kept, certificate_file(kept)):
        path.unlink(missing_ok=True)
    for info in connection.client.list_pipeline(details=True):
        if any(each.name == role.secret for each in info.details.transform.secrets):
            return False
    if not exists(connection, role):
        return False
    connection.client.delete_secret(role.secret)
    return True


def exists(connection: Connection, role: ServiceRole = SEARCH) -> bool:
    """Whether the server has the secret."""
    try:
        connection.client.inspect_secret(role.secret)
    except grpc.RpcError as error:
        # Pachyderm passes Kubernetes' error on without its code.
        if error.code() == grpc.StatusCode.NOT_FOUND or "not found" in str(error.details()):
            return False
        raise
    return True


@contextlib.contextmanager
def temporary_token() -> Iterator[Path]:
    """The file of a new token for a service of this process, which only this user can read; gone at the end."""
    path = state_directory() / "tokens" / f"process-{os.getpid()}"
    _write(path, secrets.token_urlsafe(_BYTES).encode() + b"\n")
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _text(path: Path) -> str:
    return _bytes(path).decode("ascii", "replace").strip()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _write(path: Path, content: bytes) -> None:
    """Writes a file that only this user can read."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        scratch.unlink()
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    scratch.replace(path)
