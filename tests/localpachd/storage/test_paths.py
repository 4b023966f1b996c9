"""Valid paths, their clean form, and the bounds of ranges."""

import pytest
from hypothesis import given, strategies as st

from localpachd.errors import PachError
from localpachd.storage import paths


@pytest.mark.parametrize("path", ["/a", "a b/c", "/it's #1.jpg", "..a/b..", "/a\\b", "/%2F~"])
def test_ordinary_names_are_allowed(path: str) -> None:
    paths.validate(path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/caf\u00e9", "path (/caf\u00e9) invalid: only printable ASCII characters allowed"),
        ("/a\n", "path (/a\n) invalid: only printable ASCII characters allowed"),
        ("", "path () invalid: only printable ASCII characters allowed"),
        ("/a+b*", "path (/a+b*) invalid: globbing character (+) not allowed in path"),
        ("/a/../b", "path (/a/../b) invalid: relative file paths are not allowed"),
        ("./a", "path (./a) invalid: relative file paths are not allowed"),
    ],
)
def test_invalid_paths_are_refused_with_the_texts_of_pfs(path: str, message: str) -> None:
    with pytest.raises(PachError) as caught:
        paths.validate(path)
    assert str(caught.value) == message


def test_paths_are_as_long_as_those_of_linux() -> None:
    paths.validate("/a" * 2048)
    with pytest.raises(PachError) as caught:
        paths.validate("/a" * 50_000)
    assert str(caught.value) == f"path ({'/a' * 50}…) invalid: longer than 4096 characters"


@pytest.mark.parametrize("bad", list("*?[]{}!()@+^"))
def test_every_globbing_character_is_refused(bad: str) -> None:
    with pytest.raises(PachError, match="globbing character"):
        paths.validate(f"/a{bad}b")


def test_the_forms_of_a_directory() -> None:
    assert [paths.directory(path) for path in ("/", "/a", "/a/")] == ["/", "/a/", "/a/"]
    assert [paths.bare(path) for path in ("/", "/a", "/a/")] == ["/", "/a", "/a"]


@given(st.text(min_size=1), st.text(), st.text())
def test_after_bounds_exactly_the_strings_that_start_so(prefix: str, tail: str, other: str) -> None:
    bound = paths.after(prefix)
    for candidate in (prefix + tail, other):
        below = bound is None or candidate.encode() < bound.encode()
        assert (candidate.encode() >= prefix.encode() and below) == candidate.startswith(prefix)


def test_nothing_comes_after_the_last_character() -> None:
    assert paths.after("") is None
    assert paths.after("\U0010ffff") is None
    assert paths.after("a\U0010ffff") == "b"
