"""Looking through everything for contradictions. A healthy server has none."""

from typing import Any

from python_pachyderm.proto.v2.pfs import pfs_pb2


def repo_of(name: str) -> Any:
    return pfs_pb2.Repo(name=name, type="user", project=pfs_pb2.Project(name="default"))


def test_there_is_nothing_to_find_or_to_fix(client: Any, place: Any, pfs: Any) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    pipeline = place.pipeline(f"cp /pfs/{repo}/* /pfs/out/", input=pfs(repo))
    place.job(pipeline, place.put(repo, b="2"))
    assert list(client.fsck()) == list(client.fsck(fix=True)) == []


def test_output_of_datums_that_are_gone(client: Any, stub: Any, place: Any, pfs: Any) -> None:
    repo = place.repo()
    place.put(repo, a="1", b="2")
    pipeline = place.pipeline(f"cp /pfs/{repo}/* /pfs/out/", input=pfs(repo))
    commit = place.put(repo, a=None)
    place.job(pipeline, commit)
    target = pfs_pb2.Commit(repo=repo_of(pipeline), id=commit, branch=pfs_pb2.Branch(repo=repo_of(pipeline)))
    assert list(stub.Fsck(pfs_pb2.FsckRequest(zombie_target=target))) == []
    assert list(stub.Fsck(pfs_pb2.FsckRequest(zombie_all=True))) == []
