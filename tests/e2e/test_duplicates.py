"""Copies in files, blocks and archives, from pictures to the list that removes them, with the shipped pipelines."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from pipelines.library import ingest, pictures
from pipelines.specifications import optional, reading
from stages.tables.nearest import read_nearest
from tests.e2e.world import MakeWorld, Paint, World, with_environment
from tests.packing import zipped

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
    others = {"big/5.png": paint(5, size=192), "7.jpg": paint(7, kind="JPEG"), "more.zip": zipped({"9.png": paint(9)})}
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


def scene(seed: int) -> Image.Image:
    """Soft patches in the frequencies of a photograph."""
    patches = np.random.default_rng(seed).integers(0, 256, (12, 12, 3), np.uint8)
    return Image.fromarray(patches).resize((384, 384), Image.Resampling.BICUBIC)


def saved(picture: Image.Image, kind: str = "PNG", quality: int = 75) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, quality=quality)
    return file.getvalue()


def nearest(world: World, scratch: Path) -> list[float]:
    """All distances between near pictures, as neighbours keeps them."""
    found = []
    for path, content in world.content("neighbours").items():
        if path.startswith("/nearest/"):
            (scratch / "nearest.npy").write_bytes(content)
            found += read_nearest(scratch / "nearest.npy")["distance"].ravel().tolist()
    return found


def test_near_copies_are_those_on_which_vectors_and_hashes_agree(
    make_world: MakeWorld, backbones: dict[str, Path], tmp_path: Path
) -> None:
    world = make_world("two-looks")
    world.deploy()
    world.push(backbones["first"])
    original, other = scene(1), scene(2)
    copies = {
        "half.png": saved(original.resize((192, 192), Image.Resampling.LANCZOS)),
        "brighter.png": saved(ImageEnhance.Brightness(original).enhance(1.1)),
        "again.jpg": saved(original, "JPEG", quality=40),
    }
    parts = {f"part {left}.png": saved(other.crop((left, 0, left + 256, 256))) for left in (0, 64, 128)}
    world.settle(world.add({"original.png": saved(original), **copies, **parts}))
    (found,) = groups(world).items()
    assert {found[0], *found[1]} == {"original.png", *copies}
    assert max(nearest(world, tmp_path)) < 0.7  # by distance alone, all seven would be copies
    lines = (world.scratch / "results" / "duplicates" / "groups.jsonl").read_text().splitlines()
    (pictures,) = [json.loads(line)["pictures"] for line in lines]
    assert all(each["bits"] <= 12 and each["distance"] <= 0.7 for each in pictures)
    near = next(each for each in optional.needed(reading.HERE, "duplicates") if each.name == "neighbours")
    world.deploy([with_environment(near, HASH_BITS="64")])
    world.settle(world.newest("neighbours"))
    (found,) = groups(world).items()
    assert {found[0], *found[1]} == {"original.png", *copies, *parts}
