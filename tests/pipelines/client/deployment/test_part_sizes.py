"""The sizes of segments, buckets and parts that deployed pipelines have, and those that a deployment keeps."""

from typing import Any

import pytest
from google.protobuf import json_format
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.deployment import part_sizes
from pipelines.specifications.segment_numbers import SegmentNumbers


def deployed(stage: str, annotations: dict[str, str] | None = None, **env: str) -> Any:
    info = pps_pb2.PipelineInfo()
    info.pipeline.name = stage
    info.details.transform.env.update({"LOOKALIKE_STAGE": f"{stage}-7", **env})
    info.details.metadata.annotations.update(annotations or {})
    return info


def details(stage: str, **env: str) -> Any:
    return deployed(stage, None, **env).details


def dealing(*globs: str) -> Any:
    found = details("partition")
    joined = [{"pfs": {"repo": "features", "glob": glob}} for glob in globs]
    json_format.ParseDict({"join": joined}, found.input)
    return found


def request(**env: str) -> Any:
    found = pps_pb2.CreatePipelineRequest()
    found.transform.env.update(env)
    return found


def test_the_sizes_are_those_of_the_stages_that_have_them() -> None:
    specs = [
        details("preprocess", PART="6400"),
        details("preprocess"),
        details("features", SEGMENT_DIGITS="3"),
        details("partition", SEGMENT_DIGITS="2"),
        details("other", PART="9", SEGMENT_DIGITS="9"),
    ]
    assert (part_sizes.part(specs), part_sizes.numbers(specs)) == (6400, SegmentNumbers(2, 64))
    assert (part_sizes.part([]), part_sizes.numbers([])) == (400, SegmentNumbers(1, 64))


@pytest.mark.parametrize(
    ("globs", "buckets"),
    [
        (("/library/(*)", "/thumbnails/(*)"), 64),
        (("/library/(*)/(*)", "/thumbnails/(*)/(*)"), 1_024),
        (("/library/(*/*)", "/thumbnails/(*/*)"), 1_024),
        ((), 64),
    ],
)
def test_the_buckets_are_those_of_the_globs(globs: tuple[str, ...], buckets: int) -> None:
    assert part_sizes.numbers([dealing(*globs)]).buckets == buckets


@pytest.mark.parametrize("text", ["", "0", "many", "-5", "²"])
def test_what_is_not_a_size_is_the_usual_one(text: str) -> None:
    assert part_sizes.part([details("preprocess", PART=text)]) == 400


def test_a_specification_that_is_as_it_was_leaves_the_sizes() -> None:
    marked = request(PART="6400")
    part_sizes.mark(marked, {"PART": "400"})
    there = deployed("preprocess", dict(marked.metadata.annotations), PART="6400")
    again = request(PART="400", K="3")
    assert part_sizes.keep_deployed(again, there) == {"PART": "6400"}
    assert again.transform.env["PART"] == "6400"
    assert again.metadata.annotations == marked.metadata.annotations
    other = request(PART="800")
    assert part_sizes.keep_deployed(other, there) == {}
    assert other.transform.env["PART"] == "800"
    assert part_sizes.SPECIFIED not in other.metadata.annotations


@pytest.mark.parametrize("mark", ["", "{}", "[]", "7", "{"])
def test_without_a_valid_mark_the_specification_counts(mark: str) -> None:
    there = deployed("preprocess", {part_sizes.SPECIFIED: mark}, PART="6400")
    asked = request(PART="400")
    assert part_sizes.keep_deployed(asked, there) == {}
    assert asked.transform.env["PART"] == "400"
