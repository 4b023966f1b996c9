"""Masks: their paths, and the true names in them."""

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from stages.record import block_names, masks, part_names

NAMES = st.sets(st.text(st.characters(exclude_categories=())))  # with lone surrogates, as file names have them


@given(NAMES)
def test_every_name_comes_back(names: set[str]) -> None:
    written = masks.content(names)
    assert masks.parse(written) == names
    assert masks.content(sorted(names, reverse=True)) == written


def test_a_mask_is_a_sorted_line_for_each_name() -> None:
    assert masks.content(["b/ü.jpg", "a\n.jpg", "b/ü.jpg"]) == b'"a\\n.jpg"\n"b/\\u00fc.jpg"\n'
    assert masks.parse(b'"b"\r\n\n"a"') == {"a", "b"}
    assert masks.parse(b"") == frozenset()


@pytest.mark.parametrize("wrong", [b"a.jpg", b"1", b'["a"]', b'"a', b"\xff", b"[" * 100_000])
def test_a_line_that_is_no_string_is_named(wrong: bytes) -> None:
    with pytest.raises(ValueError, match="line 2 is not a JSON string"):
        masks.parse(b'"a"\n' + wrong)


def test_a_mask_lies_in_the_bucket_of_its_blocks_parts() -> None:
    block = block_names.file_name("0110")
    path = masks.path(f"/{block}")
    source = part_names.source_name(block)
    assert path == masks.path(block) == f"/library/{part_names.directory(source)}/{source}.jsonl"
    assert masks.source_of(path) == source


def test_a_bucket_is_read_at_any_depth(tmp_path: Path) -> None:
    for name, hidden in (("0/one", ["a"]), ("f/other", ["b", "c"])):
        file = tmp_path / f"{name}.jsonl"
        file.parent.mkdir()
        file.write_bytes(masks.content(hidden))
    assert masks.read_bucket(tmp_path) == {"one": {"a"}, "other": {"b", "c"}}
    assert masks.read_bucket(tmp_path / "none") == {}
    (tmp_path / "f/other.jsonl").write_text(json.dumps({"a": 1}))
    with pytest.raises(ValueError, match="the mask other.jsonl: line 1 is not a JSON string"):
        masks.read_bucket(tmp_path)
