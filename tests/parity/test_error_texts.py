"""The texts of refusals that only odd requests bring, to the letter, through the generated stubs."""

import threading
from typing import Any

import grpc
import pytest
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

UNKNOWN = grpc.StatusCode.UNKNOWN
NOBODY = "0" * 12 + "4" + "0" * 19


def _repo(name: str) -> Any:
    return pfs_pb2.Repo(name=name, type="user", project=pfs_pb2.Project(name="default"))


def _branch(repo: str, name: str = "master") -> Any:
    return pfs_pb2.Branch(repo=_repo(repo), name=name)


def _commit(repo: str, id_: str = "", branch: str = "") -> Any:
    return pfs_pb2.Commit(repo=_repo(repo), id=id_, branch=_branch(repo, branch))


@pytest.fixture(scope="module")
def pps(client: Any) -> Any:
    """The generated stub of pps."""
    return pps_pb2_grpc.APIStub(client._channel)


@pytest.mark.parametrize(
    ("call", "request_", "text"),
    [
        ("InspectRepo", pfs_pb2.InspectRepoRequest(), "repo cannot be nil"),
        ("InspectBranch", pfs_pb2.InspectBranchRequest(), "branch cannot be nil"),
        ("InspectCommit", pfs_pb2.InspectCommitRequest(), "commit cannot be nil"),
        ("ListCommit", pfs_pb2.ListCommitRequest(), "repo cannot be nil"),
        ("InspectCommitSet", pfs_pb2.InspectCommitSetRequest(), "commitset cannot be nil"),
        ("SquashCommitSet", pfs_pb2.SquashCommitSetRequest(), "commitset cannot be nil"),
        ("InspectFile", pfs_pb2.InspectFileRequest(), "file cannot be nil"),
        ("ListFile", pfs_pb2.ListFileRequest(), "file cannot be nil"),
        ("GlobFile", pfs_pb2.GlobFileRequest(), "commit cannot be nil"),
        ("GetFileSet", pfs_pb2.GetFileSetRequest(), "commit cannot be nil"),
        ("InspectCommit", pfs_pb2.InspectCommitRequest(commit=pfs_pb2.Commit(id=NOBODY)), "commit must have a repo"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_left_out(stub, refusal, call, request_, text) -> None:
    assert refusal(getattr(stub, call), request_) == (UNKNOWN, text)


def test_a_repo_to_delete_is_named(stub, refusal) -> None:
    assert refusal(stub.DeleteRepo, pfs_pb2.DeleteRepoRequest()) == (
        grpc.StatusCode.INVALID_ARGUMENT, "no repo specified",
    )  # fmt: skip


def test_references_that_contradict_themselves(stub, client, place, refusal) -> None:
    repo, other = place.repo(), place.repo()
    place.put(repo, a="1")
    place.put(other, a="1")
    mixed = pfs_pb2.InspectCommitRequest(commit=_commit(repo, "other", "master"))
    code, text = refusal(stub.InspectCommit, mixed)
    assert (code, text.strip()) == (
        UNKNOWN, f"invalid commit ID given with a branch (default/{repo}@master): other",
    )  # fmt: skip
    neither = pfs_pb2.InspectCommitRequest(commit=pfs_pb2.Commit(repo=_repo(repo), branch=_branch(repo, "")))
    assert refusal(stub.InspectCommit, neither) == (UNKNOWN, "cannot resolve commit with no ID or branch")
    borders = pfs_pb2.ListCommitRequest(repo=_repo(repo), to=_commit(other, branch="master"))
    assert refusal(stub.ListCommit, borders) == (
        UNKNOWN, f"`from` and `to` commits need to be from repo default/{repo}",
    )  # fmt: skip
    head = pfs_pb2.CreateBranchRequest(branch=_branch(repo), head=_commit(other, branch="master"))
    assert refusal(stub.CreateBranch, head) == (UNKNOWN, "branch and head commit must belong to the same repo")
    both = pfs_pb2.CreateBranchRequest(
        branch=_branch(repo, "new"), provenance=[_branch(other)], trigger=pfs_pb2.Trigger(branch="master", commits=1)
    )
    assert refusal(stub.CreateBranch, both) == (UNKNOWN, "a branch cannot have both provenance and a trigger")


def test_pages_have_limits(stub, place, refusal) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    root = pfs_pb2.File(commit=_commit(repo, branch="master"), path="/")
    for call, request in ((stub.ListFile, pfs_pb2.ListFileRequest), (stub.WalkFile, pfs_pb2.WalkFileRequest)):
        assert refusal(call, request(file=root, number=100_001)) == (
            UNKNOWN, "cannot return more than 100000 files at a time",
        )  # fmt: skip
        assert refusal(call, request(file=root, reverse=True)) == (
            UNKNOWN, "number must be > 0 when reverse is true",
        )  # fmt: skip


def test_a_jobs_commits_are_its_own(stub, place, pfs, client, refusal) -> None:
    repo = place.repo()
    open_ = client.start_commit(repo, "master")
    pipeline = place.pipeline("true", input=pfs(repo))
    request = pfs_pb2.FinishCommitRequest(commit=_commit(pipeline, branch="master"))
    assert refusal(stub.FinishCommit, request) == (
        UNKNOWN, "cannot finish a pipeline output or meta commit, use 'stop job' instead",
    )  # fmt: skip
    client.finish_commit(open_)


def test_who_waits_for_a_commit_that_goes_is_told(stub, client, place) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    commit = client.start_commit(repo, "master")
    waiting = stub.InspectCommit.future(
        pfs_pb2.InspectCommitRequest(commit=_commit(repo, commit.id), wait=pfs_pb2.FINISHED), timeout=60
    )
    ended = threading.Event()
    waiting.add_done_callback(lambda _: ended.set())
    stub.DropCommitSet(pfs_pb2.DropCommitSetRequest(commit_set=pfs_pb2.CommitSet(id=commit.id)))
    assert ended.wait(60)
    # The call may have come after the commit had gone.
    assert waiting.details() in (
        f"commit default/{repo}@{commit.id} was deleted", f"commit default/{repo}@{commit.id} not found",
    )  # fmt: skip


def test_pods_that_cannot_be_patched(pps, place, refusal) -> None:
    repo = place.repo()
    given = {
        "pipeline": pps_pb2.Pipeline(name=place.unique("p")),
        "transform": pps_pb2.Transform(cmd=["true"]),
        "input": pps_pb2.Input(pfs=pps_pb2.PFSInput(repo=repo, glob="/")),
    }
    for fields, text in (
        ({"pod_spec": "{"}, "malformed PodSpec"),
        ({"pod_patch": "{"}, "malformed PodPatch"),
        ({"parallelism_spec": {"constant": 2}, "service": {"internal_port": 1, "external_port": 30000}}, "constant"),
        ({"autoscaling": True, "spout": {}, "input": None}, "autoscaling can't be used with spouts"),
        ({"spout": {}}, "spout pipelines (without a service) must not have an input"),
    ):
        code, said = refusal(pps.CreatePipeline, pps_pb2.CreatePipelineRequest(**{**given, **fields}))
        assert code is UNKNOWN
        assert text in said


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"repo": ""}, "input must specify a name"),
        ({"repo": "", "name": "n"}, "input must specify a repo"),
        ({"repo": "out"}, "input cannot be named out"),
        ({"repo": "r", "name": ".env"}, "input cannot be named .env"),
        ({"repo": "r", "glob": ""}, "input must specify a glob"),
        ({"repo": "r", "commit": NOBODY}, "input cannot come from a commit; use a branch with head pointing to the"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_inputs(pps, place, refusal, fields, text) -> None:
    request = pps_pb2.CreatePipelineRequest(
        pipeline=pps_pb2.Pipeline(name=place.unique("p")),
        transform=pps_pb2.Transform(cmd=["true"]),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(**{"glob": "/*", **fields})),
    )
    code, said = refusal(pps.CreatePipeline, request)
    assert (code, said.startswith(text)) == (UNKNOWN, True), said
