"""Moving a library: exporting from one project of a server, importing into another."""

import csv
import fcntl
import hashlib
import io
import resource
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pipelines.client.commit_history import CommitHistory
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.transfer import bundle, export_targets, library_export, library_import
from pipelines.transfer.bundle import BundleCommit, CommitList
from pipelines.transfer.bundle_reader import BundleFile, BundleReader, DamagedBundleError
from pipelines.transfer.library_import import LibraryImport
from tests.example_counts import examples
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.counted_calls import CountedCalls, counting
from tests.pipelines.transfer.libraries import put, shouting
from tests.servers import Unique

pytestmark = pytest.mark.late_alone


def quiet(_: int) -> None:
    pass


def exported(connection: Connection, file: Path, done: Callable[[int], None] = quiet) -> tuple[BundleCommit, ...]:
    """Exports to a file and returns the commits in it."""
    planned = library_export.plan(connection)
    commits = tuple(each.commit for each in planned)
    with export_targets.file(file, commits) as target:
        library_export.export(connection, planned, target, done)
        library_export.finish(connection, ["shout"], target, quiet)
    return commits


def imported(connection: Connection, file: Path, done: Callable[[int], None] = quiet) -> LibraryImport:
    """Imports a file."""
    with file.open("rb") as opened:
        reader = BundleReader(opened, file.name)
        commits = reader.library()
        return library_import.replay(
            connection, reader, commits, library_import.plan(connection, file.name, commits), done
        )


def names(connection: Connection) -> list[str]:
    """The imported commits of images by the ids that they had where they were exported."""
    return [was for each in CommitHistory(connection).commits("images") if (was := library_import._was(each))]


def test_every_commit_is_imported_in_its_order(library: Connection, other: Connection, tmp_path: Path) -> None:
    commits = exported(library, tmp_path / "library.tar")
    assert [(each.repo, each.files, each.bytes) for each in commits] == [
        ("images", 3, 6), ("queries", 1, 3), ("labels", 1, 5), ("images", 1, 5), ("images", 1, 3),
    ]  # fmt: skip
    made = imported(other, tmp_path / "library.tar")
    history = CommitHistory(other)
    there = {each.id: each for repo in ("images", "queries", "labels") for each in history.commits(repo)}
    assert [new for _, new in made.commits] == [each.id for each in sorted(there.values(), key=lambda one: one.started)]
    for old, new in made.commits:
        assert there[new].description == f"{old.description} (was {old.id} of {old.started})"
        before, now = (Repository(*at).hashes("/") for at in ((library, old.repo, old.id), (other, old.repo, new)))
        assert before == now
    table = list(csv.DictReader(io.StringIO(library_import.table(made)), delimiter="\t"))
    assert [(row["there"], row["here"]) for row in table] == [(old.id, new) for old, new in made.commits]


def test_any_tar_program_unpacks_an_export_which_has_each_content_once(library: Connection, tmp_path: Path) -> None:
    first, query, *_, last = exported(library, tmp_path / "library.tar")
    with tarfile.open(tmp_path / "library.tar") as tar:
        links = [(each.name, each.linkname) for each in tar if each.islnk()]
    assert links == [(f"{query.name}/q", f"{first.name}/b"), (f"{last.name}/d", f"{first.name}/a")]
    subprocess.run(["tar", "xf", "library.tar"], cwd=tmp_path, check=True)
    assert (tmp_path / first.name / "a").read_bytes() == b"one"
    assert (tmp_path / last.name / "d").read_bytes() == b"one"
    sums = sorted(tmp_path.rglob("*.sha256"))
    assert len(sums) == 7
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", *sums], cwd=tmp_path, check=True)


def test_an_interrupted_import_continues(history: Connection, other: Connection, tmp_path: Path) -> None:
    file = tmp_path / "library.tar"
    exported(history, file)
    seen: list[int] = []

    def fourth(more: int) -> None:
        seen.append(more)
        if sum(seen) > 10:
            raise OSError(5, "Input/output error", "the tar")

    with pytest.raises(LookalikeError, match="cannot read the tar: Input/output error"):
        imported(other, file, fourth)
    first = CommitHistory(other).commits("images")
    assert len(first) == 1
    made = imported(other, file)
    assert [each.id for each in CommitHistory(other).commits("images")][:1] == [each.id for each in first]
    assert imported(other, file) == made
    put(history, "images", e="five")
    assert len(exported(history, file)) == 6
    assert imported(other, file).commits[:5] == made.commits


def test_outputs_are_compared_byte_by_byte(library: Connection, other: Connection, tmp_path: Path) -> None:
    exported(library, tmp_path / "library.tar")
    made = imported(other, tmp_path / "library.tar")
    assert list(library_import.compare(other, made.outputs)) == []
    shouting(other)
    ProjectJobs(other).watch(library_import.computing(other, made), lambda jobs, troubles: None)
    (compared,) = library_import.compare(other, made.outputs)
    assert (compared.pipeline, compared.same_code, compared.files, compared.equal) == ("shout", True, 6, True)
    shouting(other, mood="wild")
    put(other, "images", e="new", d=None)
    ProjectJobs(other).watch(library_import.computing(other, made), lambda jobs, troubles: None)
    (compared,) = library_import.compare(other, made.outputs)
    assert not compared.same_code
    assert (compared.missing, compared.extra) == (("/d", "/mood-d"), ("/e", "/mood-e"))
    assert compared.differing == ("/mood-b", "/mood-c")


def test_libraries_are_not_mixed_and_a_commit_of_somebody_else_stays_open(
    history: Connection, other: Connection, tmp_path: Path
) -> None:
    exported(history, tmp_path / "library.tar")
    other.client.create_repo("images", project_name=other.project)
    with (
        other.client.commit("images", "master", project_name=other.project) as opened,
        pytest.raises(LookalikeError, match=f"commit {opened.id} of images is open: wait for its writer"),
    ):
        imported(other, tmp_path / "library.tar")
    put(other, "images", x="mine")
    with pytest.raises(LookalikeError, match="images has commits of another library"):
        imported(other, tmp_path / "library.tar")
    assert len(CommitHistory(other).commits("images")) == 2


def test_nothing_is_imported_into_the_server_of_the_export(library: Connection, tmp_path: Path) -> None:
    commits = exported(library, tmp_path / "library.tar")
    made = imported(library, tmp_path / "library.tar")
    assert [new for _, new in made.commits] == [each.id for each in commits]
    (compared,) = library_import.compare(library, made.outputs)
    assert compared.equal
    put(library, "images", e="later")
    with pytest.raises(LookalikeError, match="images has commits of another library"):
        imported(library, tmp_path / "library.tar")


def test_only_an_export_of_the_same_library_is_replaced(history: Connection, other: Connection, tmp_path: Path) -> None:
    file = tmp_path / "library.tar"
    exported(history, file)
    imported(other, file)
    before = file.read_bytes()
    with pytest.raises(LookalikeError, match="holds a library with commits that this server lacks"):
        exported(other, file)
    assert file.read_bytes() == before
    for content, said in ((b"a letter", "not an exported library"), (before[:700], "ends early or is damaged")):
        file.write_bytes(content)
        with pytest.raises(LookalikeError, match=f"{said}.*; it stays as it is: export to another file"):
            exported(history, file)
        assert file.read_bytes() == content
    with pytest.raises(LookalikeError, match="is not a file"):
        exported(history, Path("/dev/null"))


@pytest.fixture
def downloads(library: Connection) -> Iterator[tuple[Connection, CountedCalls]]:
    """The library through a client whose downloads are counted."""
    with counting(library) as counted:
        yield counted


def test_files_are_fetched_together(downloads: tuple[Connection, CountedCalls], tmp_path: Path) -> None:
    connection, counted = downloads
    put(connection, "images", **{f"p{number}": f"content {number}" for number in range(50)})
    put(connection, "images", **{f"p{number}": f"other {number}" for number in range(0, 50, 2)})
    exported(connection, tmp_path / "library.tar")
    assert counted.reads == 3 + 2 + 1  # of the five commits before two are links; one call is for the output


def test_a_second_export_fetches_only_what_is_new(
    downloads: tuple[Connection, CountedCalls], wait_for_jobs: WaitForJobs, tmp_path: Path
) -> None:
    connection, counted = downloads
    file, fresh = tmp_path / "library.tar", tmp_path / "fresh.tar"
    exported(connection, file)
    wait_for_jobs(put(connection, "images", e="five"))
    exported(connection, fresh)
    counted.reads = 0
    exported(connection, file)
    assert counted.reads == 2  # the new commit and the output
    assert file.read_bytes() == fresh.read_bytes()
    damaged = bytearray(file.read_bytes())
    damaged[damaged.index(b"three")] ^= 1
    file.write_bytes(damaged)
    exported(connection, file)
    assert file.read_bytes() == fresh.read_bytes()


def test_an_interrupted_export_continues(downloads: tuple[Connection, CountedCalls], tmp_path: Path) -> None:
    connection, counted = downloads
    fresh, file = tmp_path / "fresh.tar", tmp_path / "library.tar"
    exported(connection, fresh)
    counted.reads = 0

    def stop(more: int) -> None:
        if counted.reads == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exported(connection, file, stop)
    assert not file.exists()
    counted.reads = 0
    exported(connection, file)
    assert counted.reads == 3  # two commits and the output
    assert file.read_bytes() == fresh.read_bytes()
    assert sorted(each.name for each in tmp_path.glob("*.tar*")) == ["fresh.tar", "library.tar"]


def test_an_export_that_was_killed_anywhere_continues(library: Connection, tmp_path: Path) -> None:
    """A kill leaves the front of the file, and one that still goes on holds it."""
    file, part = tmp_path / "library.tar", tmp_path / "library.tar.part"
    with part.open("wb") as another:
        fcntl.flock(another, fcntl.LOCK_EX)
        with pytest.raises(LookalikeError, match=r"another export is writing .*library\.tar\.part: wait"):
            exported(library, file)
    exported(library, file)
    whole = file.read_bytes()
    file.unlink()
    for length in (0, 100, 700, 3000, len(whole) // 2, len(whole) - 700, len(whole)):
        part.write_bytes(whole[:length])
        exported(library, file)
        assert file.read_bytes() == whole
        file.unlink()
    part.write_bytes(b"of another export" * 1000)
    exported(library, file)
    assert file.read_bytes() == whole


def test_a_full_disk_ends_an_export_which_then_continues(history: Connection, tmp_path: Path) -> None:
    file = tmp_path / "library.tar"
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, hard))
    try:
        with pytest.raises(LookalikeError, match=r"cannot write .*library.tar.part: File too large; the same command"):
            exported(history, file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))
    assert (tmp_path / "library.tar.part").stat().st_size == 8000
    exported(history, file)
    fresh = tmp_path / "fresh.tar"
    exported(history, fresh)
    assert file.read_bytes() == fresh.read_bytes()


def read(content: bytes) -> list[tuple[str, ...]]:
    """The commits in a tar with their contents, as far as they are whole; the last item is the outputs'."""
    found: list[tuple[str, ...]] = []
    with io.BytesIO(content) as file:
        reader = BundleReader(file, "the tar")
        try:
            for commit in reader.library():
                removed = reader.removed(commit)
                files = [
                    f"{each.path} {b''.join(each.content)!r}" if isinstance(each, BundleFile) else str(each)
                    for each in reader.files(commit)
                ]
                found.append((commit.name, *removed, *files))
            found.append(tuple(map(str, reader.outputs())))
        except DamagedBundleError:
            pass
    return found


@pytest.fixture
def whole(library: Connection, tmp_path: Path) -> bytes:
    """The bytes of an export."""
    exported(library, tmp_path / "whole.tar")
    return (tmp_path / "whole.tar").read_bytes()


def test_what_is_read_of_a_damaged_tar_is_as_it_was_exported(whole: bytes) -> None:
    right = read(whole)
    assert len(right) == 6
    for length in (1024, len(whole) // 2 // 512 * 512, len(whole) - 2048):
        assert len(read(whole[:length])) < 6

    @settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.integers(0, len(whole) - 1), st.integers(0, 255))
    def check(place: int, mask: int) -> None:
        for damaged in (
            whole[:place],
            whole[:place] + bytes([whole[place] ^ mask]) + whole[place + 1 :],
            whole[:place] + whole[place + 512 :],
            whole[:place] + bytes(512) + whole[place:],
        ):
            try:
                found = read(damaged)
            except LookalikeError as error:
                assert "not an exported library" in str(error) or "of another version" in str(error)
            else:
                assert found == right[: len(found)]

    check()


def test_a_damaged_tar_is_imported_up_to_the_damage(library: Connection, other: Connection, tmp_path: Path) -> None:
    file = tmp_path / "library.tar"
    commits = exported(library, file)
    content = file.read_bytes()
    pictures = [each.id for each in commits if each.repo == "images"]
    third = f"{commits[3].name}/b is not as it was exported; imported the first 3 of its 5 commits: export or"
    for damaged, here, said in (
        (content.replace(b"one", b"eno"), 0, "damaged in commit .*/a is not as .*; no commit was imported"),
        (content.replace(b"three", b"thr\0e"), 1, third),
        (
            content[: content.index(b"three") + 2],
            1,
            "tar ends early or is damaged in commit .*; imported the first 3 of",
        ),
        (content[: -4 * 512], 3, "ends early or is damaged in its hashes of the outputs; all of its commits"),
    ):
        file.write_bytes(damaged)
        with pytest.raises(LookalikeError, match=said):
            imported(other, file)
        assert names(other) == pictures[:here]
    file.write_bytes(content)
    imported(other, file)
    assert names(other) == pictures


def test_tars_of_another_kind_are_refused(other: Connection, tmp_path: Path) -> None:
    file = tmp_path / "library.tar"

    def pack(**members: bytes) -> None:
        sums: dict[str, str] = {}
        with tarfile.open(file, "w") as tar:
            for name, content in members.items():
                sums[f"{name}.json"] = hashlib.sha256(content).hexdigest()
                for path, data in ((f"{name}.json", content), (f"{name}.sha256", bundle.sums_text(sums))):
                    head = tarfile.TarInfo(path)
                    head.size = len(data)
                    tar.addfile(head, io.BytesIO(data))

    pack(photograph=b"{}")
    with pytest.raises(LookalikeError, match="is not an exported library: `lookalike export` writes one"):
        imported(other, file)
    pack(library=b'{"format": 3}')
    with pytest.raises(LookalikeError, match="is of another version of lookalike: import it with that version"):
        imported(other, file)
    commit = BundleCommit("others", "0" * 32, "2026-01-01T00:00:00+00:00", "", 0, 0)
    pack(library=bundle.text(CommitList(bundle.FORMAT, (commit,))))
    with pytest.raises(LookalikeError, match="has commits of others, which is not a source repo"):
        imported(other, file)
    for wrong in ("[]", '{"format": 2}', '{"format": 2, "commits": 3}', '{"format": 2, "commits": [{"id": ""}]}', "?"):
        pack(library=wrong.encode())
        with pytest.raises(LookalikeError, match="is damaged in its list of commits: library.json"):
            imported(other, file)
    assert CommitHistory(other).commits("images") == []


CHANGES = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["one", "two", "", None]), min_size=1, max_size=3)


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["images", "queries"]), CHANGES), min_size=1, max_size=5))
def test_any_history_can_be_moved(
    connection: Connection, unique: Unique, tmp_path_factory: Any, steps: list[tuple[str, dict[str, str | None]]]
) -> None:
    client, both = connection.client, [replace(connection, project=unique("h")) for _ in range(2)]
    for each in both:
        client.create_project(each.project)
    for repo in ("images", "queries", "models"):
        client.create_repo(repo, project_name=both[0].project)
    for repo, files in steps:
        put(both[0], repo, **files)
    home = tmp_path_factory.mktemp("moved")
    exported(both[0], home / "one.tar")
    exported(both[0], home / "two.tar")
    assert (home / "one.tar").read_bytes() == (home / "two.tar").read_bytes()
    for old, new in imported(both[1], home / "one.tar").commits:
        assert Repository(both[0], old.repo, old.id).hashes("/") == Repository(both[1], old.repo, new).hashes("/")
    for each in both:
        for repo in ("images", "queries", "models"):
            client.delete_repo(repo, force=True, project_name=each.project)
        client.delete_project(each.project)
