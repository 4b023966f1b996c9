"""Datum records: protojson of Pachyderm's `datum.Meta`, written and read back."""

import json

from hypothesis import given, strategies as st

from localpachd.pps.datum_records import DatumRecord, decode, encode, meta_path, pfs_path
from localpachd.pps.datums import DatumInput
from localpachd.pps.pps_entities import Job, Pipeline
from localpachd.worker.tasks import DatumOutcome, DatumStats

text = st.text(st.characters(codec="ascii", min_codepoint=32), max_size=8)
inputs = st.builds(
    DatumInput,
    name=text.filter(bool),
    project=text.filter(bool),
    repo=text.filter(bool),
    repo_type=st.sampled_from(["user", "meta"]),
    branch=text,
    path=text.map("/{}".format),
    hash=st.binary(min_size=32, max_size=32),
    size=st.integers(0, 2**62),
    commit=text.filter(bool),
    join_on=text,
    outer_join=st.booleans(),
    group_by=text,
    lazy=st.booleans(),
    empty_files=st.booleans(),
    s3=st.booleans(),
)
records = st.builds(
    DatumRecord,
    id=st.just("d" * 64),
    job=st.builds(Job, st.builds(Pipeline, text.filter(bool), text.filter(bool)), text.filter(bool)),
    inputs=st.lists(inputs, max_size=3).map(tuple),
    hash=text.filter(bool),
    outcome=st.sampled_from(DatumOutcome),
    reason=st.text(max_size=20),
    stats=st.builds(DatumStats, *[st.integers(0, 10**6).map(float)] * 3, st.integers(0, 2**62), st.integers(0, 2**62)),
    index=st.integers(0, 2**40),
)


@given(records)
def test_a_record_comes_back_as_it_was(record: DatumRecord) -> None:
    assert decode(record.id, encode(record)) == record


def test_the_form_is_protojson() -> None:
    file = DatumInput("in", "default", "images", "user", "master", "/a", b"\0" * 32, 5, "c" * 32, lazy=True)
    job = Job(Pipeline("default", "edges"), "1" * 32)
    message = json.loads(
        encode(DatumRecord("d", job, (file,), "h", DatumOutcome.FAILED, "too bad", DatumStats(process_time=1.5), 3))
    )
    assert message["job"] == {"pipeline": {"project": {"name": "default"}, "name": "edges"}, "id": "1" * 32}
    assert (message["state"], message["reason"], message["index"]) == ("FAILED", "too bad", "3")
    assert message["stats"]["processTime"] == "1.500000000s"
    [one] = message["inputs"]
    assert (one["name"], one["branch"], one["lazy"]) == ("in", "master", True)
    assert one["fileInfo"]["fileType"] == "FILE"
    assert one["fileInfo"]["sizeBytes"] == "5"
    assert one["fileInfo"]["file"]["commit"]["repo"] == {
        "name": "images",
        "type": "user",
        "project": {"name": "default"},
    }


def test_defaults_are_left_out() -> None:
    job = Job(Pipeline("default", "edges"), "1" * 32)
    assert "state" not in json.loads(
        encode(DatumRecord("d", job, (), "h", DatumOutcome.PROCESSED, "", DatumStats(), 0))
    )


def test_the_paths_of_records() -> None:
    assert meta_path("d") == "/meta/d/meta"
    assert pfs_path("d") == "/pfs/d"
