"""Commands write to the library of the directory they are typed in, or to none."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from pipelines.analysis.measurement import evaluation
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server import local_server
from pipelines.client.server.connection import Connection, ServerTarget, connect
from pipelines.commands import command_registry
from pipelines.library import ingest, picture_sources, queries
from pipelines.library.datasets import samples
from stages.backbone.backbone_spec import BackboneSpec, WeightsOrigin, format_spec
from tests.command import Command
from tests.pipelines.library import picture_contents
from tests.pipelines.stand_ins import SpecFiles, copying_spec

NET = BackboneSpec("net-9", 160, "avg", 1280, 32, "float32", WeightsOrigin("here", "0" * 64), "a" * 64)


@pytest.fixture
def started(command: Command) -> Iterator[Connection]:
    """A local server, started in the directory of the command, with the repos of a library and a described backbone;
    beside it a picture, and the specification of a pipeline that copies."""
    said = command.says("up", "--port", "0")
    assert f"lookalike uses it in {command.directory} and below" in said
    address = next(word for word in said.split() if word.startswith("grpc://"))
    connection = connect(ServerTarget(address))
    for repo in ("images", "masks", "queries", "models"):
        connection.client.create_repo(repo)
    Repository(connection, "models").write([PutFile("/backbone.json", format_spec(NET).encode())])
    SpecFiles(command.directory / "specs").write(copying_spec("preprocess", "images"))
    (command.directory / "below").mkdir()
    for folder in (command.directory, command.directory / "below"):
        (folder / "a.png").write_bytes(b"a")
    yield connection
    command.says("down")


def test_commands_use_the_library_around_them(started: Connection, command: Command, tmp_path: Path) -> None:
    images = Repository(started, "images")
    root = command.directory / ".lookalike"
    for place in (command.directory, command.directory / "below"):
        said = Command(place).says("add", "a.png", "--no-wait")
        assert said.startswith(f"writing to the library in {root}, at {started.address}\n")
        assert ("pipeline preprocess: created\n" in said) is (place == command.directory)
    assert re.search(
        r"^disk +[\d.]+ [kM]B in \.lookalike, [\d.,]+ [kMGTP]B free$", command.says("status"), re.MULTILINE
    )
    Command(command.directory / "below").says("remove", "--all")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "b.png").write_bytes(b"b")
    elsewhere = Command(tmp_path / "empty")
    said = elsewhere.fails("remove", "--all")
    assert said.startswith("there is no library in this directory or above it.")
    assert f"--address {started.address}" in said
    assert not list(images.list())
    said = elsewhere.says("add", "b.png", "--no-wait", "--address", started.address)
    assert said.startswith(f"writing to {started.address}, which --address names\n")
    assert list(images.list()) == ["/b.png"]
    elsewhere.environment["PACHD_ADDRESS"] = "grpc://127.0.0.1:1"
    elsewhere.says("status", "--address", started.address)


def test_a_stopped_library_above_is_started_as_it_was(started: Connection, command: Command) -> None:
    """With its options: without its token it would be open to all."""
    command.says("down")
    (command.directory / "token").write_text("a-token-that-is-long-enough-for-a-server\n")
    (command.directory / "token").chmod(0o600)
    command.says("up", "--port", "0", "--token-file", "token")
    below = Command(command.directory / "below")
    for word in ("status", "history"):
        command.says("down")
        first, *_ = below.says(word).splitlines()
        assert first == f"started the server of the library in {command.directory}/.lookalike, which was stopped"
        server = local_server.running(command.directory / ".lookalike")
        assert server is not None
        with pytest.raises(grpc.RpcError):
            list(connect(ServerTarget(server.address)).client.list_repo())
        assert "started" not in below.says(word)


def test_a_stopped_library_of_another_user_is_not_started(
    started: Connection, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command.says("down")
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert "is not running: start it with `lookalike up`" in command.fails("status")


def test_the_samples_are_removed_with_one_command(started: Connection, command: Command, tmp_path: Path) -> None:
    """Also if some of them have been removed before; another file in their folder stays."""
    for name in (*samples.library_names()[:20], f"{samples.LIBRARY}/mine.png", f"{samples.QUERIES}/cat-1.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    own = command.directory / "a.png"
    ingest.add(started, picture_sources.find([tmp_path / samples.LIBRARY, own]).sources)
    queries.put(started, queries.find([tmp_path / samples.QUERIES, own]))
    evaluation.put(started, {"samples.csv": b"source,label\n", "mine.csv": b"source,label\n"})
    said = command.says("demo", "--remove")
    assert re.search(r"removed 20 files from images.*: commit ", said), said
    assert "removed the query sample-queries: commit " in said
    assert set(picture_contents.library(started)) == {"a.png", "samples/mine.png"}
    assert list(Repository(started, "queries").list()) == ["/a.png"]
    assert [*evaluation.labels_files(started)] == ["evaluate/mine.csv"]
    assert "the library has no sample pictures" in command.says("demo", "--remove")


def test_a_demo_of_a_folder_without_pictures_says_so(started: Connection, command: Command) -> None:
    (command.directory / "texts").mkdir()
    (command.directory / "texts" / "a.txt").write_text("a")
    assert "texts has no pictures to search for" in command.fails("demo", "--images", "texts")


def test_every_command_that_needs_a_server_takes_its_address() -> None:
    without = {"up", "down", "demo", "init", "specs", "model list", "classify demo"}
    for name in command_registry.COMMANDS:
        found = command_registry.load(name)
        below = getattr(found, "commands", {})
        for typed, command in {f"{name} {each}": below[each] for each in below}.items() or [(name, found)]:
            if typed not in without:
                assert "--address" in {option for each in command.params for option in each.opts}, typed
