"""Traces where much of the path is missing, and the choice of a tile; tests/e2e/test_traces.py has whole paths."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.client.connection import Connection
from pipelines.client.deployment import deploy
from pipelines.client.repository import Put, Repository
from pipelines.errors import LookalikeError
from pipelines.explaining.tracing import pages
from pipelines.explaining.tracing.traces import as_data
from pipelines.explaining.tracing.walk import trace
from pipelines.explaining.tracing.words import shortened
from pipelines.specifications.reading import Spec
from stages import entrypaths
from tests.pipelines.conftest import WaitForJobs

pytestmark = pytest.mark.late_alone


def answer(query: str, *names: str, k: int = 3, near: int = 3) -> dict[str, Any]:
    neighbours = [{"id": f"{at}" * 64, "distance": at / 8, "sources": [f"<b>{at}.png"]} for at in range(near)]
    facts = {"k": k, "metric": "euclidean", "backbone": "small at 96 px", "model": "f" * 64}
    return {"query": query, "sources": list(names), "neighbors": neighbours, **facts}


def put(connection: Connection, wait: WaitForJobs, entry: str, *answers: dict[str, Any] | str) -> None:
    """Puts a query that `sheets` makes the answers of its entry."""
    text = "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in answers)
    wait(Repository(connection, "queries").write([Put(f"/{entry}", text.encode())]))


def test_a_path_of_which_only_the_end_is_there(sheets: Connection, wait_for_jobs: WaitForJobs) -> None:
    put(sheets, wait_for_jobs, "mine.png", answer("a" * 64, "mine.png"))
    found = trace(sheets, "mine.png", rank=2)
    assert (found.neighbour.id, found.distance, found.render.state) == ("1" * 64, 0.125, "processed")
    assert found.render.process is not None
    assert [each.holds for each in found.checks] == [False, True]
    gaps = "\n".join(found.gaps)
    for gap in ("search: it has no table", "index: /1/index.json is not there", "models: no backbone is there"):
        assert gap in gaps
    page = pages.page(found)
    assert "&lt;b&gt;1.png" in page
    assert "<b>" not in page
    assert "no preview" in page
    assert json.dumps(as_data(found))


@pytest.mark.parametrize("directory", ["queries", "queries/09"])
def test_a_vector_is_found_in_its_bucket_or_where_earlier_versions_put_it(
    directory: str, sheets: Connection, wait_for_jobs: WaitForJobs, tmp_path: Path
) -> None:
    script = f"mkdir -p /pfs/out/{directory}/mine.png && echo vector > /pfs/out/{directory}/mine.png/images.parquet"
    deploy(sheets, [scripted("features-queries", "queries", script, tmp_path)])
    put(sheets, wait_for_jobs, "mine.png", answer("a" * 64, "mine.png"))
    (origin,) = trace(sheets, "mine.png").query.origins
    assert origin.features.path == f"/{directory}/mine.png/images.parquet"
    assert entrypaths.directory("mine.png") == "queries/09/mine.png"


def scripted(name: str, repo: str, script: str, directory: Path) -> Spec:
    """A pipeline of a shell script for each top-level entry of a repo."""
    document = {
        "pipeline": {"name": name},
        "input": {"pfs": {"name": repo, "repo": repo, "branch": "master", "glob": "/*"}},
        "transform": {"image": "shell:1", "cmd": ["sh", "-e"], "stdin": [script]},
    }
    return Spec(name, directory / f"{name}.json", document)


def test_the_query_is_chosen_by_any_of_its_names(sheets: Connection, wait_for_jobs: WaitForJobs) -> None:
    several = [
        answer("a1b2" + "0" * 60, "blue/z.png"),
        answer("c3d4" + "0" * 60, "blue/b.png", "blue/sub/c.png"),
        answer("c3d5" + "0" * 60, "blue/other/c.png"),
    ]
    put(sheets, wait_for_jobs, "blue", *several)
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


@pytest.mark.parametrize(
    ("answers", "rank", "reason"),
    [
        (
            [answer("a" * 64, "x")],
            4,
            r"x has 3 neighbours, so there is none of rank 4: `lookalike deploy --set K=4` keeps",
        ),
        ([answer("a" * 64, "x", near=2)], 3, "x has 2 neighbours, so there is none of rank 3: the library has no more"),
        ([answer("a" * 64, "x", near=1)], -1, "x has 1 neighbour, so there is none of rank -1: ranks begin at 1"),
        ([answer("a" * 64, "x", near=0)], 1, "x has no neighbours: the library was empty"),
        ([], 1, "x has no pictures to search for: `lookalike results x`"),
        (["not JSON"], 1, "the answers of x were not written by lookalike's render"),
        (['{"query": 1}'], 1, "the answers of x were not written by lookalike's render"),
    ],
)
def test_a_tile_that_is_not_there(
    sheets: Connection, wait_for_jobs: WaitForJobs, answers: list[Any], rank: int, reason: str
) -> None:
    put(sheets, wait_for_jobs, "x", *answers)
    with pytest.raises(LookalikeError, match=reason):
        trace(sheets, "x", rank=rank)


def test_a_library_without_answers(sheets: Connection) -> None:
    with pytest.raises(LookalikeError, match=r"no result sheet for x\.png, nor for any other query"):
        trace(sheets, "x.png")


def test_long_texts_keep_both_ends() -> None:
    assert shortened("short", 5) == "short"
    assert shortened("a-very-long-name.png", 10) == "a-ve…e.png"
    assert len(shortened("x" * 99, 10)) == 10
