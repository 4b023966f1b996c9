"""The glob dialect: examples, and the recorded answers of Pachyderm's own library."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from speclang import glob_machine, globs, paths
from speclang.glob_tokens import tokenise
from speclang.globs import Glob, GlobError

RECORDED = json.loads(Path(__file__).with_name("ohmyglob.json").read_text())
COMPILED = [entry for entry in RECORDED["patterns"] if len(entry) > 1]
REFUSED = [entry[0] for entry in RECORDED["patterns"] if len(entry) == 1]

EMPTY_LAST_ROUND = {"/*(!(a))", "/+(!(a)|b)", "/*(*(a))", "/,+(?(b|c)((?)|ab|))a.", "/+(*(a|b))(a|b)"}
"""Patterns with a group within a repeated one that can end with an empty round. In Pachyderm that round empties the
captures of the inner groups, here they stay (docs/differences.md)."""

LONG = ["/" + 60 * "a", "/" + 30 * "ab", 20 * "/a", "/" + 50 * "a" + "b", "/" + 20 * "abc", 15 * "/a.b"]


@pytest.mark.parametrize(
    ("pattern", "matches", "refuses"),
    [
        ("/", ["/", ""], ["/a"]),
        ("", ["/"], ["/a"]),
        ("*", ["/a", "/a b"], ["/", "", "/a/b"]),
        ("/*", ["/a"], ["/", "/a/b"]),
        ("/**", ["/a", "/a/b"], ["/", ""]),
        ("/**.txt", ["/a.txt", "/a/b/c.txt", "/.txt"], ["/a.txt/b"]),
        ("/**file1?", ["/file10", "/dir/file12"], ["/file1", "/file1/"]),
        ("dir/*/", ["/dir/a"], ["/dir", "/dir/a/b"]),
        ("/?", ["/a"], ["/ab", "/"]),
        ("/a?c", ["/abc"], ["/a/c", "/ac"]),
        ("/[a-c]x", ["/ax", "/cx"], ["/dx", "/-x"]),
        ("/[!a-c]x", ["/dx"], ["/ax"]),
        ("/[^a]x", ["/bx"], ["/ax"]),
        ("/a[!b]c", ["/a/c", "/axc"], ["/abc"]),
        ("/[a-]", ["/a", "/-"], ["/b"]),
        ("/[[:digit:]x]*", ["/1a", "/x"], ["/a1"]),
        ("/[![:digit:]]*", ["/a1"], ["/1a"]),
        ("/{a,b*,c/d}", ["/a", "/bxx", "/c/d"], ["/c", "/ax"]),
        ("/{,x}a", ["/a", "/xa"], ["/ya"]),
        ("/a.b", ["/a.b"], ["/axb"]),
        ("/(a|b)", ["/a", "/b"], ["/ab", "/"]),
        ("/x?(a|b)", ["/x", "/xa"], ["/xab"]),
        ("/x*(a|b)", ["/x", "/xabab"], ["/xc"]),
        ("/x+(a|b)", ["/xa", "/xab"], ["/x"]),
        ("/!(a|b)", ["/ab", "/c", "/aa"], ["/a", "/b", "/c/d"]),
        ("/!(**)", [], ["/a", "/a/b", "/"]),
        ("/*.!(js)", ["/a.css"], ["/a.js"]),
        ("/**(b)", ["/b", "/abb", "/a"], ["/a/b"]),
        ("//a/./b//", ["/a/b"], ["/a"]),
    ],
)
def test_examples(pattern: str, matches: list[str], refuses: list[str]) -> None:
    compiled = Glob(pattern)
    assert [path for path in matches if compiled.match(path) is None] == []
    assert [path for path in refuses if compiled.match(path) is not None] == []


@pytest.mark.parametrize(
    ("pattern", "path", "captures"),
    [
        ("/(*)-(*).txt", "/a-b.txt", ("a", "b")),
        ("/!(a)", "/bcd", ("bcd",)),
        ("/plain", "/plain", ()),
        ("/+(*(a)b|c)*", "/aabcab-", ("aabcab", "a")),
        ("/*-@(*)-*-(*)", "/a-b--c-d-e", ("c", "e")),
        ("/(*)a(*)a(*)a(*)", "/-a-aaa-", ("-a-", "", "", "-")),
        ("/x*(y)z", "/xz", ("",)),
        (r"/+(\*|[[:digit:]])", "/1*", ("1*",)),
    ],
)
def test_captures_that_are_not_recorded(pattern: str, path: str, captures: tuple[str, ...]) -> None:
    assert Glob(pattern).match(path) == (path, *captures)


@pytest.mark.parametrize(
    ("pattern", "prefix", "literal", "depth"),
    [
        ("/a/b", "/a/b", True, 2),
        ("/", "/", True, 1),
        ("/a/*", "/a/", False, 2),
        ("/li[bc]/*", "/li", False, 2),
        ("/a/[!b]", "/a/", False, None),
        ("/**", "/", False, None),
        (r"/a\*/b?", "/a*/b", False, 2),
        (r"/a\*", "/a*", True, 1),
        ("/{a,b}/!(c)", "/", False, 2),
        ("/{a,b/c}", "/", False, None),
    ],
)
def test_what_bounds_the_search(pattern: str, prefix: str, literal: bool, depth: int | None) -> None:
    compiled = Glob(pattern)
    assert (compiled.literal_prefix, compiled.literal, compiled.depth) == (prefix, literal, depth)


@pytest.mark.parametrize(
    "pattern",
    [
        "/+(*)x", "/*(*(a))x", "/+(a|a)x", "/+(a|aa)x", "/*(+(a)|*)!(x)x", "/*(!(a*b)c)x", "/!(!(!(a*)b*)c*)*d",
        "/**a**a**a**a**a**b", "/*a*a*a*a*a*a*a*b", "/{a,}" * 30 + "b", "/" + "?(a)" * 40 + "x", "/**(a|{a,a*})*x",
        "/" + 40 * "+(" + "a" + 40 * ")" + "x",
    ],
)  # fmt: skip
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    """A regular expression alone would try each of the exponentially many ways to match these."""
    assert Glob(pattern).match("/" + 200 * "a") is None


@pytest.mark.parametrize("way", ["glob", "machine"])
def test_pachyderms_library_matches_and_captures_the_same(way: str) -> None:
    """Whether a regular expression or the machine does it."""
    differ = set()
    for pattern, matches, others in COMPILED:
        match = Glob(pattern).match if way == "glob" else _machine(pattern)
        for path in {*matches, *others.split(), *RECORDED["common"].split()}:
            found, expected = match(path), matches.get(path)
            assert (found is None) == (expected is None), (pattern, path)
            if found is not None and list(found[1:]) != expected:
                differ.add(pattern)
    assert differ == EMPTY_LAST_ROUND


def _machine(pattern: str) -> Callable[[str], tuple[str, ...] | None]:
    machine = glob_machine.assemble(tokenise(pattern))

    def match(path: str) -> tuple[str, ...] | None:
        found = machine.match(path)
        return None if found is None else (path, *found)

    return match


@pytest.mark.parametrize("pattern", [*REFUSED, "/[a\\", "/+([z-a])", "/" + 51 * "!(" + 51 * ")"])
def test_malformed_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(GlobError, match="malformed"):
        Glob(pattern)


def test_every_match_is_within_the_bounds_of_the_search() -> None:
    for pattern, matches, others in COMPILED:
        compiled = Glob(pattern)
        for path in (*matches, *others.split()):
            assert compiled.matches(path) == compiled.matches(path + "/") == (path in matches)
        for path, captures in matches.items():
            assert path.startswith(compiled.literal_prefix)
            assert compiled.depth in (None, path.count("/"))
            assert not compiled.literal or path == compiled.literal_prefix
            assert compiled.groups == len(captures)


def test_both_ways_of_matching_agree_on_long_paths() -> None:
    for pattern, *_ in COMPILED:
        if pattern not in EMPTY_LAST_ROUND:
            compiled, machine = Glob(pattern), _machine(pattern)
            for path in LONG:
                assert compiled.match(path) == machine(path), (pattern, path)


def test_templates_are_filled_as_by_pachyderms_library() -> None:
    pattern, path, filled = RECORDED["templates"]
    captures = Glob(pattern).match(path)
    assert captures is not None
    for template, text in filled.items():
        # null: the library panics at numbers that begin with 0 or are very long.
        assert globs.substitute(template, captures) == (text or "")


@pytest.mark.parametrize(
    ("template", "numbers"),
    [
        ("", []),
        ("$1", [1]),
        ("a$2${3}", [2, 3]),
        ("$$1", []),
        ("$x ${", []),
        ("$01", [1]),
        ("$" + 5000 * "9", [999_999_999]),
    ],
)
def test_the_groups_that_a_template_names(template: str, numbers: list[int]) -> None:
    assert list(globs.references(template)) == numbers


@pytest.mark.parametrize(("pattern", "unclosed"), [("/(a)", 0), ("/(a", 1), ("/{a,b", 1), ("/(a|{b", 2), ("/a)", 0)])
def test_groups_that_are_left_open(pattern: str, unclosed: int) -> None:
    assert Glob(pattern).unclosed == unclosed


@pytest.mark.parametrize(
    ("path", "clean"),
    [("", "/"), (".", "/"), ("/", "/"), ("//", "/"), ("abc", "/abc"), ("abc/", "/abc"), ("//a//b/./c/", "/a/b/c")],
)
def test_the_clean_form_of_a_path(path: str, clean: str) -> None:
    assert paths.clean(path) == clean
