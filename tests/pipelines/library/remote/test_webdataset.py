"""Webdataset's shards: samples, what they state, and what is damaged."""

import json
from pathlib import Path

import pytest

from pipelines.errors import LookalikeError
from pipelines.library.remote import picture_lists
from pipelines.library.remote.picture_lists import ListProblem
from pipelines.library.remote.picture_urls import PictureUrl, is_remote, is_shard
from tests.small_archives import tarred

SAMPLES = {
    "0/a.jpg": b"picture a",
    "0/a.json": json.dumps({"width_mm": 7, "author": {"name": "Ada"}}).encode(),
    "0/a.txt": b"a cat\n",
    "0/a.cls": b"3\n",
    "0/b.seg.png": b"mask",
    "0/b.png": b"picture b",
    "0/b.cls": b"dog",
    "0/c.txt": b"no picture",
    "d.webp": b"picture d",
}


def shard(tmp_path: Path, members: dict[str, bytes] = SAMPLES, name: str = "train-000.tar") -> Path:
    path = tmp_path / name
    path.write_bytes(tarred(members))
    return path


def test_samples_are_pictures_with_attributes_and_labels(tmp_path: Path) -> None:
    path = shard(tmp_path)
    assert is_shard(str(path)) and is_remote(str(path))
    facts = {"width_mm": 7, "author_name": "Ada", "caption": "a cat"}
    url = "https://example.org/sets/train%2D000.tar?signed=1"
    for argument in (str(path), url):
        assert is_shard(argument)
        assert list(picture_lists.of_shard(argument, path)) == [
            PictureUrl(f"{argument}#0/a.jpg", "train-000/0/a.jpg", facts, b"picture a", "3"),
            PictureUrl(f"{argument}#0/b.seg.png", "train-000/0/b.seg.png", {}, b"mask", "dog"),
            PictureUrl(f"{argument}#0/b.png", "train-000/0/b.png", {}, b"picture b", "dog"),
            PictureUrl(f"{argument}#d.webp", "train-000/d.webp", {}, b"picture d"),
        ]


@pytest.mark.parametrize(
    "members", [{"a.jpg": b"a", "b.jpg": b"b"}, {"a.jpg": b"a", "readme.txt": b"b"}, {"a.txt": b"", "a.json": b""}]
)
def test_other_tars_stay_archives(members: dict[str, bytes], tmp_path: Path) -> None:
    assert not is_shard(str(shard(tmp_path, members)))
    assert not is_shard(str(tmp_path / "missing.tar"))
    (tmp_path / "broken.tar").write_bytes(b"no tar")
    assert not is_shard(str(tmp_path / "broken.tar"))


def test_facts_that_cannot_be_read_are_named_and_the_picture_stays(tmp_path: Path) -> None:
    path = shard(tmp_path, {"a.jpg": b"a", "a.json": b"[1]", "b.jpg": b"b", "b.txt": b"\xff"})
    found = list(picture_lists.of_shard("s.tar", path))
    problems = [each for each in found if isinstance(each, ListProblem)]
    assert [each.line for each in problems] == ["s.tar, a.json", "s.tar, b.txt"]
    assert [each.content for each in found if isinstance(each, PictureUrl)] == [b"a", b"b"]


def test_a_shard_that_is_cut_off_gives_what_is_whole(tmp_path: Path) -> None:
    path = shard(tmp_path, {f"{number}.jpg": bytes(2000) for number in range(10)})
    path.write_bytes(path.read_bytes()[:9000])
    *found, last = picture_lists.of_shard("s.tar", path)
    assert 2 <= len(found) <= 4 and isinstance(last, ListProblem) and "cut off" in last.reason
    path.write_bytes(b"no tar" * 200)
    with pytest.raises(LookalikeError, match="is not a tar"):
        list(picture_lists.of_shard("s.tar", path))
