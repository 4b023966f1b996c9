"""Choosing the server: the command line, the environment, the library of the directory, and pachctl's context last."""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.client.server import local_server, pachctl_config
from pipelines.client.server.connection import ServerTarget
from pipelines.client.server.pachctl_config import config_path, read_config
from pipelines.client.server_choice import is_free, target
from pipelines.errors import LookalikeError

CONTEXTS = {
    "one": {"pachd_address": "grpc://one:1", "project": "prints", "session_token": "secret"},
    "two": {"pachd_address": "grpcs://two:2", "server_cas": base64.b64encode(b"certificates").decode()},
    "forwarded": {"port_forwarders": {"pachd": 30651}},
    "empty": {"source": "IMPORTED"},
}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"v2": {"active_context": "one", "contexts": CONTEXTS}}))
    return path


def environment(path: Path, **more: str) -> dict[str, str]:
    return {"PACH_CONFIG": str(path), **more}


def test_the_active_context_is_used_and_pach_context_takes_precedence(config: Path) -> None:
    assert target("", environment(config)) == ServerTarget("grpc://one:1", "prints", "secret")
    found = target("", environment(config, PACH_CONTEXT="two"))
    assert found == ServerTarget("grpcs://two:2", "default", None, b"certificates")
    assert target("", environment(config, PACH_CONTEXT="forwarded")).address == "grpc://localhost:30651"


def test_pachd_address_takes_precedence_but_keeps_the_project(config: Path) -> None:
    found = target("", environment(config, PACHD_ADDRESS="grpc://here:3"))
    assert found == ServerTarget("grpc://here:3", "prints", "secret")
    assert target("", {"PACHD_ADDRESS": "here:3", "PACH_CONFIG": str(config.parent / "gone")}) == ServerTarget("here:3")


def test_pachd_address_has_certificates_of_its_own(config: Path, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"other certificates")
    named = environment(config, PACHD_ADDRESS="grpcs://here:3", PACH_CA_CERTS=str(tmp_path / "ca.pem"))
    assert target("", named).root_certificates == b"other certificates"
    with pytest.raises(LookalikeError, match="which PACH_CA_CERTS names"):
        target("", {**named, "PACH_CA_CERTS": str(tmp_path / "gone.pem")})


def test_without_a_server_the_message_says_how_to_get_one(config: Path, tmp_path: Path) -> None:
    for where in (environment(tmp_path / "gone"), environment(config, PACH_CONTEXT="empty")):
        with pytest.raises(LookalikeError, match=r"lookalike up.*PACHD_ADDRESS.*pachctl connect"):
            target("", where)


def test_a_missing_context_is_named(config: Path) -> None:
    with pytest.raises(LookalikeError, match="no context three, which PACH_CONTEXT names"):
        target("", environment(config, PACH_CONTEXT="three"))
    config.write_text(json.dumps({"v2": {"active_context": "gone"}}))
    with pytest.raises(LookalikeError, match="no context gone, which its active context names"):
        target("", environment(config))


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
        target("", environment(config))


def test_broken_certificates_are_named(config: Path) -> None:
    broken = {"pachd_address": "grpcs://a:1", "server_cas": "no base64!"}
    config.write_text(json.dumps({"v2": {"active_context": "a", "contexts": {"a": broken}}}))
    with pytest.raises(LookalikeError, match="server_cas"):
        target("", environment(config))


def test_an_empty_or_missing_configuration_is_valid_and_an_unreadable_one_named(tmp_path: Path) -> None:
    with pytest.raises(LookalikeError, match="cannot read pachctl's configuration"):
        read_config(tmp_path)  # a directory
    (tmp_path / "config.json").write_text("{}")
    for path in (tmp_path / "config.json", tmp_path / "gone.json"):
        assert read_config(path) == {"v2": {"contexts": {}}}


def test_the_usual_place_is_in_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(pachctl_config, "_IN_CONTAINERS", tmp_path / "pachctl" / "config.json")
    assert config_path({}) == tmp_path / ".pachyderm" / "config.json"
    (tmp_path / "pachctl").mkdir()
    (tmp_path / "pachctl" / "config.json").touch()
    assert config_path({}) == tmp_path / "pachctl" / "config.json"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Path]:
    """A directory with a library whose server runs."""
    server, _ = local_server.up(tmp_path / "pictures" / ".lookalike", 0)
    (tmp_path / "pictures" / "trip" / "day 1").mkdir(parents=True)
    yield tmp_path / "pictures"
    local_server.down(Path(server.root))


def test_the_library_of_the_directory_comes_before_pachctls_context(
    config: Path, running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = local_server.running(running / ".lookalike")
    assert server is not None
    for place in (running, running / "trip" / "day 1"):
        monkeypatch.chdir(place)
        found = target("", environment(config))
        assert found == ServerTarget(server.address, local=True)
        assert found.words == f"the library in {running / '.lookalike'}, at {server.address}"
    named = target("grpc://there:3", environment(config, PACHD_ADDRESS="grpc://here:3"))
    assert (named.address, named.words) == ("grpc://there:3", "grpc://there:3, which --address names, project prints")
    assert target("", environment(config, PACHD_ADDRESS="grpc://here:3")).address == "grpc://here:3"
    assert target("", environment(config, PACH_CONTEXT="two")).address == "grpcs://two:2"
    elsewhere = target("", environment(config, LOOKALIKE_ROOT=str(running / ".lookalike")))
    assert elsewhere.address == server.address


def test_a_library_can_begin_where_nothing_names_a_server(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_free("", {"PACH_CONFIG": str(config.parent / "gone")})
    local = {"active_context": local_server.CONTEXT, "contexts": {local_server.CONTEXT: CONTEXTS["one"]}}
    for content, free in (
        (local, True),
        ({"active_context": "empty", "contexts": CONTEXTS}, True),
        ({"active_context": "forwarded", "contexts": CONTEXTS}, False),
        ({"active_context": "one", "contexts": CONTEXTS}, False),
    ):
        config.write_text(json.dumps({"v2": content}))
        assert is_free("", environment(config)) is free
        for name in ("PACHD_ADDRESS", "PACH_CONTEXT", "LOOKALIKE_ROOT"):
            assert not is_free("", environment(config, **{name: "one"}))
        assert not is_free("grpc://there:3", environment(config))
    (config.parent / ".lookalike" / "pachd").mkdir(parents=True)
    (config.parent / "below").mkdir()
    monkeypatch.chdir(config.parent / "below")
    assert not is_free("", {"PACH_CONFIG": str(config.parent / "gone")})


def test_a_stopped_library_is_not_replaced_by_another_server(config: Path) -> None:
    (config.parent / ".lookalike" / "pachd").mkdir(parents=True)
    with pytest.raises(LookalikeError, match=r"library in .*\.lookalike is not running: start it with `lookalike up`"):
        target("", environment(config))
    with pytest.raises(LookalikeError, match="gone is not running"):
        target("", environment(config, LOOKALIKE_ROOT="gone"))


def test_a_directory_without_a_servers_state_is_not_a_library(config: Path) -> None:
    (config.parent / ".lookalike" / "stl10").mkdir(parents=True)
    assert target("", environment(config)).address == "grpc://one:1"


def test_a_local_server_of_another_directory_is_not_chosen_unasked(config: Path) -> None:
    context = {local_server.CONTEXT: {"pachd_address": "grpc://127.0.0.1:5"}}
    config.write_text(json.dumps({"v2": {"active_context": local_server.CONTEXT, "contexts": context}}))
    with pytest.raises(LookalikeError, match=r"no library in this directory.*--address grpc://127\.0\.0\.1:5"):
        target("", environment(config))
    assert target("", environment(config, PACH_CONTEXT=local_server.CONTEXT)).address == "grpc://127.0.0.1:5"
