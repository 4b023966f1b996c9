"""The messages of NextDatum, compared with protobuf's own."""

import pytest
from hypothesis import given, settings, strategies as st
from python_pachyderm.proto.v2.worker.worker_pb2 import NextDatumRequest, NextDatumResponse

from stages.datum import datum_messages
from tests.example_counts import examples

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@settings(max_examples=examples(50))
@given(TEXTS)
def test_a_request_is_protobufs(error: str) -> None:
    assert datum_messages.request(error) == NextDatumRequest(error=error).SerializeToString()


@settings(max_examples=examples(50))
@given(st.lists(TEXTS))
def test_a_reply_is_read_as_protobuf_writes_it(env: list[str]) -> None:
    assert datum_messages.env(NextDatumResponse(env=env).SerializeToString()) == env


def test_fields_of_later_versions_are_skipped() -> None:
    known = NextDatumResponse(env=["A=1"]).SerializeToString()
    others = b"\x10\x96\x01\x19eight by\x25four\x22\x03new"
    assert datum_messages.env(others + known + others) == ["A=1"]


@pytest.mark.parametrize("reply", [b"\x0a", b"\x0a\x05four", b"\x80", b"\x19seven b", b"\x0b"])
def test_a_damaged_reply_is_an_error(reply: bytes) -> None:
    with pytest.raises(ValueError):
        datum_messages.env(reply)
