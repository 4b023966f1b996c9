"""Glob patterns over paths, in the dialect of Pachyderm's glob library. Knows nothing of files.

A pattern is read into tokens, the tokens become one regular expression. What follows from the real library's reading,
also where it surprises: a class may match "/", the first `!` or `^` anywhere in a class negates it, and plain text that
begins with `!`, `^`, `@` or `+` reaches to the next wildcard or opening bracket.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localpachd.errors import InvalidArgument
from localpachd.storage import paths

_WILDCARDS = "?*[{("
_OPENERS = "@!^+"  # they open a group when "(" follows, and are text otherwise

_CLASSES = {
    ":alnum:": "0-9A-Za-z",
    ":alpha:": "A-Za-z",
    ":ascii:": "\0-\x7f",
    ":blank:": "\t ",
    ":cntrl:": "\0-\x1f\x7f",
    ":digit:": "0-9",
    ":graph:": "!-~",
    ":lower:": "a-z",
    ":print:": " -~",
    ":punct:": "!-/:-@[-`{-~",
    ":space:": "\t\n\v\f\r ",
    ":upper:": "A-Z",
    ":word:": "0-9A-Za-z_",
    ":xdigit:": "0-9A-Fa-f",
}

_REFERENCE = re.compile(r"\$(?:(\$)|([0-9]+)|\{([0-9]+)\})")


def clean(pattern: str) -> str:
    """The form in which a pattern is matched: a leading slash, no trailing one."""
    return paths.clean(pattern)


def substitute(template: str, captures: Sequence[str]) -> str:
    """Puts captures, as `Glob.match` gives them, in place of `$1`, `${2}`...; `$$` is a dollar sign.

    A group that the pattern does not have is empty; a dollar sign before anything else stays.
    """

    def value(found: re.Match[str]) -> str:
        if found[1]:
            return "$"
        number = found[2] or found[3]
        known = len(number) < 9 and (number == "0" or not number.startswith("0"))
        return captures[int(number)] if known and int(number) < len(captures) else ""

    return _REFERENCE.sub(value, template)


class Glob:
    """A compiled pattern. Raises InvalidArgument for one that cannot be understood."""

    def __init__(self, pattern: str) -> None:
        self.pattern = clean(pattern)
        tokens = list(_Lexer(self.pattern).tokens())
        texts = [token.text for token in tokens]
        literal = next((place for place, token in enumerate(tokens) if token.kind != "text"), len(tokens))
        self.literal_prefix = "".join(texts[:literal])
        """The text that every match starts with."""
        self.literal = literal == len(tokens) and paths.clean(self.literal_prefix) == self.literal_prefix
        """Whether the pattern is a plain path."""
        try:
            self._regex = re.compile(_regex(tokens))
        except (re.error, RecursionError) as fault:
            raise InvalidArgument(f"the glob {pattern!r} is malformed: {fault}") from None
        self.depth = _depth(tokens)
        """How many slashes every match has, when that is the same for all: then no match lies below another."""

    def match(self, path: str) -> tuple[str, ...] | None:
        """Matches a whole path, given without a directory's trailing slash.

        Returns None, or the path followed by what each group captured, so that `$n` is element n; a group that took no
        part is "". Only the pattern "/" matches the root, whose form without the slash is "".
        """
        if path in ("", "/"):
            return ("",) if self.pattern == "/" else None
        found = self._regex.fullmatch(path)
        return None if found is None else (path, *(group or "" for group in found.groups()))

    def matches(self, path: str) -> bool:
        """Whether a path matches, in either form: a directory may have its trailing slash."""
        if path[-1:] != "/":
            return self._regex.fullmatch(path) is not None
        return self.pattern == "/" if path == "/" else self._regex.fullmatch(path[:-1]) is not None


@dataclass(frozen=True, slots=True)
class _Token:
    """A piece of a pattern: text, any, super, single, class, open, separator or close.

    `text` holds the text, the expression of a class, or what an opened group means: "{" or one of "@*+?!".
    """

    kind: str
    text: str = ""


class _Lexer:
    """Splits a pattern into tokens."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._braces = 0
        self._groups = 0

    def tokens(self) -> Iterator[_Token]:
        while self._at < len(self._pattern):
            here = self._pattern[self._at]
            following = self._pattern[self._at + 1 : self._at + 2]
            if here == "(" or (following == "(" and here in "?*" + _OPENERS):
                yield self._group("@" if here == "(" else here)
            elif here in _OPENERS:
                yield from self._text(_WILDCARDS)
            elif here in "?*[":
                yield self._wildcard(here, following)
            elif here == "{" or (self._braces and here in ",}") or (self._groups and here in "|)"):
                yield self._structure(here)
            else:
                yield from self._text(_WILDCARDS + _OPENERS + self._enders())

    def _group(self, meaning: str) -> _Token:
        if meaning == "^":
            raise InvalidArgument(f"the glob {self._pattern!r} is malformed: write !(…) instead of ^(…)")
        self._at += 1 if self._pattern[self._at] == "(" else 2
        self._groups += 1
        return _Token("open", meaning)

    def _structure(self, here: str) -> _Token:
        self._at += 1
        if here == "{":
            self._braces += 1
            return _Token("open", here)
        if here in ",|":
            return _Token("separator")
        if here == "}":
            self._braces -= 1
        else:
            self._groups -= 1
        return _Token("close")

    def _wildcard(self, here: str, following: str) -> _Token:
        self._at += 1
        if here == "[":
            return _Token("class", self._class())
        if here == "?":
            return _Token("single")
        # In "**(" the second star belongs to the group.
        if following == "*" and self._pattern[self._at + 1 : self._at + 2] != "(":
            self._at += 1
            return _Token("super")
        return _Token("any")

    def _enders(self) -> str:
        # Inside braces "|" and ")" are text, whatever groups are open.
        return "}," if self._braces else ")|" if self._groups else ""

    def _text(self, breakers: str) -> Iterator[_Token]:
        found = []
        while self._at < len(self._pattern) and (here := self._pattern[self._at]) not in breakers:
            if here == "\\":
                self._at += 1
                here = self._pattern[self._at : self._at + 1]
            found.append(here)
            self._at += 1
        if found and "".join(found):
            yield _Token("text", "".join(found))

    def _class(self) -> str:
        """The regular expression of a class; the opening bracket is read."""
        members = []
        negated = named = False
        while (here := self._pattern[self._at : self._at + 1]) != "]" or named:
            self._at += 1
            if here == "\\":
                here = self._pattern[self._at : self._at + 1]
                self._at += 1
            elif here in ("[", "]"):
                named = here == "["
            elif not negated and here in ("!", "^"):
                negated = True
                continue
            if not here:
                raise InvalidArgument(f"the glob {self._pattern!r} is malformed: a [ is not closed")
            members.append(here)
        self._at += 1
        if not members:
            raise InvalidArgument(f"the glob {self._pattern!r} is malformed: a class [] must not be empty")
        text = "".join(members)
        for name, characters in _CLASSES.items():
            text = text.replace(name, characters)
        return f"[{'^' if negated else ''}{_ranges(text)}]"


def _ranges(members: str) -> str:
    pieces = []
    at = 0
    while at < len(members):
        if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
            pieces.append(f"{re.escape(members[at])}-{re.escape(members[at + 2])}")
            at += 3
        else:
            pieces.append(re.escape(members[at]))
            at += 1
    return "".join(pieces)


def _regex(tokens: Sequence[_Token]) -> str:
    """The regular expression of a whole pattern. Groups left open end with the pattern."""
    plain = {"any": "[^/]*", "super": ".*", "single": "[^/]"}
    end = "$" if _negations_reach_the_end(tokens) else ""
    meanings = [""]
    groups: list[list[str]] = [[""]]  # the alternatives of each open group, the pattern itself first
    opened = sum(token.kind == "open" for token in tokens) - sum(token.kind == "close" for token in tokens)
    for token in (*tokens, *[_Token("close")] * opened):
        match token.kind:
            case "open":
                meanings.append(token.text)
                groups.append([""])
            case "separator":
                groups[-1].append("")
            case "close":
                closed = _close(meanings.pop(), groups.pop(), end)
                groups[-1][-1] += closed
            case "text":
                groups[-1][-1] += re.escape(token.text)
            case "class":
                groups[-1][-1] += token.text
            case wildcard:
                groups[-1][-1] += plain[wildcard]
    return groups[0][0]


def _close(meaning: str, alternatives: Sequence[str], end: str) -> str:
    either = "|".join(alternatives)
    match meaning:
        case "{":
            return f"(?:{either})"
        case "@":
            return f"({either})"
        case "!":
            refused = "|".join(alternative + end for alternative in alternatives)
            return f"((?:(?!(?:{refused}))[^/]*))"
        case repeat:
            return f"((?:{either}){repeat})"


def _negations_reach_the_end(tokens: Sequence[_Token]) -> bool:
    """Whether what a negation refuses must reach to the path's end.

    If text, `*` or `**` comes after the first negation that closes, a negation refuses every beginning instead: so
    `!(a)` matches "ab" but `!(a)*` does not.
    """
    meanings = []
    closed = False
    for token in tokens:
        if token.kind == "open":
            meanings.append(token.text)
        elif token.kind == "close":
            closed = meanings.pop() == "!" or closed
        elif closed and token.kind in ("text", "any", "super"):
            return False
    return True


def _depth(tokens: Sequence[_Token]) -> int | None:
    slashes = 0
    inside = 0
    for token in tokens:
        inside += (token.kind == "open") - (token.kind == "close")
        if token.kind == "super" or (inside and token.kind == "text" and "/" in token.text):
            return None
        if token.kind == "class" and re.fullmatch(token.text, "/"):
            return None
        slashes += token.text.count("/") if token.kind == "text" else 0
    return slashes
