"""The glob dialect: examples, and a naive backtracking matcher that knows neither patterns nor regular expressions."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from localpachd.errors import InvalidArgument
from localpachd.storage import globs
from localpachd.storage.globs import Glob


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
        ("/[a!]", ["/b"], ["/a"]),
        ("/[[:digit:]x]*", ["/1a", "/x"], ["/a1"]),
        ("/[![:digit:]]*", ["/a1"], ["/1a"]),
        ("/{a,b*,c/d}", ["/a", "/bxx", "/c/d"], ["/c", "/ax"]),
        ("/{,x}a", ["/a", "/xa"], ["/ya"]),
        (r"/\*", ["/*"], ["/a"]),
        ("/a.b", ["/a.b"], ["/axb"]),
        ("/(a|b)", ["/a", "/b"], ["/ab", "/"]),
        ("/@(a|b)", ["/a", "/b"], ["/ab"]),
        ("/x?(a|b)", ["/x", "/xa"], ["/xab"]),
        ("/x*(a|b)", ["/x", "/xabab"], ["/xc"]),
        ("/x+(a|b)", ["/xa", "/xab"], ["/x"]),
        ("/!(a|b)", ["/ab", "/c", "/aa"], ["/a", "/b", "/c/d"]),
        ("/!(a)*", ["/b", "/ba"], ["/a", "/ab"]),
        ("/!(**)", [], ["/a", "/a/b", "/"]),
        ("/*.!(js)", ["/a.css"], ["/a.js"]),
        ("/(a", ["/a"], ["/(a"]),
        ("/a)b|c", ["/a)b|c"], ["/a"]),
        ("/a!b", ["/a!b"], ["/a"]),
        ("/**(b)", ["/b", "/abb", "/a"], ["/a/b"]),
    ],
)
def test_examples(pattern: str, matches: list[str], refuses: list[str]) -> None:
    compiled = Glob(pattern)
    assert [path for path in matches if compiled.match(path) is None] == []
    assert [path for path in refuses if compiled.match(path) is not None] == []


@pytest.mark.parametrize(
    "pattern", ["/[", "/[]", "/[!]", "/[a", "/[z-a]", "/^(a)", "/[a\\", "/+([z-a])", "/" + 51 * "!(" + 51 * ")"]
)
def test_malformed_patterns_are_said(pattern: str) -> None:
    with pytest.raises(InvalidArgument, match="malformed"):
        Glob(pattern)


@pytest.mark.parametrize(
    ("pattern", "path", "captures"),
    [
        ("/(*)-(*).txt", "/a-b.txt", ("a", "b")),
        ("/(a|b)*(c)", "/acc", ("a", "cc")),
        ("/x?(y)z", "/xz", ("",)),
        ("/+(a@(b)|c)", "/abc", ("abc", "b")),
        ("/!(a)", "/bcd", ("bcd",)),
        ("/{a,b}/(*)", "/b/c", ("c",)),
        ("/(*/*)/(?)", "/a/b/c", ("a/b", "c")),
        ("/*(/?(+(a|b)/*))", "/a/x", None),
        ("/plain", "/plain", ()),
    ],
)
def test_captures(pattern: str, path: str, captures: tuple[str, ...] | None) -> None:
    assert Glob(pattern).match(path) == (None if captures is None else (path, *captures))


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("", ""), ("$1", "a"), ("$2$1", "ba"), ("${1}1", "a1"), ("$1x$3", "ax"), ("$0", "/a-b"), ("$$1", "$1"),
        ("$x", "$x"), ("$", "$"), ("${1", "${1"), ("${}", "${}"), ("$01", ""), ("$99999999999", ""), ("no", "no"),
    ],
)  # fmt: skip
def test_templates(template: str, text: str) -> None:
    captures = Glob("/(*)-(*)").match("/a-b")
    assert captures is not None
    assert globs.substitute(template, captures) == text


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


@pytest.mark.parametrize(
    ("pattern", "path", "captures"),
    [
        ("/+(*(a)b|c)*", "/aabcab-", ("aabcab", "a")),
        ("/*(|a)*(a)", "/aa", ("", "aa")),
        ("/+(a|(b))", "/ba", ("ba", "b")),
        ("/*-@(*)-*-(*)", "/a-b--c-d-e", ("c", "e")),
        ("/(*)a(*)a(*)a(*)", "/-a-aaa-", ("-a-", "", "", "-")),
        ("/x*(y)z", "/xz", ("",)),
        ("/!(+(a)|b)", "/ab", ("ab", "")),
        (r"/+(\*|[[:digit:]])", "/1*", ("1*",)),
    ],
)
def test_captures_where_no_regular_expression_is_used(pattern: str, path: str, captures: tuple[str, ...]) -> None:
    assert Glob(pattern).match(path) == (path, *captures)


# The naive matcher: every way to match a part from a place, as (end, captures), in the order of preference. It is given
# a pattern's parts; the pattern that is tested is written from them.
Captures = dict[int, str]
Ways = Iterator[tuple[int, Captures]]


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Wild:
    sign: str  # "*", "**" or "?"


@dataclass(frozen=True)
class Class:
    text: str
    members: str
    negated: bool


@dataclass(frozen=True)
class Braces:
    options: tuple["Parts", ...]


@dataclass(frozen=True)
class Group:
    sign: str  # one of "@?*+!", or "" for "@"
    options: tuple["Parts", ...]


Part = Text | Wild | Class | Braces | Group
Parts = tuple[Part, ...]


def render(parts: Parts) -> str:
    def one(part: Part) -> str:
        match part:
            case Text(text):
                return re.sub(r"[*(|\\]", r"\\\g<0>", text)
            case Wild(sign):
                return sign
            case Class(text, _, negated):
                return f"[{'!' if negated else ''}{text}]"
            case Braces(options):
                return "{" + ",".join(map(render, options)) + "}"
            case Group(sign, options):
                return f"{sign}({'|'.join(map(render, options))})"

    return "".join(map(one, parts))


def groups_in(parts: Parts) -> int:
    return sum(1 + sum(map(groups_in, part.options)) for part in parts if isinstance(part, Group))


def events(parts: Parts) -> Iterator[str]:
    """What a reader meets: "solid" for text, `*` and `**`; "refusal" where a negation ends."""
    for part in parts:
        if isinstance(part, Text) or (isinstance(part, Wild) and part.sign != "?"):
            yield "solid"
        if isinstance(part, Braces | Group):
            for option in part.options:
                yield from events(option)
        if isinstance(part, Group) and part.sign == "!":
            yield "refusal"


class Naive:
    def __init__(self, parts: Parts, path: str) -> None:
        self.path = path
        read = list(events(parts))
        # Text, `*` or `**` behind the first negation make all negations refuse every beginning.
        self.whole = "refusal" not in read or "solid" not in read[read.index("refusal") :]
        self.found = next((found for end, found in self.sequence(parts, 0, 1, {}) if end == len(path)), None)

    def sequence(self, parts: Parts, at: int, number: int, found: Captures) -> Ways:
        if not parts:
            yield at, found
            return
        after = number + groups_in(parts[:1])
        for end, more in self.part(parts[0], at, number, found):
            yield from self.sequence(parts[1:], end, after, more)

    def part(self, part: Part, at: int, number: int, found: Captures) -> Ways:
        match part:
            case Text(text):
                if self.path.startswith(text, at):
                    yield at + len(text), found
            case Class(_, members, negated):
                if at < len(self.path) and (self.path[at] in members) != negated:
                    yield at + 1, found
            case Wild("?"):
                if self.path[at : at + 1] not in ("", "/"):
                    yield at + 1, found
            case Wild(sign):
                yield from ((end, found) for end in self.runs(at, lambda char: sign == "**" or char != "/"))
            case Braces(options):
                for option in options:
                    yield from self.sequence(option, at, number, found)
            case Group():
                for end, more in self.group(part, at, number, found):
                    yield end, {**more, number: self.path[at:end]}

    def runs(self, at: int, allowed: Callable[[str], bool]) -> Iterator[int]:
        end = at
        while end < len(self.path) and allowed(self.path[end]):
            end += 1
        return iter(range(end, at - 1, -1))

    def group(self, group: Group, at: int, number: int, found: Captures) -> Ways:
        if group.sign == "!":
            refused = {end for end, _ in self.either(group, at, number, found)}
            if not (len(self.path) in refused if self.whole else refused):
                yield from ((end, found) for end in self.runs(at, lambda char: char != "/"))
            return
        if group.sign and group.sign in "?*":
            least, most = 0, 1 if group.sign == "?" else len(self.path) + 1
        else:
            least, most = 1, 1 if group.sign in "@" else len(self.path) + 1
        yield from self.times(group, at, number, found, least, most)

    def times(self, group: Group, at: int, number: int, found: Captures, least: int, most: int) -> Ways:
        if most > 0:
            for end, more in self.either(group, at, number, found):
                # A round that got nowhere is the last one.
                yield from self.times(group, end, number, more, max(least - 1, 0), most - 1 if end > at else 0)
        if least <= 0:
            yield at, found

    def either(self, group: Group, at: int, number: int, found: Captures) -> Ways:
        inner = number + 1
        for option in group.options:
            yield from self.sequence(option, at, inner, found)
            inner += groups_in(option)


CLASSES = [
    ("a", "a"), ("ab", "ab"), ("b-", "b-"), ("/a", "/a"), ("a-c", "abc"), ("[:alpha:]-", "ab-"), (r"\*(|", "*(|"),
]  # fmt: skip
leaves = st.one_of(
    st.builds(Text, st.text(st.sampled_from("ab/-*(|\\"), min_size=1, max_size=2)),
    st.builds(Wild, st.sampled_from(["*", "**", "?"])),
    st.builds(lambda pair, negated: Class(*pair, negated), st.sampled_from(CLASSES), st.booleans()),
)


def several(parts: st.SearchStrategy[Part]) -> st.SearchStrategy[Parts]:
    return st.lists(parts, max_size=3).map(tuple).filter(_unambiguous)


def _unambiguous(parts: Parts) -> bool:
    """Stars that touch would be read as other stars, and a plain bracket behind a wildcard as another group."""
    stars = [isinstance(part, Wild) and part.sign != "?" for part in parts]
    plain = [isinstance(part, Group) and not part.sign for part in parts]
    wild = [isinstance(part, Wild) for part in parts]
    return not any(one and other for one, other in (*pairwise(stars), *zip(wild, plain[1:], strict=False)))


def options(parts: st.SearchStrategy[Part]) -> st.SearchStrategy[tuple[Parts, ...]]:
    return st.lists(several(parts), min_size=1, max_size=2).map(tuple)


signs = st.sampled_from(["", *"@?*+!"])
flat = leaves | st.builds(Braces, options(leaves))
grouped = flat | st.builds(Group, signs, options(flat))
nested = grouped | st.builds(Group, signs, options(grouped))
some_paths = (
    st.text(st.sampled_from("ab/-*(|\\"), min_size=1, max_size=6).map(globs.clean).filter(lambda path: path != "/")
)


@settings(max_examples=200)
@given(several(nested), st.lists(some_paths, min_size=1, max_size=10), st.booleans())
def test_the_naive_matcher_agrees(parts: Parts, candidates: list[str], machine: bool) -> None:
    whole: Parts = (Text("/"), *parts)
    pattern = render(whole)
    assume(globs.clean(pattern) == pattern)
    with pytest.MonkeyPatch.context() as patch:
        if machine:  # also where a regular expression is cheap
            patch.setattr(globs, "_MOST_DOUBLINGS", -1)
        compiled = Glob(pattern)
    count = groups_in(whole)
    for path in candidates:
        found = Naive(whole, path).found
        expected = None if found is None else (path, *(found.get(n, "") for n in range(1, count + 1)))
        matched = compiled.match(path)
        assert (matched is None) == (expected is None)
        # Inside a repetition the last round's captures depend on the engine; the outermost groups do not.
        assert matched is None or expected is None or _outer(whole, matched) == _outer(whole, expected)
        assert compiled.matches(path) == compiled.matches(path + "/") == (matched is not None)
        if matched is not None:
            assert path.startswith(compiled.literal_prefix)
            assert compiled.depth in (None, path.count("/"))
            assert not compiled.literal or path == compiled.literal_prefix


LONG = ["/" + 60 * "a", "/" + 30 * "ab", 20 * "/a", "/" + 50 * "a" + "b"]


@settings(max_examples=50)
@given(several(nested))
def test_the_two_ways_of_matching_agree_on_long_paths_too(parts: Parts) -> None:
    """The naive matcher would take for ever on these, and so would one of the two, were there a pattern to make it."""
    whole: Parts = (Text("/"), *parts)
    pattern = render(whole)
    compiled = Glob(pattern)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(globs, "_MOST_DOUBLINGS", -1)
        machine = Glob(pattern)
    for path in LONG:
        one, other = compiled.match(path), machine.match(path)
        assert (one is None) == (other is None)
        assert one is None or other is None or _outer(whole, one) == _outer(whole, other)


def _outer(parts: Parts, captures: tuple[str, ...]) -> list[str]:
    """The captures of the groups that lie in no other."""
    number = 1
    found = []
    for part in parts:
        if isinstance(part, Group):
            found.append(captures[number])
        number += groups_in((part,))
    return found
