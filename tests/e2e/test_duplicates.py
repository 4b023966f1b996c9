"""Copies in files, blocks and archives, from pictures to the list that removes them, with the shipped pipelines."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pipelines.library import ingest, pictures
from tests.e2e.world import MakeWorld, Paint, World

pytestmark = pytest.mark.timeout(600)

DISTANCE = "0.02"
"""Between a picture and its copies of another size or kind, in the vectors of the small backbone."""


def groups(world: World, *options: str) -> dict[str, list[str]]:
    """The other files of each group by the kept one. Asks for them with the command."""
    world.lookalike("duplicates", *options)
    lines = (world.scratch / "results" / "duplicates" / "groups.jsonl").read_text().splitlines()
    return {group["keep"]: sorted(removed(group)) for group in map(json.loads, lines)}


def removed(group: dict[str, Any]) -> list[str]:
    return [source["path"] for each in group["pictures"] for source in each["sources"] if not source["keep"]]


def zipped(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


def test_copies_are_found_kept_and_removed(
    make_world: MakeWorld, backbones: dict[str, Path], paint: Paint, tmp_path: Path
) -> None:
    world = make_world("duplicates")
    world.deploy()
    world.push(backbones["first"])
    for name in ("0.png", "1.png", "2.png", "3.png", "5.png", "7.png", "9.png"):
        (tmp_path / "set").mkdir(exist_ok=True)
        (tmp_path / "set" / name).write_bytes(paint(int(name[0])))
    (tmp_path / "set" / "copy\nof 3.png").write_bytes(paint(3))
    found = pictures.find([tmp_path / "set"])
    world.settle(ingest.add(world.connection, found.sources, most_single=0).commit)
    others = {"big/5.png": paint(5, size=192), "7.jpg": paint(7, kind="JPEG"), "more.zip": zipped("9.png", paint(9))}
    world.settle(world.add(others))
    expected = {
        "big/5.png": ["set/5.png"],
        "set/7.png": ["7.jpg"],
        "set/3.png": ["set/copy\nof 3.png"],
        "set/9.png": ["more.zip/9.png"],
    }
    assert groups(world, "--distance", DISTANCE) == expected
    exact = {kept: others for kept, others in expected.items() if kept in ("set/3.png", "set/9.png")}
    assert groups(world, "--distance", "0") == exact
    assert groups(world, "--distance", DISTANCE, "--across", "set", "7.jpg") == {"set/7.png": ["7.jpg"]}

    groups(world, "--distance", DISTANCE)
    before = world.content("images")
    said = world.lookalike("remove", "--from", "results/duplicates/remove.txt", fails=True)
    assert "removed 3 files from images" in said
    assert "more.zip/9.png: inside more.zip, which can only be removed as a whole" in said
    assert {path for path in before if path not in world.content("images")} == {"/7.jpg"}
    assert groups(world, "--distance", DISTANCE) == {"set/9.png": ["more.zip/9.png"]}

    groups(world)
    again = make_world("duplicates-again")
    again.deploy()
    again.settle(*again.copy(world))
    groups(again)
    for repo in ("neighbours", "duplicates"):
        assert world.hashes(repo) == again.hashes(repo) != {}
    assert (world.scratch / "results/duplicates/index.html").read_bytes() == (
        again.scratch / "results/duplicates/index.html"
    ).read_bytes()
