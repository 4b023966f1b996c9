"""Several file sets uploaded at the same time: their order, and the end of all when one fails or nobody waits."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pipelines.client import file_sets
from pipelines.client.commit_writer import CommitWriter
from pipelines.client.file_sets import FileSets, ModifyRequests
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection

REPO = "images"
MINUTE = 60.0

pytestmark = pytest.mark.late_alone


@pytest.fixture
def repo(connection: Connection) -> Repository:
    """A repo without files."""
    connection.client.create_repo(REPO, project_name=connection.project)
    return Repository(connection, REPO)


class Endless:
    """Content without an end. `begun` and `over` tell whether it is read."""

    def __init__(self) -> None:
        self.begun, self.over = threading.Event(), threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        try:
            while True:
                yield bytes(1 << 20)
                self.begun.set()
        finally:
            self.over.set()


def changes(repo: Repository, path: str, content: bytes | Iterable[bytes]) -> ModifyRequests:
    return repo.requests([PutFile(path, content)])


def test_two_uploads_go_on_at_once_and_keep_their_order(connection: Connection, repo: Repository) -> None:
    both = threading.Barrier(2)

    def together(number: int) -> Iterator[bytes]:
        both.wait(MINUTE)
        yield str(number).encode()

    with FileSets(connection) as filesets:
        made = list(filesets.make_all(changes(repo, "/last", together(number)) for number in range(6)))
        assert len(set(made)) == 6
        CommitWriter(connection, REPO).make(lambda _: {REPO: filesets.compose(made)})
    assert repo.read("/last") == b"5"


def test_an_upload_that_fails_ends_those_beside_it(connection: Connection, repo: Repository) -> None:
    endless = Endless()

    def unreadable() -> Iterator[bytes]:
        assert endless.begun.wait(MINUTE)
        raise OSError("unreadable")
        yield b""

    with FileSets(connection) as filesets, pytest.raises(OSError, match="unreadable"):
        list(filesets.make_all([changes(repo, "/a", unreadable()), changes(repo, "/b", endless)]))
    assert endless.over.wait(MINUTE)


def test_uploads_end_when_nobody_waits_for_them(connection: Connection, repo: Repository) -> None:
    endless = Endless()
    uploads = [changes(repo, "/a", b"one"), changes(repo, "/b", endless)]
    with FileSets(connection) as filesets, closing(filesets.make_all(uploads)) as made:
        assert next(made)
        assert endless.begun.wait(MINUTE)  # what nobody has begun to read has no end
        assert not endless.over.is_set()
    assert endless.over.wait(MINUTE)


@pytest.mark.parametrize("sizes", [[], [0], [0, 0, 5], [1], [3, 4, 9], [10], [11], [25, 1], [4] * 9])
def test_pieces_have_about_one_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sizes: list[int]) -> None:
    monkeypatch.setattr(file_sets, "CHUNK_SIZE", 10)
    parts = [bytes([number]) * size for number, size in enumerate(sizes)]
    sent = list(file_sets.chunks_of(parts))
    assert b"".join(sent) == b"".join(parts)
    assert all(10 <= len(piece) < 20 for piece in sent[:-1])
    assert all(0 < len(piece) < 20 for piece in sent[-1:])
    (tmp_path / "file").write_bytes(b"".join(parts))
    for whole in (b"".join(parts), tmp_path / "file"):
        assert list(file_sets.chunks_of(whole)) == [
            b"".join(parts)[start : start + 10] for start in range(0, sum(sizes), 10)
        ]
