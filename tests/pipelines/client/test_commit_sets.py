"""Moments: commit sets by id, ancestor and date."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from pipelines.client import commit_sets
from pipelines.client.commit_sets import commit_at, end_of
from pipelines.client.deployment.deployment import make_repo
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from tests.conditions import until
from tests.pipelines.conftest import WaitForJobs

pytestmark = pytest.mark.late_alone


def put(connection: Connection, name: str, description: str = "", repo: str = "queries") -> str:
    return Repository(connection, repo).write([PutFile(f"/{name}", name.encode())], description=description)


def started(connection: Connection, commit: str) -> datetime:
    return next(each.started for each in commit_sets.list_commit_sets(connection) if each.id == commit)


def wait_out(second: datetime) -> None:
    until(lambda: datetime.now(UTC) >= second + timedelta(seconds=1))


@pytest.fixture
def three(sheets: Connection, wait_for_jobs: WaitForJobs) -> tuple[Connection, list[str]]:
    """A library with three queries, each put and answered in a second of its own."""
    made = []
    for name in ("a", "b", "c"):
        made.append(put(sheets, name))
        wait_for_jobs(made[-1])
        wait_out(started(sheets, made[-1]).replace(microsecond=0))
    return sheets, made


BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"


@pytest.fixture
def in_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the zone of this machine."""
    with monkeypatch.context() as patch:

        def put(zone: str) -> None:
            patch.setenv("TZ", zone)
            time.tzset()

        yield put
    time.tzset()


def test_ids_name_commits_and_ancestors_are_counted_in_all_changes_or_in_one_repo(
    three: tuple[Connection, list[str]], wait_for_jobs: WaitForJobs
) -> None:
    connection, made = three
    assert [commit_at(connection, each) for each in made] == made
    assert [commit_at(connection, f" {each[:20]} ") for each in made] == made
    make_repo(connection, "models")
    model = put(connection, "backbone", repo="models")
    wait_for_jobs(model)
    assert commit_at(connection, "master") == made[2]  # nothing here reads models
    assert commit_at(connection, "master^") == commit_at(connection, "master~1") == made[1]
    assert commit_at(connection, f"{made[2]}^2") == made[0]
    assert commit_at(connection, f"{made[2][:20]}^^") == made[0]
    assert commit_at(connection, "queries@master^") == made[1]
    assert commit_at(connection, "models@master") == model
    assert commit_at(connection, "queries@master.2") == made[0]
    with pytest.raises(LookalikeError, match=r"no commit queries@master\^9: .*shorter; `lookalike commits queries`"):
        commit_at(connection, "queries@master^9")
    with pytest.raises(LookalikeError, match="there is no commit nobody@master"):
        commit_at(connection, "nobody@master")


def test_a_date_is_the_newest_commit_begun_by_its_end(three: tuple[Connection, list[str]]) -> None:
    connection, made = three
    times = [started(connection, each) for each in made]
    assert commit_at(connection, times[1].isoformat()) == made[1]
    assert commit_at(connection, f"{times[1]:%Y-%m-%d %H:%M:%S}+00:00") == made[1]
    assert commit_at(connection, f"{times[1].astimezone():%Y-%m-%dT%H:%M:%S}") == made[1]
    assert commit_at(connection, (times[1] - timedelta(microseconds=1000)).isoformat()) == made[0]
    assert commit_at(connection, f"{datetime.now().astimezone():%Y-%m-%d}") == made[2]
    assert commit_at(connection, "9000-01-01") == made[2]
    assert commit_at(connection, "today") == commit_at(connection, "now") == made[2]
    with pytest.raises(LookalikeError, match="is before the first commit, which began at 20"):
        commit_at(connection, "yesterday")
    with pytest.raises(LookalikeError, match="2001-01-01 is before the first commit, which began at 20"):
        commit_at(connection, "2001-01-01")


def test_a_date_passes_over_commits_without_answers(
    sheets: Connection, wait_for_jobs: WaitForJobs, connection: Connection
) -> None:
    good = put(sheets, "a")
    wait_for_jobs(good)
    stub = pfs_pb2_grpc.APIStub(connection.client._channel)
    repo = pfs_pb2.Repo(name="queries", type="user", project=pfs_pb2.Project(name=connection.project))
    opened = stub.StartCommit(pfs_pb2.StartCommitRequest(branch=pfs_pb2.Branch(repo=repo, name="master")))
    assert commit_at(sheets, "9000-01-01") == good
    assert commit_at(sheets, opened.id) == opened.id
    stub.FinishCommit(pfs_pb2.FinishCommitRequest(commit=opened))
    wait_for_jobs(opened.id)
    assert commit_at(sheets, "9000-01-01") == opened.id


def test_imported_commits_have_their_old_times_and_ids(sheets: Connection, wait_for_jobs: WaitForJobs) -> None:
    first, second = (f"{digit * 12}4{digit * 19}" for digit in "ab")
    one = put(sheets, "a", f"add a (was {first} of 2020-05-01T10:00:00.5+00:00)")
    two = put(sheets, "b", f"(was {second} of 2021-05-01T10:00:00+00:00) (was {'c' * 32} of 2022-01-01T00:00:00+00:00)")
    wait_for_jobs(one, two)
    assert commit_at(sheets, "2020-12-31") == one
    assert commit_at(sheets, "2021-12-31") == two
    assert commit_at(sheets, first) == commit_at(sheets, first[:8]) == one
    assert commit_at(sheets, "c" * 32) == two
    assert [each.id for each in commit_sets.origins("x")] == []


@pytest.mark.versions
def test_words_that_name_no_commit(sheets: Connection) -> None:
    put(sheets, "a")
    unknown = "0" * 12 + "4" + "0" * 19
    with pytest.raises(LookalikeError, match=f"there is no commit {unknown}: it was squashed or deleted"):
        commit_at(sheets, unknown)
    with pytest.raises(LookalikeError, match="no commit has an id that begins with 00000"):
        commit_at(sheets, "00000")
    for text in ("", "tomorrow", "last week", "master^~2", "a/b"):
        with pytest.raises(LookalikeError, match="is not a valid commit or date: name an id"):
            commit_at(sheets, text)
    for text in ("2026-13-45", "2026-11-01T25", "2026-11-01 soon", "yesterday evening"):
        with pytest.raises(LookalikeError, match="is not a valid date: write it as"):
            commit_at(sheets, text)


def test_the_start_of_several_ids_is_refused(sheets: Connection, wait_for_jobs: WaitForJobs) -> None:
    old = ("1234" + "a" * 8 + "4" + "a" * 19, "1234" + "b" * 8 + "4" + "b" * 19)
    made = [put(sheets, each[4], f"(was {each} of 2020-05-01T10:00:00+00:00)") for each in old]
    wait_for_jobs(*made)
    with pytest.raises(LookalikeError, match="1234 begins the ids of [0-9a-f]{32}, [0-9a-f]{32}: give more digits"):
        commit_at(sheets, "1234")


@pytest.mark.versions
def test_an_empty_library_has_no_moments(connection: Connection) -> None:
    with pytest.raises(LookalikeError, match="there are no commits yet"):
        commit_at(connection, "2026-11-01")


@pytest.mark.parametrize(
    ("zone", "text", "end"),
    [
        (BERLIN, "2026-11-01", "2026-11-01T23:00:00+00:00"),
        (BERLIN, "2026-10-25", "2026-10-25T23:00:00+00:00"),  # a day of 25 hours
        (BERLIN, "2026-03-29", "2026-03-29T22:00:00+00:00"),  # a day of 23 hours
        (BERLIN, "2026-10-25 02:30", "2026-10-25T00:31:00+00:00"),  # the first of two
        (BERLIN, "2026-10-25T02:30+01:00", "2026-10-25T01:31:00+00:00"),  # the second one
        (BERLIN, "2026-10-25T02", "2026-10-25T02:00:00+00:00"),  # both
        (BERLIN, "2026-03-29 02:30", "2026-03-29T01:31:00+00:00"),  # skipped: half an hour after three
        (BERLIN, "2026-11-01T14", "2026-11-01T14:00:00+00:00"),
        (BERLIN, "2026-11-01 14:30", "2026-11-01T13:31:00+00:00"),
        (BERLIN, "2026-11-01 9:30", "2026-11-01T08:31:00+00:00"),
        (BERLIN, "2026-11-01T14:30:05", "2026-11-01T13:30:06+00:00"),
        (BERLIN, "2026-11-01T14:30Z", "2026-11-01T14:31:00+00:00"),
        (BERLIN, "2026-11-01T14:30:05.25+02:00", "2026-11-01T12:30:05.250001+00:00"),
        (BERLIN, "2026-W45-1", "2026-11-02T23:00:00+00:00"),
        ("America/Havana", "2026-10-31", "2026-11-01T04:00:00+00:00"),  # midnight comes twice
        ("Africa/Cairo", "2026-04-23", "2026-04-23T22:00:00+00:00"),  # the next day begins at one
        ("Pacific/Kiritimati", "2026-11-01", "2026-11-01T10:00:00+00:00"),
        ("America/St_Johns", "2026-07-01 12:00", "2026-07-01T14:31:00+00:00"),
    ],
)
def test_a_date_includes_all_of_its_unit_in_its_zone(
    in_zone: Callable[[str], None], zone: str, text: str, end: str
) -> None:
    in_zone(zone)
    assert end_of(text) == datetime.fromisoformat(end)


def test_days_in_words_are_this_machines(in_zone: Callable[[str], None]) -> None:
    in_zone(BERLIN)
    today = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
    assert end_of("today") == end_of("now") == (today + timedelta(days=1)).astimezone(UTC)
    assert end_of("yesterday") == today.astimezone(UTC)
    assert end_of("yesterday 9:05") == (today - timedelta(days=1)).replace(hour=9, minute=6).astimezone(UTC)
    assert commit_sets.is_to_come("today")
    assert commit_sets.is_to_come(f"{today:%Y-%m-%d}")
    assert not any(map(commit_sets.is_to_come, ("yesterday", "master", "0123abcd")))
