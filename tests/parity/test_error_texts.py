"""The exact texts with which unusual requests are refused, through the generated stubs."""

import threading

import pytest
from google.protobuf.message import Message
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

from tests.parity.places import (
    INVALID,
    NOBODY,
    NOT_FOUND,
    UNKNOWN,
    ByVersion,
    MakeInput,
    Place,
    Refusal,
    branch_of,
    commit_of,
    repo_of,
)

NO_REPO, NO_COMMIT = pfs_pb2.Branch(name="x"), pfs_pb2.File(path="/")


@pytest.mark.parametrize(
    ("call", "request_", "text"),
    [
        ("CreateRepo", pfs_pb2.CreateRepoRequest(), "repo cannot be nil"),
        ("InspectRepo", pfs_pb2.InspectRepoRequest(), "repo cannot be nil"),
        ("InspectBranch", pfs_pb2.InspectBranchRequest(), "branch cannot be nil"),
        ("InspectBranch", pfs_pb2.InspectBranchRequest(branch=NO_REPO), "branch repo cannot be nil"),
        ("CreateBranch", pfs_pb2.CreateBranchRequest(), "branch cannot be nil"),
        ("CreateBranch", pfs_pb2.CreateBranchRequest(branch=NO_REPO), "branch repo cannot be nil"),
        ("FinishCommit", pfs_pb2.FinishCommitRequest(), "check new file commit: commit cannot be nil"),
        ("ClearCommit", pfs_pb2.ClearCommitRequest(), "commit cannot be nil"),
        ("SubscribeCommit", pfs_pb2.SubscribeCommitRequest(), "repo cannot be nil"),
        ("InspectCommit", pfs_pb2.InspectCommitRequest(), "commit cannot be nil"),
        ("ListCommit", pfs_pb2.ListCommitRequest(), "repo cannot be nil"),
        ("InspectCommitSet", pfs_pb2.InspectCommitSetRequest(), "commitset cannot be nil"),
        ("SquashCommitSet", pfs_pb2.SquashCommitSetRequest(), "commitset cannot be nil"),
        ("InspectFile", pfs_pb2.InspectFileRequest(), "file cannot be nil"),
        ("ListFile", pfs_pb2.ListFileRequest(), "file cannot be nil"),
        ("WalkFile", pfs_pb2.WalkFileRequest(), "file cannot be nil"),
        ("GetFile", pfs_pb2.GetFileRequest(), "file cannot be nil"),
        ("GetFile", pfs_pb2.GetFileRequest(file=NO_COMMIT), "commit cannot be nil"),
        ("GetFileTAR", pfs_pb2.GetFileRequest(), "file cannot be nil"),
        ("DiffFile", pfs_pb2.DiffFileRequest(), "file cannot be nil"),
        ("DiffFile", pfs_pb2.DiffFileRequest(new_file=NO_COMMIT), "check new file commit: commit cannot be nil"),
        ("AddFileSet", pfs_pb2.AddFileSetRequest(), "commit cannot be nil"),
        ("GlobFile", pfs_pb2.GlobFileRequest(), "commit cannot be nil"),
        ("GetFileSet", pfs_pb2.GetFileSetRequest(), "commit cannot be nil"),
        ("InspectCommit", pfs_pb2.InspectCommitRequest(commit=pfs_pb2.Commit(id=NOBODY)), "commit must have a repo"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_missing_fields(stub: pfs_pb2_grpc.APIStub, refusal: Refusal, call: str, request_: Message, text: str) -> None:
    assert refusal(getattr(stub, call), request_) == (UNKNOWN, text)


@pytest.mark.parametrize(
    ("call", "request_", "text"),
    [
        ("InspectJob", pps_pb2.InspectJobRequest(), "must specify a job"),
        ("DeleteJob", pps_pb2.DeleteJobRequest(), "job cannot be nil"),
        ("StopJob", pps_pb2.StopJobRequest(), "Job must be specified"),
        ("SubscribeJob", pps_pb2.SubscribeJobRequest(), "pipeline must be specified"),
        ("InspectDatum", pps_pb2.InspectDatumRequest(), "must specify a datum"),
        ("InspectDatum", pps_pb2.InspectDatumRequest(datum=pps_pb2.Datum(id="x")), "must specify a job"),
        ("ListDatum", pps_pb2.ListDatumRequest(), "must specify a job"),
        ("RestartDatum", pps_pb2.RestartDatumRequest(), "must specify a job"),
        ("StartPipeline", pps_pb2.StartPipelineRequest(), "request.Pipeline cannot be nil"),
        ("StopPipeline", pps_pb2.StopPipelineRequest(), "request.Pipeline cannot be nil"),
        ("CreatePipeline", pps_pb2.CreatePipelineRequest(), "request.Pipeline cannot be nil"),
        (
            "GetLogs",
            pps_pb2.GetLogsRequest(data_filters=["/a"]),
            "must specify the Job or Pipeline that the datum is from to get logs for it",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_missing_jobs_and_pipelines(
    pps_stub: pps_pb2_grpc.APIStub, refusal: Refusal, call: str, request_: Message, text: str
) -> None:
    assert refusal(getattr(pps_stub, call), request_) == (UNKNOWN, text)


def test_other_missing_fields(stub: pfs_pb2_grpc.APIStub, refusal: Refusal, by_version: ByVersion) -> None:
    assert refusal(stub.DeleteRepo, pfs_pb2.DeleteRepoRequest()) == (INVALID, "no repo specified")
    assert refusal(stub.DeleteBranch, pfs_pb2.DeleteBranchRequest()) == by_version(
        (UNKNOWN, "branch cannot be nil"),
        (INVALID, "validate request: invalid DeleteBranchRequest.Branch: value is required"),
    )
    nothing = "branch must be specified"
    assert refusal(stub.StartCommit, pfs_pb2.StartCommitRequest()) == by_version(
        (UNKNOWN, nothing), (UNKNOWN, f"start commit in transaction: {nothing}")
    )
    code, text = refusal(stub.DeleteBranch, pfs_pb2.DeleteBranchRequest(branch=NO_REPO))
    assert code is UNKNOWN
    # 2.12 passes on what its database says.
    assert text == "branch repo cannot be nil" or by_version(False, "SQLSTATE 22P02" in text)


def test_contradictory_references(
    stub: pfs_pb2_grpc.APIStub, client: Client, place: Place, refusal: Refusal, by_version: ByVersion
) -> None:
    repo, other = place.repo(), place.repo()
    place.put(repo, a="1")
    place.put(other, a="1")
    mixed = pfs_pb2.InspectCommitRequest(commit=commit_of(repo, "other", "master"))
    code, text = refusal(stub.InspectCommit, mixed)
    assert (code, text.strip()) == by_version(
        (UNKNOWN, f"invalid commit ID given with a branch (default/{repo}@master): other"),
        (
            NOT_FOUND,
            f'pick commit tx: commit default/{repo}@other not found\nbranch "master" not found in repo default/{repo}',
        ),
    )
    neither = pfs_pb2.InspectCommitRequest(commit=pfs_pb2.Commit(repo=repo_of(repo), branch=branch_of(repo, "")))
    nothing = by_version("cannot resolve", "pick commit tx: cannot pick")
    assert refusal(stub.InspectCommit, neither) == (UNKNOWN, f"{nothing} commit with no ID or branch")
    borders = pfs_pb2.ListCommitRequest(repo=repo_of(repo), to=commit_of(other, branch="master"))
    assert refusal(stub.ListCommit, borders) == (
        UNKNOWN, f"`from` and `to` commits need to be from repo default/{repo}",
    )  # fmt: skip
    head = pfs_pb2.CreateBranchRequest(branch=branch_of(repo), head=commit_of(other, branch="master"))
    assert refusal(stub.CreateBranch, head) == (UNKNOWN, "branch and head commit must belong to the same repo")
    both = pfs_pb2.CreateBranchRequest(
        branch=branch_of(repo, "new"),
        provenance=[branch_of(other)],
        trigger=pfs_pb2.Trigger(branch="master", commits=1),
    )
    assert refusal(stub.CreateBranch, both) == (UNKNOWN, "a branch cannot have both provenance and a trigger")


def test_pages_have_limits(stub: pfs_pb2_grpc.APIStub, place: Place, refusal: Refusal) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    root = pfs_pb2.File(commit=commit_of(repo, branch="master"), path="/")
    for call, request in ((stub.ListFile, pfs_pb2.ListFileRequest), (stub.WalkFile, pfs_pb2.WalkFileRequest)):
        assert refusal(call, request(file=root, number=100_001)) == (
            UNKNOWN, "cannot return more than 100000 files at a time",
        )  # fmt: skip
        assert refusal(call, request(file=root, reverse=True)) == (
            UNKNOWN, "number must be > 0 when reverse is true",
        )  # fmt: skip


def test_users_cannot_finish_a_jobs_commit(
    stub: pfs_pb2_grpc.APIStub, place: Place, pfs: MakeInput, client: Client, refusal: Refusal
) -> None:
    repo = place.repo()
    open_ = client.start_commit(repo, "master")
    pipeline = place.pipeline("true", input=pfs(repo))
    request = pfs_pb2.FinishCommitRequest(commit=commit_of(pipeline, branch="master"))
    assert refusal(stub.FinishCommit, request) == (
        UNKNOWN, "cannot finish a pipeline output or meta commit, use 'stop job' instead",
    )  # fmt: skip
    client.finish_commit(open_)


def test_waiting_for_a_commit_ends_when_it_is_deleted(
    stub: pfs_pb2_grpc.APIStub, client: Client, place: Place, by_version: ByVersion
) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    commit = client.start_commit(repo, "master")
    waiting = stub.InspectCommit.future(
        pfs_pb2.InspectCommitRequest(commit=commit_of(repo, commit.id), wait=pfs_pb2.FINISHED), timeout=60
    )
    ended = threading.Event()
    waiting.add_done_callback(lambda _: ended.set())
    stub.DropCommitSet(pfs_pb2.DropCommitSetRequest(commit_set=pfs_pb2.CommitSet(id=commit.id)))
    assert ended.wait(60)
    # The call may arrive after the commit is gone.
    gone = f"commit default/{repo}@{commit.id} not found"
    assert waiting.details() in (
        by_version("", "inspect finishing or finished commit: ") + f"commit default/{repo}@{commit.id} was deleted",
        by_version(gone, f"pick commit tx: {gone}\n{gone}"),
    )


def test_invalid_pod_patches_and_combinations(
    pps_stub: pps_pb2_grpc.APIStub, place: Place, refusal: Refusal, by_version: ByVersion
) -> None:
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
        code, said = refusal(pps_stub.CreatePipeline, pps_pb2.CreatePipelineRequest(**{**given, **fields}))
        assert code is (by_version(UNKNOWN, INVALID) if text.startswith("malformed") else UNKNOWN)
        assert text in said
