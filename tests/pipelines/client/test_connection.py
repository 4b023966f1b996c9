"""Finding the server as pachctl does, and the messages if there is none."""

import base64
import json
import re
import socket
from pathlib import Path

import pytest

from pipelines.client import connection as connections
from pipelines.client.connection import Target, config_path, connect, read_config, target
from pipelines.errors import LookalikeError
from tests.servers import Pachd

CONTEXTS = {
    "one": {"pachd_address": "grpc://one:1", "project": "prints", "session_token": "secret"},
    "two": {"pachd_address": "grpcs://two:2", "server_cas": base64.b64encode(b"certificates").decode()},
    "forwarded": {"port_forwarders": {"pachd": 30651}},
    "empty": {"source": "IMPORTED"},
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"v2": {"active_context": "one", "contexts": CONTEXTS}}))
    return path


def environment(path: Path, **more: str) -> dict[str, str]:
    return {"PACH_CONFIG": str(path), **more}


def test_the_active_context_is_used(config: Path) -> None:
    assert target(environment(config)) == Target("grpc://one:1", "prints", "secret")


def test_pach_context_takes_precedence(config: Path) -> None:
    found = target(environment(config, PACH_CONTEXT="two"))
    assert found == Target("grpcs://two:2", "default", None, b"certificates")
    assert target(environment(config, PACH_CONTEXT="forwarded")).address == "grpc://localhost:30651"


def test_pachd_address_takes_precedence_but_keeps_the_project(config: Path) -> None:
    found = target(environment(config, PACHD_ADDRESS="grpc://here:3"))
    assert found == Target("grpc://here:3", "prints", "secret")
    assert target({"PACHD_ADDRESS": "here:3", "PACH_CONFIG": str(config.parent / "gone")}) == Target("here:3")


def test_pachd_address_has_certificates_of_its_own(config: Path, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"other certificates")
    named = environment(config, PACHD_ADDRESS="grpcs://here:3", PACH_CA_CERTS=str(tmp_path / "ca.pem"))
    assert target(named).root_certificates == b"other certificates"
    with pytest.raises(LookalikeError, match="which PACH_CA_CERTS names"):
        target({**named, "PACH_CA_CERTS": str(tmp_path / "gone.pem")})


def test_without_a_server_the_message_says_how_to_get_one(config: Path, tmp_path: Path) -> None:
    for where in (environment(tmp_path / "gone"), environment(config, PACH_CONTEXT="empty")):
        with pytest.raises(LookalikeError, match=r"lookalike up.*PACHD_ADDRESS=.*pachctl connect"):
            target(where)


def test_a_missing_context_is_named(config: Path) -> None:
    with pytest.raises(LookalikeError, match="no context three, which PACH_CONTEXT names"):
        target(environment(config, PACH_CONTEXT="three"))
    config.write_text(json.dumps({"v2": {"active_context": "gone"}}))
    with pytest.raises(LookalikeError, match="no context gone, which its active context names"):
        target(environment(config))


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"\xff\xfe",
        b"[]",
        b"7",
        b'{"v2": []}',
        b'{"v2": null}',
        b'{"v2": {"contexts": [1]}}',
        b'{"v2": {"contexts": {"one": "grpc://one:1"}}}',
    ],
)
def test_a_broken_configuration_is_named(config: Path, content: bytes) -> None:
    config.write_bytes(content)
    with pytest.raises(LookalikeError, match=re.escape(str(config))):
        target(environment(config))


def test_an_unreadable_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(LookalikeError, match="cannot read pachctl's configuration"):
        read_config(tmp_path)  # a directory


def test_broken_certificates_are_named(config: Path) -> None:
    config.write_text(json.dumps({"v2": {"active_context": "a", "contexts": {"a": {"server_cas": "no base64!"}}}}))
    with pytest.raises(LookalikeError, match="server_cas"):
        target(environment(config))


def test_an_empty_or_missing_configuration_is_valid(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    for path in (tmp_path / "config.json", tmp_path / "gone.json"):
        assert read_config(path) == {"v2": {"contexts": {}}}


def test_the_usual_place_is_in_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(connections, "_IN_CONTAINERS", tmp_path / "pachctl" / "config.json")
    assert config_path({}) == tmp_path / ".pachyderm" / "config.json"
    (tmp_path / "pachctl").mkdir()
    (tmp_path / "pachctl" / "config.json").touch()
    assert config_path({}) == tmp_path / "pachctl" / "config.json"


def test_a_server_that_answers_is_connected_to(pachd: Pachd) -> None:
    for address in (pachd.address, pachd.address.removeprefix("grpc://")):
        found = connect(Target(address, "prints"))
        assert (found.address, found.project) == (pachd.address, "prints")
        assert found.client.get_remote_version().major == 2


def test_a_server_that_does_not_listen_is_reported() -> None:
    with socket.socket() as taken:  # bound but not listening: nobody else can take the port meanwhile
        taken.bind(("127.0.0.1", 0))
        address = f"grpc://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(LookalikeError, match=f"no Pachyderm answers at {address}: start localpachd with"):
            connect(Target(address))


@pytest.mark.parametrize("address", ["ftp://here:1", "grpc://user@here:1", "grpc://here:1/path", "grpc://here:port"])
def test_invalid_addresses_are_reported(address: str) -> None:
    with pytest.raises(LookalikeError, match=re.escape(f"{address} is not a valid address of a Pachyderm server")):
        connect(Target(address))
