"""The command for pictures that stand out, over an index that is written here."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from stages.files.tables.index_table import TABLE, IndexTable
from stages.record.sources import Source
from tests.command import Command
from tests.stages.report.page_documents import PageDocument
from tests.stages.serving.segments import ids, write_segment

pytestmark = pytest.mark.late_alone

IDS = {segment: ids(segment, 15) for segment in "0f"}
FLAWS = {"0": {0: "blurred"}, "f": {0: "dark", 1: "flat"}}


def put(connection: Connection, repo: str, directory: Path) -> None:
    connection.client.create_repo(repo, project_name=connection.project)
    files = sorted(each for each in directory.rglob("*") if each.is_file())
    Repository(connection, repo).write([PutFile(f"/{each.relative_to(directory)}", each) for each in files])
    connection.inspect(connection.commit(repo, ""), pfs_pb2.FINISHED)


def write_index(root: Path) -> None:
    """Two segments of pictures; the first of one is blurred, those of the other are dark and flat. All are near to each
    other, but one that lies far away."""
    for segment, names in IDS.items():
        vectors = np.array([[row % 6, row // 6, 0, "0f".index(segment)] for row in range(15)], np.float32)
        vectors[7] = [20, 20, 0, 0] if segment == "0" else vectors[7]
        sources = {id: [Source(f"{segment}/[{row}].jpg", id, 640, 480, 1000)] for row, id in enumerate(names)}
        written = write_segment(root / segment, names, vectors, sources)
        flawed = FLAWS[segment]
        table = replace(
            IndexTable.read(written / TABLE),
            brightness=np.array([0.05 if flawed.get(row) == "dark" else 0.5 for row in range(15)]),
            contrast=np.array([{"dark": 0.2, "flat": 0.01}.get(flawed.get(row, ""), 0.9) for row in range(15)]),
            sharpness=np.array([0.1 if flawed.get(row) == "blurred" else 0.5 for row in range(15)]),
        )
        table.write(written / TABLE)


@pytest.fixture
def library(as_user: Connection, tmp_path: Path) -> Connection:
    write_index(tmp_path / "index")
    put(as_user, "index", tmp_path / "index")
    return as_user


def listed(command: Command, *arguments: str) -> dict[str, Any]:
    found = json.loads(command.says("quality", "--json", *arguments))
    return {each["name"]: each for each in found["lists"]} | {"pictures": found["pictures"]}


def lines(directory: Path) -> Sequence[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "quality.jsonl").read_text().splitlines()]


def test_pictures_that_stand_out_are_named_shown_and_written(library: Connection, command: Command) -> None:
    said = command.says("quality")
    rows = {line.split("  ")[0].strip(): line for line in said.splitlines()}
    assert "30 pictures in the library" in said
    assert rows["Blurred"].split()[1:] == ["1", "0/[0].jpg"] and rows["Dark"].split()[1:] == ["1", "f/[0].jpg"]
    assert rows["Without content"].split()[2:] == ["1", "f/[1].jpg"]
    assert rows["Unlike all others"].split()[3:] == ["1", "0/[7].jpg"]
    out = command.directory / "results" / "quality"
    document = PageDocument((out / "index.html").read_text())
    assert set(document.alternatives) == {"0/[0].jpg", "0/[7].jpg", "f/[0].jpg", "f/[1].jpg"}
    assert [(each["flaw"], each["sources"][0]["path"]) for each in lines(out)] == [
        ("blurred", "0/[0].jpg"),
        ("dark", "f/[0].jpg"),
        ("flat", "f/[1].jpg"),
        ("outlier", "0/[7].jpg"),
    ]


def test_a_library_without_an_index_or_with_an_older_one_says_what_to_do(
    as_user: Connection, command: Command, tmp_path: Path
) -> None:
    assert "add pictures with `lookalike add`" in command.fails("quality")
    (tmp_path / "index" / "0").mkdir(parents=True)
    (tmp_path / "index" / "0" / TABLE).write_bytes(b"PAR1 of before")
    put(as_user, "index", tmp_path / "index")
    assert "run `lookalike upgrade`" in " ".join(command.fails("quality").split())
