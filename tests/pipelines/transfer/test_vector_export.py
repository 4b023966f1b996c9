"""`lookalike export --vectors`, over an index that is written here, and read back by the programs that it is for."""

import json
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.transfer import vector_export
from stages.files.tables import annotation_table
from stages.files.tables.index_table import TABLE
from stages.record.sources import Source
from tests.command import Command
from tests.stages.serving.segments import ids, write_segment

pytestmark = pytest.mark.late_alone

NAMES = [*ids("0", 3), *ids("f", 2)]
VECTORS = np.random.default_rng(1).normal(size=(5, 8)).astype(np.float32)
ODD = "odd \udce9/ü.jpg"
SHOWN = "odd \\xe9/ü.jpg"
ENDINGS = (".parquet", ".npy", ".faiss")


def put_index(connection: Connection, root: Path, metric: str = "euclidean") -> str:
    """Two segments; the first picture has two files, one of them with an odd name and with people's attributes."""
    sources = {id: [Source(f"{row}.jpg", id, 640, 480, 1000)] for row, id in enumerate(NAMES)}
    sources[NAMES[0]] = [Source("0.jpg", "a" * 64, 640, 480, 1000), Source(ODD, "b" * 64, 320, 240, 500)]
    for segment, rows in (("0", slice(0, 3)), ("f", slice(3, 5))):
        some = {id: sources[id] for id in NAMES[rows]}
        write_segment(root / segment, NAMES[rows], VECTORS[rows], some, {"metric": metric})
    said = {"path": ["0.jpg"], "rating": pa.array([5]), "vector": ["taken"]}
    annotation_table.write_annotations(pa.table(said), root / "0" / annotation_table.FILE)
    connection.client.create_repo("index", project_name=connection.project)
    files = sorted(each for each in root.rglob("*") if each.is_file())
    commit = Repository(connection, "index").write([PutFile(f"/{each.relative_to(root)}", each) for each in files])
    connection.inspect(connection.commit("index", ""), pfs_pb2.FINISHED)
    return commit


@pytest.fixture
def commit(as_user: Connection, tmp_path: Path) -> str:
    return put_index(as_user, tmp_path / "index")


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_parquet_has_a_row_for_each_file(commit: str, command: Command) -> None:
    assert command.says("export", "p.parquet", "--vectors") == "wrote the vectors of 5 pictures to p.parquet\n"
    table = pq.read_table(command.directory / "p.parquet")
    assert table["id"].to_pylist() == [NAMES[0], *NAMES]
    assert table["path"].to_pylist() == ["0.jpg", SHOWN, "1.jpg", "2.jpg", "3.jpg", "4.jpg"]
    assert table["rating"].to_pylist() == [5, None, None, None, None, None]
    assert table["vector_stated"].to_pylist()[:2] == ["taken", None]
    assert table["width"].to_pylist()[:3] == [640, 320, 640]
    found = np.array(table["vector"].to_pylist(), np.float32)
    assert np.array_equal(found, VECTORS[[0, 0, 1, 2, 3, 4]])
    metadata = {key: json.loads(value) for key, value in table.schema.metadata.items()}
    assert metadata[b"lookalike.commit"] == commit
    assert (metadata[b"lookalike.count"], metadata[b"lookalike.dimension"]) == (5, 8)
    assert len(metadata[b"lookalike.model"]) == 64


def test_npy_has_a_row_for_each_picture(commit: str, command: Command) -> None:
    assert command.says("export", "p.npy", "--vectors").endswith(" p.npy, p.jsonl, p.json\n")
    assert np.array_equal(np.load(command.directory / "p.npy"), VECTORS)
    told = lines(command.directory / "p.jsonl")
    assert [each["id"] for each in told] == NAMES
    assert [(each["path"], each.get("rating")) for each in told[0]["files"]] == [("0.jpg", 5), (SHOWN, None)]
    assert json.loads((command.directory / "p.json").read_text())["commit"] == commit


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_faiss_finds_with_it_what_is_near(as_user: Connection, command: Command, tmp_path: Path, metric: str) -> None:
    put_index(as_user, tmp_path / "index", metric)
    command.says("export", "p.faiss", "--vectors")
    index = faiss.read_index(str(command.directory / "p.faiss"))
    assert (index.ntotal, index.d) == (5, 8)
    units = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    asked = units if metric == "cosine" else VECTORS
    near, rows = index.search(asked, 1)
    assert rows[:, 0].tolist() == list(range(5))
    assert near[:, 0] == pytest.approx([1] * 5 if metric == "cosine" else [0] * 5, abs=1e-6)
    assert [each["id"] for each in lines(command.directory / "p.jsonl")] == NAMES


def test_the_same_commit_gives_the_same_bytes(commit: str, command: Command) -> None:
    for ending in ENDINGS:
        command.says("export", f"one{ending}", "--vectors", "--at", commit)
        command.says("export", f"two{ending}", "--vectors")
        one, two = ((command.directory / f"{name}{ending}").read_bytes() for name in ("one", "two"))
        assert one == two
    assert not list(command.directory.glob("*.part"))


def test_vectors_come_some_at_a_time(
    as_user: Connection, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = vector_export.plan(as_user)
    whole, parts = list[int](), list[int]()
    for ending in ENDINGS:
        vector_export.write(planned, tmp_path / f"whole{ending}", whole.append)
    monkeypatch.setattr(vector_export, "_BATCH", 2)
    for ending in ENDINGS:
        vector_export.write(planned, tmp_path / f"parts{ending}", parts.append)
    assert (whole, parts) == ([3, 2] * 3, [2, 1, 2] * 3)
    tables = [pq.read_table(tmp_path / f"{name}.parquet") for name in ("whole", "parts")]
    assert tables[0].equals(tables[1])
    for ending in ENDINGS[1:]:
        assert (tmp_path / f"whole{ending}").read_bytes() == (tmp_path / f"parts{ending}").read_bytes()


def test_refusals_say_what_to_do(as_user: Connection, command: Command, tmp_path: Path) -> None:
    assert "add pictures with `lookalike add`" in command.fails("export", "p.npy", "--vectors")
    done = command.run("export", "p.txt", "--vectors")
    assert done.returncode == 2 and "p.parquet" in done.stderr
    assert command.run("export", "p.tar", "--at", "x").returncode == 2
    put_index(as_user, tmp_path / "index")
    assert "cannot write missing/p.npy" in command.fails("export", "missing/p.npy", "--vectors")
    (command.directory / "p.npy").mkdir()
    assert command.run("export", "p.npy", "--vectors").returncode != 0
    (command.directory / "p.npy").rmdir()
    Repository(as_user, "index").write([PutFile(f"/0/{TABLE}", b"PAR1 of before")])
    as_user.inspect(as_user.commit("index", ""), pfs_pb2.FINISHED)
    assert "run `lookalike upgrade`" in " ".join(command.fails("export", "p.npy", "--vectors").split())
    assert not list(command.directory.glob("p.*"))
