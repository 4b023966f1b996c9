"""Pipelines that run by the clock: each tick adds a datum, or replaces the one before. No test waits for a tick."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.example import Example


@pytest.fixture
def secret(example: Example, tmp_path: Path) -> Iterator[str]:
    """The name of a secret that holds the path of the database."""
    (tmp_path / "database").write_text('{"tea": 1}')
    name = f"{example.project}-secret"
    example.client.create_secret(name, {"source": str(tmp_path / "database")})
    yield name
    example.client.delete_secret(name)


def test_every_tick_adds_a_datum(example: Example, secret: str, tmp_path: Path) -> None:
    example.create("query.yaml", words={"SECRET": secret, "OVERWRITE": "false"})
    assert example.went("query") == ("JOB_SUCCESS", {})
    assert example.went("query", example.tick("query")) == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    (first,) = example.files("query")
    (tmp_path / "database").write_text('{"tea": 2}')
    assert example.went("query", example.tick("query")) == ("JOB_SUCCESS", {"processed": 1, "skipped": 1, "total": 2})
    answers = example.files("query")
    assert [json.loads(each)["tea"] for each in answers.values()] == [1, 2]
    assert min(answers) == first
    assert {f"{tick}.json" for tick in example.files("query_tick")} == set(answers)


def test_with_overwrite_only_the_newest_tick_remains(example: Example, secret: str, tmp_path: Path) -> None:
    example.create("query.yaml", words={"SECRET": secret, "OVERWRITE": "true"})
    for tea in (1, 2):
        (tmp_path / "database").write_text(f'{{"tea": {tea}}}')
        assert example.went("query", example.tick("query")) == ("JOB_SUCCESS", {"processed": 1, "total": 1})
        (answer,) = example.files("query").values()
        assert json.loads(answer)["tea"] == tea
        assert len(example.files("query_tick")) == 1


def test_a_cross_with_ticks_is_processed_at_each_tick(example: Example, tmp_path: Path) -> None:
    example.repo("urls")
    example.put("urls", {"/urls/news": "page", "/urls/gone": "nowhere"})
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "text").write_text("old")
    example.create("scraper.json", words={"SITE": str(tmp_path)})
    assert example.went("scraper") == ("JOB_SUCCESS", {})
    assert example.went("scraper", example.tick("scraper")) == ("JOB_SUCCESS", {"processed": 2, "total": 2})
    (tmp_path / "page" / "text").write_text("new")
    changed = example.put("urls", {"/urls/news": "page page"})
    assert example.went("scraper", changed) == ("JOB_SUCCESS", {"processed": 1, "skipped": 1, "total": 2})
    assert example.files("scraper") == {"/page/text": "new"}
    (tmp_path / "page" / "text").write_text("newer")
    assert example.went("scraper", example.tick("scraper")) == ("JOB_SUCCESS", {"processed": 2, "total": 2})
    assert example.files("scraper") == {"/page/text": "newer"}
