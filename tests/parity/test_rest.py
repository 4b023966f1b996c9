"""Calls that few clients make: the cache, the storage check, error details, and a call that every server refuses."""

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.wrappers_pb2 import BytesValue, StringValue
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc
from python_pachyderm.proto.v2.task import task_pb2

from tests.parity.places import Place, Refusal


def _packed(text: str) -> AnyMessage:
    message = AnyMessage()
    message.Pack(StringValue(value=text))
    return message


def test_values_are_kept_until_their_tag_is_cleared(stub: pfs_pb2_grpc.APIStub, place: Place, refusal: Refusal) -> None:
    key, tag = place.unique("key"), place.unique("tag")
    added = pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path="/f", raw=BytesValue(value=b"1")))
    held = stub.CreateFileSet(iter([added])).file_set_id
    stub.PutCache(pfs_pb2.PutCacheRequest(key=key, value=_packed("one"), file_set_ids=[held], tag=f"{tag}/a"))
    kept = StringValue()
    assert stub.GetCache(pfs_pb2.GetCacheRequest(key=key)).value.Unpack(kept)
    assert kept.value == "one"
    stub.ClearCache(pfs_pb2.ClearCacheRequest(tag_prefix=f"{tag}/b"))
    assert stub.GetCache(pfs_pb2.GetCacheRequest(key=key)).value == _packed("one")
    stub.ClearCache(pfs_pb2.ClearCacheRequest(tag_prefix=tag))
    refusal(stub.GetCache, pfs_pb2.GetCacheRequest(key=key))
    ghost = pfs_pb2.PutCacheRequest(key=key, value=_packed("two"), file_set_ids=["0" * 31])
    assert "too short" in refusal(stub.PutCache, ghost)[1]


def count(stub: pfs_pb2_grpc.APIStub, **wanted: bool | bytes) -> int:
    return int(stub.CheckStorage(pfs_pb2.CheckStorageRequest(**wanted)).chunk_object_count)


def test_stored_chunks_are_read_and_counted(stub: pfs_pb2_grpc.APIStub, place: Place) -> None:
    place.put(place.repo(), a=place.unique("content"))
    assert count(stub, read_chunk_data=True) > 0
    assert count(stub, read_chunk_data=True, chunk_begin=b"\xff" * 32) == 0


@pytest.mark.only_localpachd("Pachyderm 2.7 takes a chunk that is not in its disk cache for missing, and fails in SQL")
def test_stored_chunks_are_counted(stub: pfs_pb2_grpc.APIStub, place: Place) -> None:
    place.put(place.repo(), a=place.unique("content"))
    assert count(stub) > 0
    assert count(stub, read_chunk_data=True) >= count(stub, chunk_begin=b"\xff" * 32)


def test_the_error_details_name_the_unfinished_commit(stub: pfs_pb2_grpc.APIStub, client: Client, place: Place) -> None:
    repo = place.repo()
    commit = client.start_commit(repo, "master")
    with pytest.raises(grpc.RpcError) as refused:
        list(stub.FindCommits(pfs_pb2.FindCommitsRequest(start=commit, file_path="/a")))
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    assert refused.value.details() == f"commit default/{repo}@{commit.id} not finished"
    (details,) = [each.value for each in refused.value.trailing_metadata() if each.key == "grpc-status-details-bin"]
    for part in ("type.googleapis.com/google.rpc.ResourceInfo", "pfs:commit", commit.id, "commit not finished"):
        assert part.encode() in details
    client.finish_commit(commit)


def test_running_a_single_pipeline_is_unimplemented(pps_stub: pps_pb2_grpc.APIStub, refusal: Refusal) -> None:
    request = pps_pb2.RunPipelineRequest(pipeline=pps_pb2.Pipeline(name="any"))
    assert refusal(pps_stub.RunPipeline, request) == (grpc.StatusCode.UNKNOWN, "unimplemented")


def test_tasks_are_listed(pps_stub: pps_pb2_grpc.APIStub, stub: pfs_pb2_grpc.APIStub) -> None:
    for call in (pps_stub.ListTask, stub.ListTask):
        assert all(task.id for task in call(task_pb2.ListTaskRequest(group=task_pb2.Group())))


@pytest.mark.crashes_pachd("a request that names no group, not even an empty one")
def test_tasks_are_listed_without_a_group(pps_stub: pps_pb2_grpc.APIStub, stub: pfs_pb2_grpc.APIStub) -> None:
    for call in (pps_stub.ListTask, stub.ListTask):
        assert all(task.id for task in call(task_pb2.ListTaskRequest()))
