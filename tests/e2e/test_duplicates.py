"""Copies in files, blocks and archives, from pictures to the list that removes them, with the shipped pipelines."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageEnhance

from pipelines.library import ingest, picture_sources
from tests.e2e.world import MakeWorld, Paint, World
from tests.small_archives import zipped
from tests.stages.raw_files import dng
from tests.stages.scenes import lain, saved, scene

pytestmark = pytest.mark.timeout(600)


def groups(world: World, *options: str, file: str = "groups.jsonl") -> dict[str, list[str]]:
    """The other files of each group by the kept one. Asks for them with the command."""
    world.lookalike("duplicates", *options)
    lines = (world.scratch / "results" / "duplicates" / file).read_text().splitlines()
    return {group["keep"]: sorted(others(group)) for group in map(json.loads, lines)}


def others(group: dict[str, Any]) -> list[str]:
    return [source["path"] for each in group["pictures"] for source in each["sources"] if not source["keep"]]


def test_exact_copies_are_found_kept_removed_and_restored(
    make_world: MakeWorld, backbones: dict[str, Path], paint: Paint, tmp_path: Path
) -> None:
    world = make_world("duplicates")
    world.deploy()
    world.push(backbones["first"])
    for name in ("0.png", "1.png", "2.png", "3.png", "5.png", "7.png", "9.png"):
        (tmp_path / "set").mkdir(exist_ok=True)
        (tmp_path / "set" / name).write_bytes(paint(int(name[0])))
    (tmp_path / "set" / "copy\nof 3.png").write_bytes(paint(3))
    found = picture_sources.find([tmp_path / "set"])
    world.settle(ingest.add(world.connection, found.sources, most_single=0).commit)
    added = {
        "big/5.png": paint(5, size=192),  # equal in the squares that are compared, and not exact
        "7.bmp": paint(7, kind="BMP"),
        "7.jpg": paint(7, kind="JPEG"),
        "more.zip": zipped({"9.png": paint(9)}),
    }
    world.settle(world.add(added))
    expected = [{"set/7.png", "7.bmp"}, {"set/3.png", "set/copy\nof 3.png"}, {"set/9.png", "more.zip/9.png"}]
    before = groups(world)
    assert sorted(map(sorted, ({kept, *rest} for kept, rest in before.items()))) == sorted(map(sorted, expected))
    assert groups(world, "--across", "set", "7.bmp") == {"set/7.png": ["7.bmp"]}

    assert groups(world) == before
    hashes = [world.hashes(repo) for repo in ("neighbours", "duplicates")]
    said = world.lookalike("remove", "--from", "results/duplicates/remove.txt", "--yes", fails=True)
    assert "removed 2 files from images" in said
    assert "more.zip/9.png: inside more.zip, which can only be removed as a whole" in said
    assert "to take this back: lookalike undo" in said
    world.lookalike("duplicates", "-o", "left")
    assert len((world.scratch / "left" / "groups.jsonl").read_text().splitlines()) == 1
    world.lookalike("undo", "--yes")
    assert groups(world) == before
    assert [world.hashes(repo) for repo in ("neighbours", "duplicates")] == hashes


def test_near_copies_are_those_that_lie_on_each_other(
    make_world: MakeWorld, backbones: dict[str, Path], tmp_path: Path
) -> None:
    world = make_world("registered")
    world.deploy()
    world.push(backbones["first"])
    original, other, burst = scene(1, (400, 300)), scene(2, (400, 300)), scene(3, (400, 300))
    turned = {f"turned {turn}.png": saved(lain(original, turn)) for turn in (1, 6)}
    copies = {
        "half.png": saved(original.resize((200, 150), Image.Resampling.LANCZOS)),
        "again.jpg": saved(original, "JPEG", quality=40),
        "brighter.jpg": saved(ImageEnhance.Brightness(original).enhance(1.1), "JPEG"),
    }
    raw = {"DSC1.DNG": dng(saved(other.resize((200, 150)), "JPEG"), 1), "DSC1.JPG": saved(other, "JPEG")}
    parts = {f"part {left}.png": saved(other.crop((left, 0, left + 256, 256))) for left in (64, 128)}
    shots = {f"shot {number}.jpg": saved(_with_noise(burst, number), "JPEG") for number in range(3)}
    world.settle(world.add({"original.png": saved(original), **copies, **turned, **raw, **parts, **shots}))
    assert groups(world) == {}
    found = groups(world, "--near", file="near.jsonl")
    assert found == {"original.png": sorted({**copies, **turned}), "DSC1.DNG": ["DSC1.JPG"]}
    assert (world.scratch / "results/duplicates/remove.txt").read_text() == ""


def _with_noise(picture: Image.Image, seed: int) -> Image.Image:
    """As a sensor sees a scene another time."""
    noise = Image.effect_noise(picture.size, 20 + seed).convert("RGB")
    return Image.blend(picture, noise, 0.03)
