"""The sizes of segments and parts that deployed pipelines have, and those that a deployment keeps."""

from typing import Any

import pytest
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client import partsizes


def deployed(stage: str, annotations: dict[str, str] | None = None, **env: str) -> Any:
    info = pps_pb2.PipelineInfo()
    info.pipeline.name = stage
    info.details.transform.env.update({"LOOKALIKE_STAGE": f"{stage}-7", **env})
    info.details.metadata.annotations.update(annotations or {})
    return info


def request(**env: str) -> Any:
    found = pps_pb2.CreatePipelineRequest()
    found.transform.env.update(env)
    return found


def test_the_sizes_are_those_of_the_stages_that_have_them() -> None:
    infos = [
        deployed("preprocess", PART="6400"),
        deployed("preprocess"),
        deployed("features", SEGMENT_DIGITS="2"),
        deployed("other", PART="9", SEGMENT_DIGITS="9"),
    ]
    assert (partsizes.part(infos), partsizes.digits(infos)) == (6400, 2)
    assert (partsizes.part([]), partsizes.digits([])) == (400, 1)


@pytest.mark.parametrize("text", ["", "0", "many", "-5", "²"])
def test_what_is_not_a_size_is_the_usual_one(text: str) -> None:
    assert partsizes.part([deployed("preprocess", PART=text)]) == 400


def test_a_specification_that_is_as_it_was_leaves_the_sizes() -> None:
    marked = request(PART="6400")
    partsizes.mark(marked, {"PART": "400"})
    there = deployed("preprocess", dict(marked.metadata.annotations), PART="6400")
    again = request(PART="400", K="3")
    assert partsizes.keep(again, there) == {"PART": "6400"}
    assert again.transform.env["PART"] == "6400"
    assert again.metadata.annotations == marked.metadata.annotations
    other = request(PART="800")
    assert partsizes.keep(other, there) == {}
    assert other.transform.env["PART"] == "800"
    assert partsizes.SPECIFIED not in other.metadata.annotations


@pytest.mark.parametrize("mark", ["", "{}", "[]", "7", "{"])
def test_without_a_valid_mark_the_specification_counts(mark: str) -> None:
    there = deployed("preprocess", {partsizes.SPECIFIED: mark}, PART="6400")
    asked = request(PART="400")
    assert partsizes.keep(asked, there) == {}
    assert asked.transform.env["PART"] == "400"
