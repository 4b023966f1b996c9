"""Traces where much of the path is missing, and the choice of a tile; tests/e2e/test_traces.py has whole paths."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipelines.analysis.tracing import trace_page, trace_text
from pipelines.analysis.tracing.trace_text import shortened
from pipelines.analysis.tracing.tracer import trace
from pipelines.analysis.tracing.traces import PictureOrigin, SourceFile, TraceStep, as_data
from pipelines.client.deployment.deployment import deploy
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.specifications import pipeline_specs
from pipelines.specifications.pipeline_specs import PipelineSpec
from stages.decode.picture_normaliser import picture_id
from stages.record import entry_paths, part_names
from stages.record.framing import PictureSquare
from tests.e2e.world import with_environment
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.stand_ins import RENDER, shell_spec

pytestmark = pytest.mark.late_alone

SIDE = 16
PIXELS = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
PICTURE_ID = picture_id(PictureSquare(PIXELS, (SIDE, SIDE)))
"""The id of a picture of these pixels, which preprocess does not scale."""


def answer(query: str, *names: str, k: int = 3, near: int = 3) -> dict[str, Any]:
    neighbours = [{"id": f"{at}" * 64, "distance": at / 8, "sources": [f"<b>{at}.png"]} for at in range(near)]
    facts = {"k": k, "metric": "euclidean", "backbone": "small at 96 px", "model": "f" * 64}
    return {"query": query, "sources": list(names), "neighbors": neighbours, **facts}


def put(connection: Connection, wait: WaitForJobs, **entries: Sequence[dict[str, Any] | str]) -> None:
    """Puts queries that `sheets` makes the answers of their entries."""
    edits = []
    for entry, answers in entries.items():
        text = "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in answers)
        edits.append(PutFile(f"/{entry}", text.encode()))
    wait(Repository(connection, "queries").write(edits))


def test_a_path_of_which_only_the_end_is_there(sheets: Connection, wait_for_jobs: WaitForJobs) -> None:
    put(sheets, wait_for_jobs, **{"mine.png": [answer("a" * 64, "mine.png")]})
    found = trace(sheets, "mine.png", rank=2)
    assert (found.neighbour.id, found.distance, found.render.state) == ("1" * 64, 0.125, "processed")
    assert found.render.process is not None
    assert [each.holds for each in found.checks] == [False, True]
    gaps = "\n".join(found.gaps)
    for gap in ("search: it has no table", "index: /1/index.json is not there", "models: no backbone is there"):
        assert gap in gaps
    page = trace_page.page(found)
    assert "&lt;b&gt;1.png" in page
    assert "<b>" not in page
    assert "no preview" in page
    assert json.dumps(as_data(found))


def test_a_vector_of_a_query_is_found_in_its_bucket(sheets: Connection, wait_for_jobs: WaitForJobs) -> None:
    script = "mkdir -p /pfs/out/queries/09/mine.png && echo vector > /pfs/out/queries/09/mine.png/images.parquet"
    deploy(sheets, [scripted("features-queries", "queries", script)])
    put(sheets, wait_for_jobs, **{"mine.png": [answer("a" * 64, "mine.png")]})
    (origin,) = trace(sheets, "mine.png").query.origins
    assert origin.features.path == "/queries/09/mine.png/images.parquet"
    assert entry_paths.directory("mine.png") == "queries/09/mine.png"


@pytest.mark.parametrize("smaller", [False, True])
def test_a_vector_of_the_library_is_found_however_partition_is_divided(
    smaller: bool, connection: Connection, wait_for_jobs: WaitForJobs
) -> None:
    part = part_names.source_name("a.png")
    bucket, segment = part_names.directory(part), PICTURE_ID[0]
    computed = f"/library/{bucket}/{part}.parquet"
    dealt = f"/library/{segment}/{bucket.replace('/', '-') if smaller else bucket[:2]}.parquet"
    (preprocess,) = (each for each in pipeline_specs.load() if each.name == "preprocess")
    specs = [
        with_environment(preprocess, IMAGE_SIZE=str(SIDE)),
        scripted("features", "images", writes(computed)),
        scripted("partition", "images", writes(dealt)),
    ]
    specs.append(scripted("render", "queries", RENDER, beside=[each.name for each in specs]))
    deploy(connection, specs)
    file = io.BytesIO()
    Image.fromarray(PIXELS).save(file, "PNG")
    wait_for_jobs(Repository(connection, "images").write([PutFile("/a.png", file.getvalue())]))
    near = {"id": PICTURE_ID, "distance": 0.5, "sources": ["a.png"]}
    put(connection, wait_for_jobs, **{"mine.png": [{**answer("a" * 64, "mine.png"), "neighbors": [near]}]})
    found = trace(connection, "mine.png")
    (origin,) = found.neighbour.origins
    assert (origin.features.path, origin.features.state) == (computed, "processed")
    assert origin.partition is not None
    assert (origin.partition.path, origin.partition.state) == (dealt, "processed")
    assert as_data(found)["neighbour"]["origins"][0]["partition"]["path"] == dealt
    assert trace_page.page(found).count(">partition</") == 2  # in the drawing and in the table


def writes(path: str) -> str:
    """A script that writes a file of the output."""
    return f"mkdir -p /pfs/out{path.rpartition('/')[0]} && echo vector > /pfs/out{path}"


def scripted(name: str, repo: str, script: str, beside: Sequence[str] = ()) -> PipelineSpec:
    """A pipeline of a shell script for each top-level entry of a repo, with all of others beside it."""
    document = shell_spec(name, repo, script)
    leaves = [document["input"], *({"pfs": {"name": each, "repo": each, "glob": "/"}} for each in beside)]
    return PipelineSpec(name, Path(f"{name}.json"), {**document, "input": {"cross": leaves}} if beside else document)


def test_the_query_is_chosen_by_any_of_its_names(sheets: Connection, wait_for_jobs: WaitForJobs) -> None:
    several = [
        answer("a1b2" + "0" * 60, "blue/z.png"),
        answer("c3d4" + "0" * 60, "blue/b.png", "blue/sub/c.png"),
        answer("c3d5" + "0" * 60, "blue/other/c.png"),
    ]
    put(sheets, wait_for_jobs, blue=several)
    chosen = {
        query: trace(sheets, "blue", query).query.id[:4] for query in ("", "z.png", "blue/z.png", "sub/c.png", "c3d5")
    }
    assert chosen == {"": "c3d4", "z.png": "a1b2", "blue/z.png": "a1b2", "sub/c.png": "c3d4", "c3d5": "c3d5"}
    assert trace(sheets, "blue/", "z.png").entry == "blue"
    with pytest.raises(
        LookalikeError, match=r"c\.png is the name of 2 queries of blue: name one of blue/b\.png, blue/"
    ):
        trace(sheets, "blue", "c.png")
    with pytest.raises(LookalikeError, match="blue has no query c3d: it has"):
        trace(sheets, "blue", "c3d")


TILES: dict[str, tuple[list[dict[str, Any] | str], int, str]] = {
    "few": (
        [answer("a" * 64, "x")],
        4,
        "has 3 neighbours, so there is none of rank 4: `lookalike deploy --set K=4`",
    ),
    "small": ([answer("a" * 64, "x", near=2)], 3, "x has 2 neighbours, .* of rank 3: the library has no more"),
    "negative": ([answer("a" * 64, "x", near=1)], -1, "has 1 neighbour, .* of rank -1: ranks begin at 1"),
    "empty": ([answer("a" * 64, "x", near=0)], 1, "empty has no neighbours: the library was empty"),
    "bare": ([], 1, "bare has no pictures to search for: `lookalike results bare`"),
    "text": (["not JSON"], 1, "the answers of text were not written by lookalike's render"),
    "odd": (['{"query": 1}'], 1, "the answers of odd were not written by lookalike's render"),
}


def test_a_tile_that_is_not_there(sheets: Connection, wait_for_jobs: WaitForJobs) -> None:
    put(sheets, wait_for_jobs, **{entry: answers for entry, (answers, _, _) in TILES.items()})
    for entry, (_, rank, reason) in TILES.items():
        with pytest.raises(LookalikeError, match=reason):
            trace(sheets, entry, rank=rank)


def test_a_library_without_answers(sheets: Connection) -> None:
    with pytest.raises(LookalikeError, match=r"no result sheet for x\.png, nor for any other query"):
        trace(sheets, "x.png")


def test_long_texts_keep_both_ends() -> None:
    assert shortened("short", 5) == "short"
    assert shortened("a-very-long-name.png", 10) == "a-ve…e.png"
    assert len(shortened("x" * 99, 10)) == 10


def test_the_facts_of_a_file_are_told_as_far_as_they_are_known() -> None:
    step = TraceStep("preprocess", "")
    known = PictureOrigin("a.jpg", SourceFile("images", ""), step, step, width=1200, height=800, format="JPEG")
    assert trace_text.facts(known) == "JPEG, 1,200 × 800 pixels"
    told = replace(
        known, bytes=1, taken="2019-08-04T16:30:12", camera="X-T5", lens="XF35", latitude=1.5, longitude=-2.0
    )
    assert trace_text.facts(told) == (
        "JPEG, 1,200 × 800 pixels, 1 byte, taken 2019-08-04 16:30:12, X-T5 with XF35, 1.50000° N, 2.00000° W"
    )
