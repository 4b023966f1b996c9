"""The messages of NextDatum are those that protobuf makes, and making them loads next to nothing."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from python_pachyderm.proto.v2.worker.worker_pb2 import CancelRequest, NextDatumRequest, NextDatumResponse

from stages.nextdatum import decode_reply, encode_request

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(TEXTS)
def test_requests_are_protobufs(error: str) -> None:
    assert encode_request(error) == NextDatumRequest(error=error).SerializeToString()


def test_a_long_request_is_protobufs() -> None:
    for size in (127, 128, 16_383, 16_384, 3_000_000):
        assert encode_request("e" * size) == NextDatumRequest(error="e" * size).SerializeToString()


@given(st.lists(TEXTS, max_size=20))
def test_replies_are_protobufs(env: list[str]) -> None:
    assert decode_reply(NextDatumResponse(env=env).SerializeToString()) == env


def test_a_long_reply_is_read() -> None:
    env = [f"images_{number}=/pfs/images/{'x' * number}" for number in range(2000)]
    assert decode_reply(NextDatumResponse(env=env).SerializeToString()) == env


def test_fields_of_later_versions_are_passed_over() -> None:
    others = CancelRequest(data_filters=["later"]).SerializeToString()  # field 2, a text
    others += bytes([3 << 3, 0x96, 0x01]) + bytes([4 << 3 | 1, *range(8)]) + bytes([5 << 3 | 5, *range(4)])
    message = NextDatumResponse(env=["A=b"]).SerializeToString()
    assert decode_reply(others + message + others + message) == ["A=b", "A=b"]


@given(st.binary(max_size=40))
def test_what_is_no_message_is_refused_or_read(message: bytes) -> None:
    try:
        expected = list(NextDatumResponse.FromString(message).env)
    except Exception:  # protobuf's DecodeError, and others for damaged text
        return
    try:
        found = decode_reply(message)
    except ValueError:
        return  # groups and other things of the past, which nothing sends
    assert found == expected


@pytest.mark.parametrize("message", [b"\x0a", b"\x0a\x05abc", b"\x0a\x80", b"\x0b", b"\x09abc"])
def test_a_damaged_reply_is_refused(message: bytes) -> None:
    with pytest.raises(ValueError, match="a NextDatumResponse"):
        decode_reply(message)


def test_a_process_asks_for_its_first_datum_without_loading_a_client() -> None:
    program = "import stages.contract, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert "stages.nextdatum" in loaded
    assert not [name for name in loaded if name.startswith(("python_pachyderm", "google.protobuf", "numpy"))]
