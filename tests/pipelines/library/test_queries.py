"""Putting queries: one entry each, replaced by name; renames inside an entry count as changes."""

from pathlib import Path

import pytest

from pipelines.client.repository import DeleteFile, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import queries
from stages.record.pfs_names import NAMES_FILE, escape_path, unescape
from tests.pipelines.conftest import WaitForJobs

pytestmark = pytest.mark.late_alone

LONG = "x" + "😀" * 60 + ".jpg"


JPEG = b"\xff\xd8\xff"
"""The beginning of a picture, whatever its name is."""


@pytest.fixture
def repo(connection: Connection) -> Repository:
    connection.client.create_repo("queries", project_name=connection.project)
    return Repository(connection, "queries")


def file(path: Path, content: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def held(repo: Repository) -> dict[str, bytes]:
    """Every file of the queries by true name."""
    return {unescape(path.strip("/")): content for path, content in repo.read_all("/**")}


def test_a_file_is_an_entry(connection: Connection, repo: Repository, tmp_path: Path) -> None:
    asked = queries.put(
        connection, queries.find([file(tmp_path / "a b [1].jpg", b"one"), file(tmp_path / "c.jpg", b"two")])
    )
    assert (asked.entries, asked.files, asked.left_out) == (["a b [1].jpg", "c.jpg"], 2, [])
    assert held(repo) == {"a b [1].jpg": b"one", "c.jpg": b"two"}


def test_a_directory_is_an_entry_with_a_list_of_its_names(
    connection: Connection, repo: Repository, tmp_path: Path
) -> None:
    for name in ("b.jpg", "sub/a #1.jpg", "sub/😀.jpg"):
        file(tmp_path / "my trip" / name, name.encode())
    heard: list[int] = []
    asked = queries.put(connection, queries.find([tmp_path / "my trip"]), heard.append)
    assert (asked.entries, asked.files, sum(heard)) == (["my trip"], 3, 3)
    listed = held(repo).pop(f"my trip/{NAMES_FILE}").decode().splitlines()
    assert [unescape(line) for line in listed] == ["b.jpg", "sub/a #1.jpg", "sub/😀.jpg"]
    assert set(held(repo)) == {f"my trip/{name}" for name in ("b.jpg", "sub/a #1.jpg", "sub/😀.jpg", NAMES_FILE)}


def test_an_entry_is_replaced_by_one_of_any_kind(connection: Connection, repo: Repository, tmp_path: Path) -> None:
    directory = tmp_path / "one" / "entry"
    file(directory / "a.jpg")
    file(directory / "b.jpg")
    queries.put(connection, queries.find([directory, file(tmp_path / "other", JPEG + b"stays")]))
    (directory / "a.jpg").unlink()
    queries.put(connection, queries.find([directory]))
    assert set(held(repo)) == {"entry/b.jpg", f"entry/{NAMES_FILE}", "other"}
    queries.put(connection, queries.find([file(tmp_path / "two" / "entry", JPEG + b"a file now")]))
    assert held(repo) == {"entry": JPEG + b"a file now", "other": JPEG + b"stays"}
    queries.put(connection, queries.find([directory]))
    assert set(held(repo)) == {"entry/b.jpg", f"entry/{NAMES_FILE}", "other"}


def test_a_rename_in_a_directory_is_a_change(sheets: Connection, wait_for_jobs: WaitForJobs, tmp_path: Path) -> None:
    trip, other = (file(tmp_path / entry / "a.jpg", b"one").parent for entry in ("trip", "other"))
    wait_for_jobs(queries.put(sheets, queries.find([trip, other])).commit)
    (again,) = wait_for_jobs(queries.put(sheets, queries.find([trip])).commit)
    assert (again.processed, again.skipped) == (0, 2)
    (trip / "a.jpg").rename(trip / "first.jpg")
    (renamed,) = wait_for_jobs(queries.put(sheets, queries.find([trip])).commit)
    assert (renamed.processed, renamed.skipped) == (1, 1)
    told = Repository(sheets, "render", renamed.id).read("/trip/neighbors.jsonl")
    assert b"first.jpg" in told and b"a.jpg" not in told


def test_long_names_stay_distinct_or_are_refused(connection: Connection, repo: Repository, tmp_path: Path) -> None:
    asked = queries.put(connection, queries.find([file(tmp_path / LONG, b"long")]))
    (entry,) = (path.strip("/") for path in repo.list())
    assert asked.entries == [LONG]
    assert queries.true_name(connection, entry) == LONG
    queries.put(connection, queries.find([file(tmp_path / LONG, b"again")]))
    assert list(held(repo).values()) == [b"again"]
    twin = file(tmp_path / LONG.replace(".jpg", ".png"))
    with pytest.raises(LookalikeError, match="rename this one"):
        queries.put(connection, queries.find([twin]))
    with pytest.raises(LookalikeError, match="begin alike"):
        queries.put(connection, queries.find([tmp_path / LONG, twin]))
    assert list(held(repo).values()) == [b"again"]


@pytest.mark.parametrize("name", ["a b.jpg", LONG])
def test_a_question_goes_with_the_pictures(name: str, connection: Connection, repo: Repository, tmp_path: Path) -> None:
    """A file becomes a directory for it; that of a directory is replaced, and the list of names does not have it."""
    trip = file(tmp_path / "trip" / "a.jpg", b"one").parent
    file(trip / "question.json", b"{}")
    asked = queries.put(connection, queries.find([trip, file(tmp_path / name, b"two")]), question=b'{"k": 2}\n')
    assert sorted(asked.entries) == sorted(["trip", name])
    files = {f"{name}/{name}": b"two", f"{name}/question.json": b'{"k": 2}\n', "trip/question.json": b'{"k": 2}\n'}
    found = held(repo)
    assert found.pop(f"{name}/{NAMES_FILE}") == escape_path(name).encode() + b"\n"
    assert found == {**files, "trip/a.jpg": b"one", f"trip/{NAMES_FILE}": b"a.jpg\n"}
    entries = {path.strip("/") for path in repo.list()}
    assert sorted(queries.true_name(connection, each) for each in entries) == sorted(["trip", name])
    queries.put(connection, queries.find([trip]))
    assert held(repo)["trip/question.json"] == b"{}"


def test_entries_are_reported_by_their_true_names(connection: Connection, repo: Repository, tmp_path: Path) -> None:
    file(tmp_path / LONG / "sub" / "a.jpg")
    queries.put(connection, queries.find([tmp_path / LONG]))
    (entry,) = (path.strip("/") for path in repo.list())
    assert queries.true_name(connection, entry) == LONG
    repo.write([DeleteFile(f"/{entry}/"), PutFile("/plain", b"x")])
    assert queries.true_name(connection, "plain%20name") == "plain name"
    assert queries.true_name(connection, entry).endswith("…")


def test_unusable_queries_are_reported(connection: Connection, repo: Repository, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    good = file(tmp_path / "a.jpg")
    for paths, said in (
        ([good, tmp_path / "empty"], "empty has no pictures"),
        ([good, tmp_path / "gone"], "gone: not found"),
        ([good, file(tmp_path / "sub" / "a.jpg")], r"two of the queries are called a\.jpg"),
    ):
        with pytest.raises(LookalikeError, match=said):
            queries.put(connection, queries.find(paths))
    assert held(repo) == {}


def test_skipped_files_are_reported(connection: Connection, repo: Repository, tmp_path: Path) -> None:
    file(tmp_path / "trip" / "a.jpg")
    (tmp_path / "trip" / "dead.jpg").symlink_to(tmp_path / "gone")
    asked = queries.put(connection, queries.find([tmp_path / "trip"]))
    assert asked.left_out == [f"{tmp_path}/trip/dead.jpg: a broken link"]
    assert asked.files == 1
