"""Egress through the official client. Nothing here needs an object store."""

from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.parity.places import MakeInput, Place


def test_a_target_is_shown_and_an_output_without_files_needs_no_copy(
    place: Place, pfs: MakeInput, client: Client
) -> None:
    target = pps_pb2.Egress(object_storage=pfs_pb2.ObjectStorageEgress(url="s3://bucket/dir"))
    name = place.pipeline("true", input=pfs(place.repo()), egress=target)
    (info,) = client.inspect_pipeline(name, details=True)
    assert info.details.egress == target
    newest = next(iter(client.list_job(pipeline_name=name)))
    job = place.job(name, newest.job.id)
    assert (job.state, job.details.egress) == (pps_pb2.JOB_SUCCESS, target)
