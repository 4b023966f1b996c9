"""The local server from up to down, and pachctl's contexts."""

import json
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.client.server import local_server
from pipelines.client.server.connection import connect
from pipelines.client.server.local_server import CONTEXT, LocalServer
from pipelines.client.server_choice import target
from pipelines.errors import LookalikeError

Up = Callable[..., LocalServer]


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Up]:
    """Starts the server of a root (that of the environment by default) on a free port; all are stopped after the
    test."""
    monkeypatch.setenv("LOOKALIKE_ROOT", str(tmp_path / "root"))
    roots: set[Path] = set()

    def start(root: Path = tmp_path / "root", fresh: bool = True) -> LocalServer:
        roots.add(root)
        server, started = local_server.up(root, 0)
        assert started is fresh
        return server

    yield start
    for root in roots:
        local_server.down(root)


def v2(path: Path) -> Any:
    return json.loads(path.read_text())["v2"]


def test_up_starts_a_server_that_answers_and_down_stops_it_but_keeps_its_state_and_port(up: Up, tmp_path: Path) -> None:
    server = up()
    assert connect(target()).address == server.address
    connect(target()).client.create_repo("kept")
    assert local_server.running(tmp_path / "root") == server
    assert up(fresh=False) == server
    assert local_server.down(tmp_path / "root") == server
    assert local_server.running(tmp_path / "root") is None
    assert local_server.down(tmp_path / "root") is None
    with pytest.raises(LookalikeError, match="server of the library in .*root is not running"):
        target()
    assert local_server.up(tmp_path / "root")[0].address == server.address
    assert connect(target()).client.inspect_repo("kept").repo.name == "kept"


def test_pachctl_gets_its_old_context_back(
    up: Up, tmp_path: Path, own_configuration: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a configuration that is a link, and for a user whose folder is called as the server is."""
    (tmp_path / "localpachd").mkdir()
    (tmp_path / "localpachd" / "__main__.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    before: dict[str, Any] = {
        "user_id": "me",
        "v2": {"active_context": "work", "contexts": {"work": {"pachd_address": "grpc://work:1"}}},
    }
    (tmp_path / "dotfiles").mkdir()
    linked = tmp_path / "dotfiles" / "config.json"
    linked.write_text(json.dumps(before))
    linked.chmod(0o640)
    own_configuration.parent.mkdir()
    own_configuration.symlink_to(linked)
    server = up()
    during = v2(own_configuration)
    assert during["active_context"] == CONTEXT
    assert during["contexts"] == {
        **before["v2"]["contexts"],
        CONTEXT: {"pachd_address": server.address, "source": "IMPORTED"},
    }
    up(fresh=False)
    local_server.down(tmp_path / "root")
    assert own_configuration.is_symlink() and json.loads(linked.read_text()) == before
    assert stat.S_IMODE(linked.stat().st_mode) == 0o640
    assert list(own_configuration.parent.iterdir()) == [own_configuration]


def test_a_project_and_a_context_chosen_meanwhile_stay(up: Up, tmp_path: Path, own_configuration: Path) -> None:
    up()
    config = json.loads(own_configuration.read_text())
    config["v2"]["contexts"][CONTEXT]["project"] = "prints"
    own_configuration.write_text(json.dumps(config))
    up(fresh=False)
    assert target().project == "prints"
    config["v2"]["contexts"]["work"] = {"pachd_address": "grpc://work:1"}
    config["v2"]["active_context"] = "work"
    own_configuration.write_text(json.dumps(config))
    local_server.down(tmp_path / "root")
    assert v2(own_configuration) == {"active_context": "work", "contexts": {"work": {"pachd_address": "grpc://work:1"}}}


def test_after_a_crash_it_is_started_again_and_the_old_context_is_not_forgotten(
    up: Up, tmp_path: Path, own_configuration: Path
) -> None:
    own_configuration.parent.mkdir()
    own_configuration.write_text('{"v2": {"active_context": "work", "contexts": {"work": {}}}}')
    first = up()
    kill(first)
    assert local_server.running(tmp_path / "root") is None
    assert local_server.down(tmp_path / "root") is None
    second = up()
    assert second.pid != first.pid
    assert second.address.endswith(f":{(tmp_path / 'root' / 'port').read_text().strip()}")  # which it keeps from now on
    assert v2(own_configuration)["contexts"][CONTEXT]["pachd_address"] == second.address
    local_server.down(tmp_path / "root")
    assert v2(own_configuration)["active_context"] == "work"


def kill(server: LocalServer) -> None:
    os.kill(server.pid, signal.SIGKILL)
    os.waitpid(server.pid, 0)


def test_a_stale_record_names_nobody_elses_process(up: Up, tmp_path: Path) -> None:
    """Process ids are reused: neither an unrelated process nor the server of another root is taken for ours."""
    other = up(tmp_path / "other")
    (tmp_path / "root").mkdir()
    for pid in (os.getpid(), other.pid, 2**22 + 1):
        record = {"root": str(tmp_path / "root"), "address": other.address, "pid": pid, "previous_context": ""}
        (tmp_path / "root" / "server.json").write_text(json.dumps(record))
        assert local_server.running(tmp_path / "root") is None
        assert local_server.down(tmp_path / "root") is None
    assert local_server.running(tmp_path / "other") == other


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"pid": 1}'])
def test_a_damaged_record_is_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / "server.json").write_text(content)
    assert local_server.running(tmp_path) is None


def test_a_port_in_use_is_reported_in_one_line(tmp_path: Path, own_configuration: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LookalikeError) as caught:
            local_server.up(tmp_path / "root", port)
    assert str(caught.value).startswith("localpachd did not start: cannot listen on")
    assert str(port) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not own_configuration.exists()


def test_a_new_library_takes_the_usual_port_or_a_free_one(
    up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        usual = taken.getsockname()[1]
        monkeypatch.setattr(local_server, "PORT", usual)
        taken.listen()
        try:
            other, _ = local_server.up(tmp_path / "other")
            assert not other.address.endswith(f":{usual}")
        finally:
            local_server.down(tmp_path / "other")
    try:
        assert local_server.up(tmp_path / "new")[0].address.endswith(f":{usual}")
    finally:
        local_server.down(tmp_path / "new")


def test_a_root_has_one_server(up: Up, tmp_path: Path) -> None:
    up()
    (tmp_path / "root" / "server.json").unlink()
    with pytest.raises(LookalikeError, match="in use by another localpachd"):
        local_server.up(tmp_path / "root", 0)
    pid = int((tmp_path / "root" / "pachd" / "lock").read_text())
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_the_default_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert local_server.default_root({}) == Path(".lookalike")
    assert local_server.default_root({"LOOKALIKE_ROOT": str(tmp_path)}) == tmp_path
    (tmp_path / ".lookalike" / "pachd").mkdir(parents=True)
    (tmp_path / "below" / ".lookalike").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "below")
    assert local_server.default_root({}) == tmp_path / ".lookalike"


def test_variables_that_point_elsewhere_are_reported() -> None:
    server = LocalServer("/root", "grpc://127.0.0.1:1", 1, "")
    assert local_server.overridden(server, {}) == []
    assert local_server.overridden(server, {"PACHD_ADDRESS": "127.0.0.1:1", "PACH_CONTEXT": "work"}) == []
    assert local_server.overridden(server, {"PACH_CONTEXT": CONTEXT}) == []
    assert "PACHD_ADDRESS is grpc://work:1" in local_server.overridden(server, {"PACHD_ADDRESS": "grpc://work:1"})[0]
    assert "PACH_CONTEXT is work" in local_server.overridden(server, {"PACH_CONTEXT": "work"})[0]
