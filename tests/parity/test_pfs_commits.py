"""The life of a commit: starting, finishing, waiting, subscribing; and references to commits."""

import threading
from collections.abc import Iterable

import grpc
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from tests.parity.places import NOBODY, NOT_FOUND, UNKNOWN, ByVersion, Place, Refusal, branch_of


def inspect(client: Client, *reference: str | None, state: int = pfs_pb2.STARTED) -> pfs_pb2.CommitInfo:
    (info,) = client.inspect_commit(reference, state)
    return info


def ids(infos: Iterable[pfs_pb2.CommitInfo]) -> list[str]:
    return [info.commit.id for info in infos]


def test_a_commit_from_start_to_finish(client: Client, place: Place, by_version: ByVersion) -> None:
    repo = place.repo()
    opened = client.start_commit(repo, "master", description="first")
    assert opened.repo.name == repo
    assert (opened.branch.repo.name, opened.branch.name) == by_version((repo, "master"), ("", ""))
    info = inspect(client, repo, opened.id)
    assert (info.description, info.origin.kind) == ("first", pfs_pb2.USER)
    assert info.started.seconds > 0
    assert not info.HasField("finishing")
    assert not info.HasField("finished")
    assert not info.HasField("parent_commit")
    client.put_file_bytes(opened, "/a", b"12345")
    client.finish_commit(opened, description="done")
    info = inspect(client, repo, "master", state=pfs_pb2.FINISHED)
    assert (info.commit.id, info.description, info.error) == (opened.id, "done", "")
    assert info.HasField("finishing")
    assert info.HasField("finished")
    assert info.details.size_bytes == 5


def test_a_finished_commit_stays_as_it_is(client: Client, place: Place, refusal: Refusal) -> None:
    repo = place.repo()
    commit = place.put(repo, a="1")
    text = f"commit default/{repo}@{commit} has already finished"
    assert refusal(client.finish_commit, (repo, commit)) == (UNKNOWN, text)
    assert refusal(client.put_file_bytes, (repo, commit), "/b", b"2") == (UNKNOWN, text)
    assert place.paths(repo) == ["/a"]


def test_an_open_head_holds_up_the_next_commit(
    client: Client, place: Place, refusal: Refusal, by_version: ByVersion
) -> None:
    repo = place.repo()
    opened = client.start_commit(repo, "master")
    assert refusal(client.start_commit, repo, "master") == (
        UNKNOWN,
        by_version("", "start commit in transaction: create commit: ")
        + f"parent commit default/{repo}@{opened.id} has not been finished",
    )
    client.finish_commit(opened)


def test_a_parent_may_be_named(client: Client, place: Place, refusal: Refusal, by_version: ByVersion) -> None:
    repo = place.repo()
    first = place.put(repo, a="1")
    place.put(repo, b="2")
    with client.commit(repo, "side", parent=first) as commit:
        client.put_file_bytes(commit, "/c", b"3")
    assert place.paths(repo, commit.id) == ["/a", "/c"]
    assert inspect(client, repo, commit.id).parent_commit.id == first
    assert commit.id in [child.id for child in inspect(client, repo, first).child_commits]
    gone = f"commit default/{repo}@{NOBODY} not found"
    assert refusal(client.start_commit, repo, "other", parent=NOBODY) == (
        NOT_FOUND,
        by_version(
            f"parent commit not found: {gone}",
            f"start commit in transaction: create commit: parent commit not found: pick commit tx: {gone}\n{gone}",
        ),
    )


def test_an_open_commit_of_a_user_has_details_without_a_size(client: Client, place: Place) -> None:
    repo = place.repo()
    opened = client.start_commit(repo, "master")
    client.put_file_bytes(opened, "/a", b"1")
    info = inspect(client, repo, opened.id)
    assert info.HasField("details")
    assert not info.details.ByteSize()
    client.finish_commit(opened)
    assert inspect(client, repo, opened.id, state=pfs_pb2.FINISHED).details.size_bytes == 1


def test_a_failed_commit_is_readable_but_its_content_is_not_inherited(
    client: Client, place: Place, on_localpachd: bool, by_version: ByVersion
) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    failed = client.start_commit(repo, "master")
    client.put_file_bytes(failed, "/b", b"2")
    client.finish_commit(failed, error="half written")
    info = inspect(client, repo, failed.id, state=pfs_pb2.FINISHED)
    assert info.error == "half written"
    assert info.HasField("details") is (not on_localpachd and by_version(False, True))
    after = place.put(repo, c="3")
    assert place.paths(repo, failed.id) == ["/a", "/b"]
    assert place.paths(repo, after) == ["/a", "/c"]
    assert inspect(client, repo, after).parent_commit.id == failed.id


def test_a_file_where_a_directory_is_fails_the_commit(client: Client, place: Place) -> None:
    repo = place.repo()
    place.put(repo, p="1")
    with client.commit(repo, "master") as commit:
        client.put_file_bytes(commit, "/p/q", b"2")
    info = inspect(client, repo, commit.id, state=pfs_pb2.FINISHED)
    assert info.error == "file / directory path collision (/p/q)"


def test_one_path_from_two_datums_fails_the_commit(client: Client, place: Place) -> None:
    repo = place.repo()
    with client.commit(repo, "master") as commit, client.modify_file_client(commit) as files:
        files.put_file_from_bytes("/p", b"1", datum="one")
        files.put_file_from_bytes("/p", b"2", datum="two")
    info = inspect(client, repo, commit.id, state=pfs_pb2.FINISHED)
    assert info.error == "duplicate path output by different datums (/p from one and /p from two)"


def test_waiting_ends_when_the_commit_does(client: Client, place: Place) -> None:
    repo = place.repo()
    opened = client.start_commit(repo, "master")
    seen: list[pfs_pb2.CommitInfo] = []
    waiting = threading.Thread(target=lambda: seen.extend(client.wait_commit((repo, opened.id))))
    waiting.start()
    assert inspect(client, repo, opened.id, state=pfs_pb2.READY).commit.id == opened.id
    assert not seen
    client.finish_commit(opened)
    waiting.join(timeout=60)
    assert [info.commit.id for info in seen] == [opened.id]
    assert seen[0].HasField("finished")


def test_a_commit_is_ready_when_its_provenance_is_finished(client: Client, place: Place) -> None:
    a, b = place.repo("a"), place.repo("b")
    client.create_branch(b, "master", provenance=[branch_of(a)])
    opened = client.start_commit(a, "master")
    seen: list[pfs_pb2.CommitInfo] = []
    waiting = threading.Thread(target=lambda: seen.append(inspect(client, b, opened.id, state=pfs_pb2.READY)))
    waiting.start()
    client.finish_commit(opened)
    waiting.join(timeout=60)
    assert seen[0].commit.id == opened.id


def test_commits_are_listed_newest_first(client: Client, place: Place) -> None:
    repo = place.repo()
    made = [place.put(repo, f=str(number)) for number in range(4)]
    assert ids(client.list_commit(repo)) == made[::-1]
    assert ids(client.list_commit(repo, reverse=True)) == made
    assert ids(client.list_commit(repo, number=2)) == [made[3], made[2]]
    assert ids(client.list_commit(repo, (repo, made[2]))) == [made[2], made[1], made[0]]
    assert ids(client.list_commit(repo, (repo, made[3]), (repo, made[1]))) == [made[3], made[2]]
    assert ids(client.list_commit(repo, (repo, "master^"), number=1)) == [made[2]]


def test_commits_are_listed_by_origin(client: Client, place: Place) -> None:
    repo = place.repo()
    client.create_branch(repo, "empty")
    made = client.inspect_branch(repo, "empty").head.id
    commit = place.put(repo, f="1")
    assert ids(client.list_commit(repo)) == [commit]
    assert ids(client.list_commit(repo, all=True)) == [commit, made]
    assert ids(client.list_commit(repo, origin_kind=pfs_pb2.AUTO)) == [made]


def test_invalid_lists_of_commits(client: Client, place: Place, refusal: Refusal, by_version: ByVersion) -> None:
    repo = place.repo()
    commit = place.put(repo, a="1")
    missing = by_version("", "ensure repo exists: ") + "repo default/ghost not found"
    assert refusal(client.list_commit, "ghost") == (NOT_FOUND, missing)
    assert refusal(client.list_commit, repo, None, (repo, commit)) == (
        UNKNOWN,
        "cannot use `from` commit without `to` commit",
    )
    assert refusal(client.list_commit, repo, (repo, commit), reverse=True) == (
        UNKNOWN,
        "cannot use 'Reverse' while also using 'From' or 'To'",
    )


def test_history_is_addressed_by_branch_id_and_ancestry(client: Client, place: Place) -> None:
    repo = place.repo()
    made = [place.put(repo, f=str(number)) for number in range(4)]
    for reference, meant in {
        "master": 3, "master^": 2, "master~1": 2, "master^^": 1, "master^3": 0, "master~3": 0, "master^0": 3,
        "master.1": 0, "master.2": 1, "master.4": 3, f"{made[2]}^": 1, f"{made[3]}~~": 1,
    }.items():  # fmt: skip
        assert inspect(client, repo, None, reference).commit.id == made[meant], reference
        with client.get_file((repo, None, reference), "/f") as file:
            assert file.read() == str(meant).encode(), reference


def test_history_ends(client: Client, place: Place, refusal: Refusal, by_version: ByVersion) -> None:
    repo = place.repo()
    for number in range(4):
        place.put(repo, f=str(number))
    for expression in ("master^4", "master~9", "master.6"):
        code, text = refusal(client.inspect_commit, (repo, None, expression))
        assert code is by_version(NOT_FOUND, UNKNOWN)
        missing = f"commit default/{repo}@{expression} not found"
        assert text.startswith(by_version(missing, "pick commit tx: picking commit: invalid offset "))


def test_invalid_references(client: Client, place: Place, refusal: Refusal, by_version: ByVersion) -> None:
    repo = place.repo()
    place.put(repo, a="1")

    def refused(*reference: str | None) -> tuple[grpc.StatusCode, str]:
        return refusal(client.inspect_commit, (repo, *reference))

    branch, commit = f'branch "ghost" not found in repo default/{repo}', f"commit default/{repo}@{NOBODY} not found"
    assert refused("ghost") == (
        NOT_FOUND,
        by_version(branch, f"pick commit tx: commit default/{repo}@ not found\n{branch}"),
    )
    assert refused(NOBODY) == (NOT_FOUND, by_version(commit, f"pick commit tx: {commit}\n{commit}"))
    nothing = by_version("cannot resolve", "pick commit tx: cannot pick")
    assert refused(None, None) == (UNKNOWN, f"{nothing} commit with no ID or branch")
    for expression, mixed in (("master^~", "^ and ~"), ("master~x", "~ and x")):
        code, text = refused(None, expression)
        assert code is UNKNOWN
        assert text.endswith(
            by_version(
                f'invalid ancestry syntax "{expression}", cannot mix {mixed} characters',
                f"{expression}: count offset and clean: invalid ancestry format",
            )
        )


def test_a_set_names_the_commit_that_its_members_were_made_from(client: Client, place: Place) -> None:
    a, models, b = place.repo("a"), place.repo("models"), place.repo("b")
    client.create_branch(b, "master", provenance=[branch_of(a), branch_of(models)])
    pushed, commit = place.put(models, m="1"), place.put(a, x="1")
    place.put(models, m="2")
    assert inspect(client, b, commit).commit.id == commit
    assert inspect(client, models, commit).commit.id == pushed, "the set has no commit in models"


def test_a_subscriber_gets_existing_and_later_commits(client: Client, place: Place) -> None:
    repo = place.repo()
    made = [place.put(repo, f="1"), place.put(repo, f="2")]
    commit_elsewhere(client, repo)
    stream = client.subscribe_commit(repo, "master")
    assert [next(stream).commit.id for _ in range(2)] == made
    made.append(place.put(repo, f="3"))
    assert next(stream).commit.id == made[2]
    stream.cancel()
    later = client.subscribe_commit(repo, "master", from_commit=made[0], state=pfs_pb2.FINISHED)
    found = [next(later) for _ in range(2)]
    assert ids(found) == made[1:]
    assert all(info.HasField("finished") for info in found)
    later.cancel()


def commit_elsewhere(client: Client, repo: str) -> None:
    """A commit on another branch, which a subscriber must not see."""
    with client.commit(repo, "elsewhere"):
        pass


def test_a_subscriber_may_wait_for_a_state(client: Client, place: Place) -> None:
    repo = place.repo()
    opened = client.start_commit(repo, "master")
    stream = client.subscribe_commit(repo, "master", state=pfs_pb2.FINISHED)
    seen: list[pfs_pb2.CommitInfo] = []
    waiting = threading.Thread(target=lambda: seen.append(next(stream)))
    waiting.start()
    client.finish_commit(opened)
    waiting.join(timeout=60)
    assert seen[0].commit.id == opened.id
    assert seen[0].HasField("finished")
    stream.cancel()


def test_an_open_commit_can_be_cleared(
    client: Client, place: Place, stub: pfs_pb2_grpc.APIStub, refusal: Refusal
) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    opened = client.start_commit(repo, "master")
    client.put_file_bytes(opened, "/b", b"2")
    stub.ClearCommit(pfs_pb2.ClearCommitRequest(commit=opened))
    assert place.paths(repo, opened.id) == ["/a"]
    client.finish_commit(opened)
    request = pfs_pb2.ClearCommitRequest(commit=opened)
    assert refusal(stub.ClearCommit, request) == (UNKNOWN, "cannot clear finished commit")
