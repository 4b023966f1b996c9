"""`lookalike restore`: pictures and queries as they were, wherever they were held, and refusals."""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipelines.client.commit_history import CommitHistory
from pipelines.client.repository import DeleteFile, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.library import ingest, queries
from pipelines.library.block_store import BlockDownloads
from pipelines.library.picture_sources import PictureSource
from pipelines.library.snapshots import LibrarySnapshot
from stages.decode.stl10 import RECORD
from tests.command import Command
from tests.pipelines.conftest import WaitForJobs

pytestmark = [pytest.mark.timeout(300), pytest.mark.late_alone, pytest.mark.usefixtures("own_cache")]


class Library:
    """The user's library without pipelines; files are put from a directory."""

    def __init__(self, connection: Connection, command: Command) -> None:
        self.connection = connection
        self.command = command
        for repo in ("images", "masks", "queries"):
            connection.client.create_repo(repo, project_name=connection.project)

    def add(self, most_single: int = 1000, **contents: bytes) -> str:
        """Puts pictures called trip/NAME; returns the commit."""
        return self.put(contents, most_single)

    def put(self, contents: Mapping[str, bytes], most_single: int = 1000) -> str:
        """The same for any names."""
        sources = []
        for name, content in contents.items():
            path = self.command.directory / f"{len(content)}-{name}"
            path.write_bytes(content)
            sources.append(PictureSource(f"trip/{name}", path, len(content)))
        return ingest.add(self.connection, sources, most_single=most_single).commit

    def content(self) -> dict[str, bytes]:
        """The content of every picture by true name, in blocks or not."""
        scratch = self.command.directory / "scratch"
        scratch.mkdir(exist_ok=True)
        snapshot = LibrarySnapshot(
            self.connection, CommitHistory(self.connection).last("images", 1)[0].id, BlockDownloads(scratch)
        )
        found: dict[str, bytes] = {}
        for name in snapshot.names():
            home = snapshot.home(name)
            assert (home is None) == bool(snapshot.files(name))  # never both
            if home is None:
                found[name] = b"".join(snapshot.content(snapshot.files(name)[0]))
            else:
                span = snapshot.pictures(home)[name]
                found[name] = span.path.read_bytes()[span.offset :][: span.size]
        return found

    def restore(self, *words: str) -> Any:
        done = self.command.run("restore", *words, "--no-wait", "--json")
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    def refuses(self, *words: str) -> str:
        done = self.command.run("restore", *words, "--no-wait")
        assert done.returncode == 1, done
        return done.stderr.removeprefix("lookalike: ").strip()


@pytest.fixture
def library(as_user: Connection, command: Command) -> Library:
    return Library(as_user, command)


def test_a_removed_picture_comes_back_from_where_it_was(library: Library) -> None:
    library.add(a=b"1", b=b"2")
    then = library.add(most_single=1, c=b"3", d=b"4", e=b"5")
    before = library.content()
    blocks = {path for path in Repository(library.connection, "images").entries() if path.startswith("%")}
    ingest.remove(library.connection, ["trip/a", "trip/c", "trip/d"])
    done = library.restore("trip/a", "trip/d", "trip/e", "--at", then)
    assert (done["restored"], done["replaced"], done["unchanged"]) == (["trip/a", "trip/d"], [], ["trip/e"])
    assert library.content() == {name: content for name, content in before.items() if name != "trip/c"}
    assert library.restore("trip", "--at", then[:10])["restored"] == ["trip/c"]
    assert library.content() == before
    assert {path for path in Repository(library.connection, "images").entries() if path.startswith("%")} == blocks
    commits = len(CommitHistory(library.connection).last("images", 100))
    assert library.restore("trip/*", "--at", then) == {
        "commit": None,
        "restored": [],
        "replaced": [],
        "unchanged": ["trip/a", "trip/b", "trip/c", "trip/d", "trip/e"],
    }
    assert len(CommitHistory(library.connection).last("images", 100)) == commits
    (description, *_) = [each.description for each in CommitHistory(library.connection).last("images", 1)]
    assert description.startswith("restore trip --at")


def test_an_older_version_replaces_the_present_one_only_on_request(library: Library) -> None:
    library.add(a=b"1")
    then = library.add(most_single=1, b=b"old", c=b"3")
    library.add(a=b"22", b=b"newer")
    said = library.refuses("trip", "--at", then)
    assert said.endswith(
        "2 of them are there with other content: trip/a, trip/b. Nothing was restored: --replace puts the older "
        "content in its place"
    )
    done = library.restore("trip", "--at", then, "--replace")
    assert (done["replaced"], done["unchanged"]) == (["trip/a", "trip/b"], ["trip/c"])
    assert library.content() == {"trip/a": b"1", "trip/b": b"old", "trip/c": b"3"}


def test_a_picture_that_is_in_a_block_now_is_replaced_there(library: Library) -> None:
    then = library.add(a=b"1")
    ingest.remove(library.connection, ["trip/a"])
    library.add(most_single=1, a=b"22", b=b"2")
    assert library.restore("trip/a", "--at", then, "--replace")["replaced"] == ["trip/a"]
    assert library.content() == {"trip/a": b"1", "trip/b": b"2"}


def test_members_of_archives_and_records_of_stl10_come_back_alone_or_whole(library: Library) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("in/a.png", b"first")
        file.writestr("in/b.png", b"second")
    records = b"x" * RECORD + b"y" * RECORD
    then = library.put({"all.zip": archive.getvalue(), "train_X.bin": records})
    assert library.restore("trip/all.zip/in/a.png", "--at", then)["unchanged"] == ["trip/all.zip/in/a.png"]
    ingest.remove(library.connection, ["trip/all.zip", "trip/train_X.bin"])
    done = library.restore("trip/all.zip/in/b.png", "trip/train_X.bin/000001", "--at", then)
    assert done["restored"] == ["trip/all.zip/in/b.png", "trip/train_X.bin/000001"]
    assert library.content() == {"trip/all.zip/in/b.png": b"second", "trip/train_X.bin/000001": b"y" * RECORD}
    assert "not in the library at" in library.refuses("trip/all.zip/in/c.png", "--at", then)
    assert library.restore("trip/all*", "--at", then)["restored"] == ["trip/all.zip"]
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as file:
        file.writestr("in/a.png", b"another")
    library.put({"all.zip": other.getvalue()})
    assert "is in trip/all.zip, which holds another picture of that name now: restore trip/all.zip itself" in (
        library.refuses("trip/all.zip/in/a.png", "--at", then, "--replace")
    )


def test_files_in_directories_come_back_to_their_places(library: Library) -> None:
    repo = Repository(library.connection, "images")
    then = repo.write([PutFile("/dir/sub/a.png", b"1"), PutFile("/dir/b.png", b"2")])
    repo.write([DeleteFile("/dir/")])
    assert sorted(library.restore("dir", "--at", then)["restored"]) == ["dir/b.png", "dir/sub/a.png"]
    assert dict(repo.read_all("/**")) == {"/dir/b.png": b"2", "/dir/sub/a.png": b"1"}
    repo.write([DeleteFile("/dir/"), PutFile("/dir", b"a file")])
    assert "images has a file called dir now: remove it with `lookalike remove dir`" in library.refuses(
        "dir/b.png", "--at", then
    )


def test_query_entries_come_back(library: Library, tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for name in ("one.png", "many/a.png", "many/b.png"):
        (tmp_path / name).write_bytes(name.encode())
    then = queries.put(library.connection, queries.find([tmp_path / "one.png", tmp_path / "many"])).commit
    before = dict(Repository(library.connection, "queries").read_all("/**"))
    queries.remove(library.connection, None)
    assert sorted(library.restore("--query", "one.png", "many", "--at", then)["restored"]) == ["many", "one.png"]
    assert dict(Repository(library.connection, "queries").read_all("/**")) == before
    (tmp_path / "one.png").write_bytes(b"changed")
    queries.put(library.connection, queries.find([tmp_path / "one.png"]))
    assert "1 of them is there with other content: one.png" in library.refuses("--query", "one.png", "--at", then)
    done = library.restore("--query", "*", "--at", then, "--replace")
    assert (done["replaced"], done["unchanged"]) == (["one.png"], ["many"])
    assert "not in the queries at" in library.refuses("--query", "two.png", "--at", then)


def test_what_cannot_be_meant_is_refused_in_a_sentence(library: Library) -> None:
    then = library.add(a=b"1")
    assert library.refuses("trip/x", "--at", then) == (
        f"not in the library at {then}: trip/x; nothing was restored: `lookalike history trip/x` shows when it was "
        "there"
    )
    assert "no commit has an id that begins with 0123" in library.refuses("trip/a", "--at", "0123")
    assert "before the first commit" in library.refuses("trip/a", "--at", "2001-01-01")
    assert "queries was empty at" in library.refuses("--query", "x", "--at", then)


def test_the_names_are_taken_from_preprocess_where_it_has_them(
    as_user: Connection, preprocessing: Connection, command: Command, wait_for_jobs: WaitForJobs
) -> None:
    path = command.directory / "a"
    path.write_bytes(b"no picture, but a file of the library")
    then = ingest.add(
        as_user, [PictureSource("trip/a", path, 37), PictureSource("trip/b", path, 37)], most_single=1
    ).commit
    wait_for_jobs(then)
    ingest.remove(as_user, ["trip"])
    done = command.run("restore", "trip", "--at", then, "--json")
    assert json.loads(done.stdout)["restored"] == ["trip/a", "trip/b"]
