"""Walking the provenance of commits and branches, and forgetting the content of a commit."""

from typing import Any, Protocol

import grpc
import pytest
from python_pachyderm import Client

from tests.parity.places import ByVersion, FsckReport, MakeInput, Place, Refusal
from tests.parity.since_2_8.calls import RpcClient


def _branch(repo: str, name: str = "master", type_: str = "user") -> dict[str, Any]:
    return {"name": {"repo": {"name": {"project": {"name": "default"}, "name": repo, "type": type_}}, "name": name}}


def _head(repo: str) -> dict[str, Any]:
    return {"branch_head": _branch(repo)}


Chain = tuple[str, str, str, list[str]]
"""A repo, two pipelines below it, one above the other, and the ids of two commits through all three."""


class Walk(Protocol):
    """The repos that a walk finds, in its order, each with its type unless that is user."""

    def __call__(self, call: str, start: dict[str, Any], **limits: int) -> list[str]: ...


@pytest.fixture
def chain(place: Place, pfs: MakeInput) -> Chain:
    """See Chain."""
    repo = place.repo()
    first = place.pipeline(f"cp /pfs/{repo}/* /pfs/out/", input=pfs(repo))
    second = place.pipeline(f"cp /pfs/{first}/* /pfs/out/", input=pfs(first))
    ids = []
    for text in ("1", "2"):
        ids.append(place.put(repo, a=text))
        place.job(second, ids[-1])
    return repo, first, second, ids


@pytest.fixture
def walk(rpc: RpcClient) -> Walk:
    """See Walk."""

    def run(call: str, start: dict[str, Any], **limits: int) -> list[str]:
        kind = "Commit" if "Commit" in call else "Branch"
        request = "WalkCommits" if kind == "Commit" else "WalkBranches"
        found = rpc.list(f"pfs_v2.API/{call}", request, f"{kind}Info", start=[start], **limits)
        repos = [getattr(each, kind.lower()).repo for each in found]
        return [repo.name + ("" if repo.type == "user" else f".{repo.type}") for repo in repos]

    return run


def test_walking_commits(chain: Chain, walk: Walk) -> None:
    repo, first, second, _ = chain
    above = walk("WalkCommitProvenance", _head(second))
    assert sorted(above[:2]) == sorted([first, f"{second}.spec"])
    assert sorted(above[2:]) == sorted([repo, f"{first}.spec"])
    assert sorted(walk("WalkCommitProvenance", _head(second), max_depth=1)) == sorted([first, f"{second}.spec"])
    below = walk("WalkCommitSubvenance", _head(repo))
    assert sorted(below[:2]) == sorted([first, f"{first}.meta"])
    assert sorted(below[2:]) == sorted([second, f"{second}.meta"])
    assert len(walk("WalkCommitSubvenance", _head(repo), max_commits=3)) == 3
    assert walk("WalkCommitProvenance", _head(repo)) == []


def test_walking_branches(chain: Chain, walk: Walk, rpc: RpcClient, refusal: Refusal, by_version: ByVersion) -> None:
    repo, first, second, _ = chain
    above = walk("WalkBranchProvenance", _branch(second))
    assert sorted(above[:2]) == sorted([first, f"{second}.spec"])
    assert sorted(above[2:]) == sorted([repo, f"{first}.spec"])
    assert sorted(walk("WalkBranchSubvenance", _branch(repo), max_depth=1)) == sorted([first, f"{first}.meta"])
    assert len(walk("WalkBranchSubvenance", _branch(repo), max_branches=1)) == 1
    code, text = refusal(
        rpc.list, "pfs_v2.API/WalkBranchProvenance", "WalkBranches", "BranchInfo", start=[_branch(repo, "ghost")]
    )
    assert code is grpc.StatusCode.NOT_FOUND
    found = by_version(
        f'branch "ghost" not found in repo default/{repo}', f"branch (id=0, branch=default/{repo}@ghost) not found"
    )
    assert found in text


def test_forgetting_output_keeps_its_commit(
    chain: Chain, rpc: RpcClient, client: Client, place: Place, refusal: Refusal, complaints: FsckReport
) -> None:
    repo, first, second, (old, _) = chain
    output = {"name": {"project": {"name": "default"}, "name": first}}

    def forget(picker: dict[str, Any]) -> None:
        rpc.call("pfs_v2.API/ForgetCommit", "Forget", "Empty", commit=picker)

    for picker, text in (
        ({"id": {"repo": {"name": {"project": {"name": "default"}, "name": repo}}, "id": old}}, "output repo"),
        (_head(first), "head"),
        ({}, "commit picker cannot be nil"),
    ):
        assert text in refusal(forget, picker)[1]
    forget({"ancestor": {"offset": 1, "start": _head(first)}})
    assert refusal(place.read, first, "/a", old)[1] == "the commit is forgotten"
    assert place.read(first, "/a") == "2"
    forget({"id": {"repo": output, "id": old}})
    # The next commit builds on the head; the forgotten one is not in the way.
    third = place.put(repo, a="3")
    place.job(second, third)
    assert place.read(second, "/a") == "3"
    assert client.inspect_commit((first, "master", old))
    assert complaints(repo, first, second) == []
