"""Values that no message may hold: each is refused with its field, whatever the call."""

from typing import Any

import grpc
import pytest

from localpachd.api.calls import message_checks
from localpachd.api.schema.schema import Duration, Timestamp, logs_pb2, pfs_pb2, pps_pb2, transaction_pb2
from localpachd.errors import InvalidArgument
from tests.servers import Pachd

_LONG = (1 << 63) - 1


def _refused(request: Any) -> str:
    check = message_checks.check_of(request.DESCRIPTOR)
    assert check is not None
    with pytest.raises(InvalidArgument) as caught:
        check(request)
    return str(caught.value)


@pytest.mark.parametrize(
    ("seconds", "nanos"), [(_LONG, 0), (-_LONG, 0), (0, 1_000_000_000), (1, -1), (-1, 1), (10_000_000_000, 0)]
)
def test_a_duration_that_is_not_valid(seconds: int, nanos: int) -> None:
    made = pps_pb2.CreatePipelineRequest(datum_timeout=Duration(seconds=seconds, nanos=nanos))
    assert _refused(made).startswith("datum_timeout: ")


@pytest.mark.parametrize(("seconds", "nanos"), [(_LONG, 0), (-_LONG, 0), (0, -1), (0, 1_000_000_000)])
def test_a_time_that_is_not_valid(seconds: int, nanos: int) -> None:
    start = Timestamp(seconds=seconds, nanos=nanos)
    held = pps_pb2.Input(cross=[pps_pb2.Input(), pps_pb2.Input(cron=pps_pb2.CronInput(start=start))])
    assert _refused(pps_pb2.CreatePipelineRequest(input=held)).startswith("input.cross.cron.start: ")


def test_a_number_of_an_enum_that_has_no_name() -> None:
    made = pps_pb2.UpdateJobStateRequest()
    made.state = 99  # type: ignore[assignment]
    batch = transaction_pb2.BatchTransactionRequest(
        requests=[transaction_pb2.TransactionRequest(update_job_state=made)]
    )
    assert _refused(batch).startswith("requests.update_job_state.state: 99 is not a valid JobState: use one of JOB_")


def test_values_at_the_edges_pass() -> None:
    made = pps_pb2.CreatePipelineRequest(
        datum_timeout=Duration(seconds=9_223_372_035, nanos=999_999_999),
        job_timeout=Duration(seconds=-1, nanos=-1),
        input=pps_pb2.Input(cron=pps_pb2.CronInput(start=Timestamp(seconds=-62_135_596_800))),
    )
    check = message_checks.check_of(made.DESCRIPTOR)
    assert check is not None
    check(made)


def test_streams_of_files_need_no_check() -> None:
    assert message_checks.check_of(pfs_pb2.ModifyFileRequest.DESCRIPTOR) is None


def _call(pachd: Pachd, method: str, request: Any, reply: Any, stream: bool = False) -> tuple[grpc.StatusCode, str]:
    with grpc.insecure_channel(pachd.address.removeprefix("grpc://")) as channel:
        kind = channel.unary_stream if stream else channel.unary_unary
        call = kind(f"/{method}", request_serializer=type(request).SerializeToString, response_deserializer=reply)
        with pytest.raises(grpc.RpcError) as caught:
            answer = call(request, timeout=10)
            if stream:
                list(answer)
        return caught.value.code(), caught.value.details() or ""


def test_lifetimes_of_file_sets_beyond_all_measure(localpachd: Pachd) -> None:
    for ttl in (-1, -(1 << 63), 253_402_300_800):
        asked = pfs_pb2.ComposeFileSetRequest(ttl_seconds=ttl)
        code, text = _call(localpachd, "pfs_v2.API/ComposeFileSet", asked, bytes)
        assert code is grpc.StatusCode.UNKNOWN
        assert "must be at least one second" in text


def test_a_refusal_of_a_long_text_arrives(localpachd: Pachd) -> None:
    name = "é[" * 30_000
    asked = pfs_pb2.CreateRepoRequest(repo=pfs_pb2.Repo(name=name, type="user"))
    code, text = _call(localpachd, "pfs_v2.API/CreateRepo", asked, bytes)
    assert code is grpc.StatusCode.UNKNOWN
    assert text.startswith("name (é[é[")
    assert text.endswith("only alphanumeric characters, underscores, and dashes are allowed")


@pytest.mark.parametrize("url", ["http://[", "s3://[", "http://[::1", "http://a:b/"])
def test_urls_that_are_not_valid(localpachd: Pachd, url: str) -> None:
    code, text = _call(localpachd, "pfs_v2.API/GetFile", pfs_pb2.GetFileRequest(URL=url), bytes, stream=True)
    assert code is grpc.StatusCode.UNKNOWN
    assert url in text or "unrecognized object store" in text


def test_the_largest_limit_of_a_search_in_logs(localpachd: Pachd) -> None:
    chosen = logs_pb2.LogFilter(
        limit=(1 << 64) - 1,
        time_range=logs_pb2.TimeRangeLogFilter(until=Timestamp(seconds=253_402_300_799), offset=(1 << 64) - 1),
    )
    asked = logs_pb2.GetLogsRequest(filter=chosen)
    with grpc.insecure_channel(localpachd.address.removeprefix("grpc://")) as channel:
        call = channel.unary_stream(
            "/logs.API/GetLogs",
            request_serializer=logs_pb2.GetLogsRequest.SerializeToString,
            response_deserializer=logs_pb2.GetLogsResponse.FromString,
        )
        assert list(call(asked, timeout=10)) == []


@pytest.mark.parametrize("text", ["000 extra", "(" * 5000, '"\\q"', '. == "a', "1" * 5000 + ")"])
def test_filters_that_are_not_valid(localpachd: Pachd, text: str) -> None:
    asked = pps_pb2.ListPipelineRequest(jqFilter=text)
    code, said = _call(localpachd, "pps_v2.API/ListPipeline", asked, bytes, stream=True)
    assert code is grpc.StatusCode.UNKNOWN
    assert "error parsing jq filter" in said


def test_a_secret_that_is_null(localpachd: Pachd) -> None:
    code, text = _call(localpachd, "pps_v2.API/CreateSecret", pps_pb2.CreateSecretRequest(file=b"null"), bytes)
    assert code is grpc.StatusCode.UNKNOWN
    assert "metadata.name: Required value" in text


@pytest.mark.parametrize(
    ("secret", "refusal"),
    [
        (r'{"metadata": {"name": "s"}, "stringData": {"a": "\ud800"}}', "stringData.a is not valid Unicode"),
        (r'{"metadata": {"name": "s"}, "data": {"\ud800": "?"}}', "data.? is not base64"),
        (r'{"metadata": {"labels": {"suite": "\ud800"}}}', "invalid suite label set on secret: suite=?"),
    ],
)
def test_halves_of_surrogates_in_a_secret(localpachd: Pachd, secret: str, refusal: str) -> None:
    asked = pps_pb2.CreateSecretRequest(file=secret.encode())
    code, text = _call(localpachd, "pps_v2.API/CreateSecret", asked, bytes)
    assert code is grpc.StatusCode.UNKNOWN
    assert refusal in text


def test_halves_of_surrogates_in_a_specification(localpachd: Pachd) -> None:
    asked = pps_pb2.CreatePipelineV2Request(create_pipeline_request_json=r'{"\ud800": 1}')
    code, text = _call(localpachd, "pps_v2.API/CreatePipelineV2", asked, bytes)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert 'unknown field "?"' in text
