"""Open transactions on a separate server: they survive a restart, and all can be deleted at once."""

from pathlib import Path

import grpc
import pytest
from python_pachyderm.proto.v2.pps import pps_pb2

from localpachd.api.messages.transaction_requests import TransactionRequests
from localpachd.api.schema.schema import transaction_pb2
from tests.servers import StartPachd


def test_every_request_that_a_transaction_can_hold_has_a_step() -> None:
    steps = TransactionRequests(None, None).steps  # type: ignore[arg-type]  # nothing is run
    assert set(steps) == set(transaction_pb2.TransactionRequest.DESCRIPTOR.fields_by_name)


def test_a_transaction_survives_a_killed_server(tmp_path: Path, start_pachd: StartPachd) -> None:
    pachd = start_pachd(tmp_path / "root")
    client = pachd.client()
    client.create_repo("in")
    client.put_file_bytes(("in", "master"), "/w", b"before")
    client.transaction_id = client.start_transaction().id
    transform = pps_pb2.Transform(
        cmd=["sh"], stdin=['cp "${LOCALPACHD_PFS:-/pfs}"/in/* "${LOCALPACHD_PFS:-/pfs}"/out/']
    )
    client.create_pipeline("p", transform, input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="in", glob="/*")))
    commit = client.start_commit("in", "master")
    pachd.kill()
    pachd = start_pachd(tmp_path / "root")
    again = pachd.client()
    (info,) = again.list_transaction()
    assert [each.ListFields()[0][0].name for each in info.requests] == ["create_pipeline", "start_commit"]
    assert list(again.list_pipeline()) == []
    again.transaction_id = info.transaction.id
    again.create_repo("other")
    assert len(again.finish_transaction(info.transaction).responses) == 3
    again.transaction_id = None
    assert list(again.list_transaction()) == []
    again.put_file_bytes(commit, "/x", b"data")
    again.finish_commit(commit)
    (job,) = again.inspect_job(commit.id, pipeline_name="p", wait=True)
    assert job.state == pps_pb2.JOB_SUCCESS
    assert again.get_file(("p", "master"), "/x").read() == b"data"
    pachd.kill()
    last = start_pachd(tmp_path / "root").client()
    assert list(last.list_transaction()) == []  # the finished transaction stays finished
    assert {each.repo.name for each in last.list_repo()} == {"in", "p", "other"}


def test_all_transactions_can_be_deleted_at_once(tmp_path: Path, start_pachd: StartPachd) -> None:
    client = start_pachd(tmp_path / "root").client()
    begun = [client.start_transaction() for _ in range(3)]
    client.transaction_id = begun[0].id
    client.create_repo("never")
    client.transaction_id = None
    assert [each.transaction.id for each in client.list_transaction()] == [each.id for each in reversed(begun)]
    client.delete_all_transactions()
    assert list(client.list_transaction()) == []
    with pytest.raises(grpc.RpcError, match="not found"):
        client.finish_transaction(begun[0])
    assert list(client.list_repo()) == []
