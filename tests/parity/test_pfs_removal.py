"""Removing commits: squashing keeps their content in their children, dropping loses it."""

import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from tests.parity.places import NOBODY, UNKNOWN, MakeInput, Place, Refusal, branch_of, finished


def history(client: Client, repo: str) -> list[str]:
    return [info.commit.id for info in client.list_commit(repo, all=True)]


def test_squashed_content_survives_in_the_child(client: Client, place: Place) -> None:
    repo = place.repo()
    first, second, third = place.put(repo, a="1"), place.put(repo, b="2"), place.put(repo, c="3")
    client.squash_commit(second)
    assert history(client, repo) == [third, first]
    assert place.paths(repo) == ["/a", "/b", "/c"]
    assert place.paths(repo, first) == ["/a"]
    info = next(iter(client.inspect_commit((repo, third))))
    assert info.parent_commit.id == first
    assert [child.id for child in next(iter(client.inspect_commit((repo, first)))).child_commits] == [third]


def test_dropped_content_is_lost(client: Client, place: Place) -> None:
    repo = place.repo()
    first, second = place.put(repo, a="1"), place.put(repo, b="2")
    client.drop_commit(second)
    assert history(client, repo) == [first]
    assert place.paths(repo) == ["/a"]
    assert client.inspect_branch(repo, "master").head.id == first


def test_dropping_the_only_commit_leaves_an_empty_one(client: Client, place: Place) -> None:
    repo = place.repo()
    only = place.put(repo, a="1")
    client.drop_commit(only)
    head = client.inspect_branch(repo, "master").head.id
    assert head != only and history(client, repo) == [head]
    info = next(iter(client.inspect_commit((repo, "master"))))
    assert info.origin.kind == pfs_pb2.AUTO and info.HasField("finished")
    assert place.paths(repo) == []
    place.put(repo, b="2")
    assert place.paths(repo) == ["/b"]


@pytest.mark.only_localpachd("Pachyderm loses the content of a squashed commit if its child has failed")
def test_a_failed_child_reads_as_before(client: Client, stub: pfs_pb2_grpc.APIStub, place: Place) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    second = place.put(repo, b="2")
    third = client.start_commit(repo, "master")
    client.put_file_bytes(third, "/c", b"3")
    stub.FinishCommit(pfs_pb2.FinishCommitRequest(commit=third, error="spoilt"))
    finished(client, repo, third.id)
    fourth = client.start_commit(repo, "master")
    client.put_file_bytes(fourth, "/d", b"4")
    client.squash_commit(second)
    assert place.paths(repo, third.id) == ["/a", "/b", "/c"]
    client.finish_commit(fourth)
    assert place.paths(repo) == ["/a", "/b", "/d"]


def test_squashing_and_dropping_move_the_branches_that_end_there(client: Client, place: Place) -> None:
    repo = place.repo()
    first, second, third = place.put(repo, a="1"), place.put(repo, b="2"), place.put(repo, c="3")
    client.create_branch(repo, "there", head_commit=(repo, "master", second))
    client.squash_commit(second)
    assert client.inspect_branch(repo, "there").head.id == first
    assert client.inspect_branch(repo, "master").head.id == third


def test_squash_needs_finished_children(client: Client, place: Place, refusal: Refusal) -> None:
    repo = place.repo()
    first, second = place.put(repo, a="1"), place.put(repo, b="2")
    text = "cannot squash a commit that has no children as that would cause data loss, use the drop operation instead"
    assert refusal(client.squash_commit, second) == (UNKNOWN, f"{text}: default/{repo}@{second}")
    assert refusal(client.drop_commit, first) == (
        UNKNOWN,
        f"cannot drop a commit that has children: default/{repo}@{first}",
    )
    child = client.start_commit(repo, "master")
    assert refusal(client.squash_commit, second) == (
        UNKNOWN,
        f"cannot squash until child commit default/{repo}@{child.id} is finished",
    )
    client.finish_commit(child)
    finished(client, repo, child.id)
    client.squash_commit(second)
    assert history(client, repo) == [child.id, first]


def test_commits_that_others_depend_on_stay(client: Client, place: Place, refusal: Refusal) -> None:
    a, b = place.repo("a"), place.repo("b")
    first = place.put(a, x="1")
    client.create_branch(b, "master", provenance=[branch_of(a)])
    below = client.inspect_branch(b, "master").head.id
    for call in (client.squash_commit, client.drop_commit):
        assert refusal(call, first) == (
            UNKNOWN,
            f'commit set "id:\\"{first}\\"" cannot be dropped because it has subvenant commit sets: [id:"{below}"]',
        )


def test_removing_a_missing_set_succeeds_silently(client: Client) -> None:
    client.squash_commit(NOBODY)
    client.drop_commit(NOBODY)


def test_a_pipeline_loses_the_output_and_the_job_of_a_dropped_commit(
    client: Client, place: Place, pfs: MakeInput
) -> None:
    repo = place.repo()
    first = place.put(repo, a="1")
    pipeline = place.pipeline(f"cp /pfs/{repo}/* /pfs/out/", input=pfs(repo))
    second = place.put(repo, b="2")
    assert place.job(pipeline, second).state
    client.drop_commit(second)
    assert place.paths(repo) == ["/a"] and place.paths(pipeline) == ["/a"]
    assert history(client, repo) == [first] and second not in history(client, pipeline)
    third = place.put(repo, c="3")
    place.job(pipeline, third)
    assert place.paths(pipeline) == ["/a", "/c"]


def test_a_running_job_is_killed_with_its_commit(client: Client, place: Place, pfs: MakeInput) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    pipeline = place.pipeline(f"test ! -e /pfs/{repo}/b || sleep 60", input=pfs(repo, "/"))
    second = place.put(repo, b="2")
    client.drop_commit(second)
    assert second not in history(client, pipeline)
    third = place.put(repo, c="3")
    info = place.job(pipeline, third)
    assert info.data_processed == 1 and not info.reason


def test_the_version_of_a_pipeline_stays(client: Client, place: Place, pfs: MakeInput, refusal: Refusal) -> None:
    repo = place.repo()
    pipeline = place.pipeline("true", input=pfs(repo))
    version = client.inspect_pipeline(pipeline)
    spec = next(iter(version)).spec_commit.id
    code, text = refusal(client.drop_commit, spec)
    assert (code, text) == (
        UNKNOWN,
        f"cannot squash commit default/{pipeline}.spec@{spec} because it updated a pipeline",
    )
