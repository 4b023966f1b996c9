"""fsck finds no contradictions on a healthy server."""

from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from tests.parity.places import MakeInput, Place, commit_of


def test_a_healthy_server_has_no_errors(client: Client, place: Place, pfs: MakeInput) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    pipeline = place.pipeline(f"cp /pfs/{repo}/* /pfs/out/", input=pfs(repo))
    place.job(pipeline, place.put(repo, b="2"))
    assert list(client.fsck()) == list(client.fsck(fix=True)) == []


def test_no_output_of_deleted_datums_remains(
    client: Client, stub: pfs_pb2_grpc.APIStub, place: Place, pfs: MakeInput
) -> None:
    repo = place.repo()
    place.put(repo, a="1", b="2")
    pipeline = place.pipeline(f"cp /pfs/{repo}/* /pfs/out/", input=pfs(repo))
    commit = place.put(repo, a=None)
    place.job(pipeline, commit)
    target = commit_of(pipeline, commit)
    assert list(stub.Fsck(pfs_pb2.FsckRequest(zombie_target=target))) == []
    assert list(stub.Fsck(pfs_pb2.FsckRequest(zombie_all=True))) == []
