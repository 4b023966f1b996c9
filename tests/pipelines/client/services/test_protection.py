"""The token and the certificate of the deployed service: made once, kept for one user, never guessed for another."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.client.server.connection import Connection
from pipelines.client.services import protection, services
from pipelines.client.services.protection import Protection
from pipelines.client.services.roles import CLASSIFY, SEARCH
from pipelines.errors import LookalikeError

pytestmark = pytest.mark.late_alone


@pytest.fixture(autouse=True)
def secret(connection: Connection) -> Iterator[None]:
    """Deletes the secret, which all projects of a server share."""
    yield
    for role in (SEARCH, CLASSIFY):
        if protection.exists(connection, role):
            connection.client.delete_secret(role.secret)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_token_is_made_once_and_kept_for_its_user(connection: Connection) -> None:
    token = protection.token(connection)
    assert len(token) >= 32
    assert protection.token(connection) != token  # not kept before it is put
    assert protection.put(connection, Protection(token))
    assert protection.exists(connection)
    assert protection.token(connection) == token
    file = services.token_file(connection)
    assert file.read_text() == f"{token}\n"
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)
    assert not protection.put(connection, Protection(token))


def test_another_token_or_certificate_is_another_secret(connection: Connection) -> None:
    assert protection.put(connection, Protection("a" * 20))
    assert protection.put(connection, Protection("b" * 20))
    assert protection.kept_certificate(connection) is None
    assert protection.put(connection, Protection("b" * 20, b"certificate", b"key"))
    kept = protection.kept_certificate(connection)
    assert kept is not None
    assert (kept.read_bytes(), mode(kept)) == (b"certificate", 0o600)
    assert not protection.put(connection, Protection("b" * 20))
    with pytest.raises(LookalikeError, match="needs the certificate and its key again: name them with --tls-cert"):
        protection.put(connection, Protection("c" * 20))


def test_the_secret_of_somebody_else_is_not_replaced_unasked(connection: Connection) -> None:
    protection.put(connection, Protection("a" * 20))
    services.token_file(connection).unlink()
    with pytest.raises(LookalikeError, match="--token-file, or delete it with `pachctl delete secret lookalike-serve`"):
        protection.token(connection)
    assert protection.token(connection, "a" * 20) == "a" * 20


def test_it_is_forgotten(connection: Connection) -> None:
    protection.put(connection, Protection("a" * 20, b"certificate", b"key"))
    assert protection.remove(connection)
    assert not protection.exists(connection)
    assert list(services.token_file(connection).parent.iterdir()) == []
    assert not protection.remove(connection)


def test_each_service_has_a_token_of_its_own(connection: Connection) -> None:
    protection.put(connection, Protection("a" * 20))
    protection.put(connection, Protection("b" * 20), CLASSIFY)
    assert [protection.token(connection, role=role) for role in (SEARCH, CLASSIFY)] == ["a" * 20, "b" * 20]
    assert protection.remove(connection, CLASSIFY)
    assert protection.exists(connection)
    assert protection.token(connection) == "a" * 20
