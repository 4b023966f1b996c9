import re

import pytest
from hypothesis import example, given, strategies as st

from stages.record import pfs_names

# Every str, including lone surrogates and control characters; troublesome ones are frequent.
TROUBLE = st.sampled_from(
    ["/", ".", "..", "%", "%41", "%2F", "\\", " ", "#", "[", "*", "\0", "\n", "é", "🐈", "\udcff", "\ud800"]
)
CHARACTER = st.one_of(TROUBLE, st.characters(exclude_categories=()))
ANY = st.one_of(
    st.lists(CHARACTER).map("".join),
    st.tuples(st.lists(CHARACTER, min_size=1, max_size=4).map("".join), st.integers(1, 400)).map(lambda p: p[0] * p[1]),
)


def is_safe_in_pfs(path: str) -> bool:
    """Pachyderm's ValidateFilename and the names that block it, written independently of the escaping."""
    components = path.split("/")
    return (
        re.fullmatch(r"[ -~]+", path) is not None
        and not set(path) & set("*?[]{}!()@+^\\")
        and all(0 < len(each) <= 255 and each not in (".", "..") for each in components)
    )


@given(ANY)
@example("")
@example("." * 300)
@example("a" * 254 + ".")
@example("a" * 254 + "..")
@example("é" * 300)
@example("\udcc3\udca9")  # two undecodable bytes that together would be a valid character
@example("\udced\udca0\udc80")  # undecodable bytes that look like an encoded surrogate
@example("//a///b//")
def test_every_name_comes_back(true: str) -> None:
    for escape in (pfs_names.escape_path, pfs_names.escape_component):
        path = escape(true)
        assert is_safe_in_pfs(path)
        assert pfs_names.unescape(path) == true


@given(ANY)
def test_a_component_is_one_entry_unless_it_is_too_long(true: str) -> None:
    components = pfs_names.escape_component(true).split("/")
    assert all(each.endswith("%") and len(each) >= 253 for each in components[:-1])


@given(ANY)
def test_escaping_never_gives_lookalikes_own_names(true: str) -> None:
    for path in (pfs_names.escape_path(true), pfs_names.escape_component(true)):
        assert true == "" or not re.match(r"%[^0-9A-F]", path)
        assert not pfs_names.is_block(path)


@given(st.binary(min_size=1, max_size=40))
def test_undecodable_file_names_are_escaped_byte_by_byte(raw: bytes) -> None:
    true = raw.decode("utf-8", "surrogateescape")
    assert pfs_names.unescape(pfs_names.escape_path(true)).encode("utf-8", "surrogateescape") == raw


@pytest.mark.parametrize(
    ("true", "path"),
    [
        ("holiday/cat.jpg", "holiday/cat.jpg"),
        ("my cat #1.jpg", "my cat #1.jpg"),
        ("größe.png", "gr%C3%B6%C3%9Fe.png"),
        ("100%.gif", "100%25.gif"),
        ("a\\b[1].jpg", "a%5Cb%5B1%5D.jpg"),
        ("...", "%2E%2E%2E"),
        (".hidden", ".hidden"),
        ("bad\udcffname", "bad%FFname"),
    ],
)
def test_examples_of_escaping(true: str, path: str) -> None:
    assert pfs_names.escape_path(true) == path


def test_slashes_stay_in_paths_and_are_escaped_in_components() -> None:
    assert pfs_names.escape_path("a/b") == "a/b"
    assert pfs_names.escape_component("a/b") == "a%2Fb"


@pytest.mark.parametrize("plain", ["100% cotton.jpg", "100%", "50%/a.jpg", "a%2fb", "größe.png", "%names"])
def test_names_put_by_hand_stay_as_they_are(plain: str) -> None:
    assert pfs_names.unescape(plain) == plain


def test_blocks_are_recognised_by_name() -> None:
    assert pfs_names.is_block(pfs_names.block_name("0123456789abcdef"))
    assert pfs_names.is_block("entry/%block-0123456789abcdef.tar")
    assert not pfs_names.is_block("block-0123456789abcdef.tar")
    assert not pfs_names.is_block("%block-0123456789abcdef.tar.gz")
    with pytest.raises(ValueError, match="16 lower-case hex"):
        pfs_names.block_name("../x")
