"""The token and the certificate of the deployed service: made once, kept for one user, never guessed for another."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.client.server.connection import Connection
from pipelines.client.services import service_credentials, service_discovery
from pipelines.client.services.service_credentials import ServiceCredentials
from pipelines.client.services.service_roles import CLASSIFY, SEARCH
from pipelines.errors import LookalikeError

pytestmark = pytest.mark.late_alone


@pytest.fixture(autouse=True)
def secret(connection: Connection) -> Iterator[None]:
    """Deletes the secret, which all projects of a server share."""
    yield
    for role in (SEARCH, CLASSIFY):
        if service_credentials.exists(connection, role):
            connection.client.delete_secret(role.secret)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_token_is_made_once_and_kept_for_its_user(connection: Connection) -> None:
    token = service_credentials.token(connection)
    assert len(token) >= 32
    assert service_credentials.token(connection) != token  # not kept before it is put
    assert service_credentials.put(connection, ServiceCredentials(token))
    assert service_credentials.exists(connection)
    assert service_credentials.token(connection) == token
    file = service_discovery.token_file(connection)
    assert file.read_text() == f"{token}\n"
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)
    assert not service_credentials.put(connection, ServiceCredentials(token))


def test_another_token_or_certificate_is_another_secret(connection: Connection) -> None:
    assert service_credentials.put(connection, ServiceCredentials("a" * 20))
    assert service_credentials.put(connection, ServiceCredentials("b" * 20))
    assert service_credentials.kept_certificate(connection) is None
    assert service_credentials.put(connection, ServiceCredentials("b" * 20, b"certificate", b"key"))
    kept = service_credentials.kept_certificate(connection)
    assert kept is not None
    assert (kept.read_bytes(), mode(kept)) == (b"certificate", 0o600)
    assert not service_credentials.put(connection, ServiceCredentials("b" * 20))
    with pytest.raises(LookalikeError, match="needs the certificate and its key again: name them with --tls-cert"):
        service_credentials.put(connection, ServiceCredentials("c" * 20))


def test_the_secret_of_somebody_else_is_not_replaced_unasked(connection: Connection) -> None:
    service_credentials.put(connection, ServiceCredentials("a" * 20))
    service_discovery.token_file(connection).unlink()
    with pytest.raises(LookalikeError, match="--token-file, or delete it with `pachctl delete secret lookalike-serve`"):
        service_credentials.token(connection)
    assert service_credentials.token(connection, "a" * 20) == "a" * 20


@pytest.mark.versions
def test_it_is_forgotten(connection: Connection) -> None:
    service_credentials.put(connection, ServiceCredentials("a" * 20, b"certificate", b"key"))
    assert service_credentials.remove(connection)
    assert not service_credentials.exists(connection)
    assert list(service_discovery.token_file(connection).parent.iterdir()) == []
    assert not service_credentials.remove(connection)


def test_each_service_has_a_token_of_its_own(connection: Connection) -> None:
    service_credentials.put(connection, ServiceCredentials("a" * 20))
    service_credentials.put(connection, ServiceCredentials("b" * 20), CLASSIFY)
    assert [service_credentials.token(connection, role=role) for role in (SEARCH, CLASSIFY)] == ["a" * 20, "b" * 20]
    assert service_credentials.remove(connection, CLASSIFY)
    assert service_credentials.exists(connection)
    assert service_credentials.token(connection) == "a" * 20
