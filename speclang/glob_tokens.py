"""The tokens of a glob pattern: text, wildcards, classes and the marks of groups. Of regular expressions it knows
only those of classes.

It follows Pachyderm's glob library, also where that surprises: the first `!` or `^` anywhere in a class negates
it, and plain text that begins with `!`, `^`, `@` or `+` reaches to the next wildcard or opening bracket.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

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


class GlobError(Exception):
    """A malformed pattern: which one, and why."""


@dataclass(frozen=True, slots=True)
class GlobToken:
    """A piece of a pattern: text, any, super, single, class, open, separator or close.

    `text` holds the text, the regular expression of a class, or the meaning of an opened group: "{" or one of "@*+?!".
    """

    kind: str
    text: str = ""


def tokenise(pattern: str) -> list[GlobToken]:
    """The tokens of a pattern. Raises GlobError for a class that is empty or not closed, and for `^(`."""
    return list(_Lexer(pattern).tokens())


def fold(
    tokens: Sequence[GlobToken],
    leaf: Callable[[GlobToken], list[T]],
    close: Callable[[str, Sequence[list[T]], int], list[T]],
) -> list[T]:
    """A pattern made into something else, piece by piece and from the inside out.

    `leaf` makes the pieces of a token that opens and closes nothing. `close` makes those of a group from its meaning,
    the pieces of its alternatives and its number: captures count from 0 in the order in which they open, braces are -1.
    Groups left open end with the pattern.
    """
    meanings = [("", -1)]
    groups: list[list[list[T]]] = [[[]]]  # the alternatives of each open group, the pattern itself first
    captures = 0
    opened = sum(token.kind == "open" for token in tokens) - sum(token.kind == "close" for token in tokens)
    for token in (*tokens, *[GlobToken("close")] * opened):
        if token.kind == "open":
            capturing = token.text != "{"
            meanings.append((token.text, captures if capturing else -1))
            captures += capturing
            groups.append([[]])
        elif token.kind == "separator":
            groups[-1].append([])
        elif token.kind == "close":
            meaning, number = meanings.pop()
            closed = close(meaning, groups.pop(), number)
            groups[-1][-1] += closed
        else:
            groups[-1][-1] += leaf(token)
    return groups[0][0]


def negations_reach_the_end(tokens: Sequence[GlobToken]) -> bool:
    """Whether a negation refuses only what reaches the path's end.

    If text, `*` or `**` follows the first negation that closes, a negation refuses every beginning instead: so `!(a)`
    matches "ab" but `!(a)*` does not.
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


class _Lexer:
    """Splits a pattern into tokens."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._braces = 0
        self._groups = 0

    def tokens(self) -> Iterator[GlobToken]:
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

    def _group(self, meaning: str) -> GlobToken:
        if meaning == "^":
            raise GlobError(f"the glob {self._pattern!r} is malformed: write !(…) instead of ^(…)")
        self._at += 1 if self._pattern[self._at] == "(" else 2
        self._groups += 1
        return GlobToken("open", meaning)

    def _structure(self, here: str) -> GlobToken:
        self._at += 1
        if here == "{":
            self._braces += 1
            return GlobToken("open", here)
        if here in ",|":
            return GlobToken("separator")
        if here == "}":
            self._braces -= 1
        else:
            self._groups -= 1
        return GlobToken("close")

    def _wildcard(self, here: str, following: str) -> GlobToken:
        self._at += 1
        if here == "[":
            return GlobToken("class", self._class())
        if here == "?":
            return GlobToken("single")
        # In "**(" the second star belongs to the group.
        if following == "*" and self._pattern[self._at + 1 : self._at + 2] != "(":
            self._at += 1
            return GlobToken("super")
        return GlobToken("any")

    def _enders(self) -> str:
        # Inside braces "|" and ")" are text, whatever groups are open.
        return "}," if self._braces else ")|" if self._groups else ""

    def _text(self, breakers: str) -> Iterator[GlobToken]:
        found = []
        while self._at < len(self._pattern) and (here := self._pattern[self._at]) not in breakers:
            if here == "\\":
                self._at += 1
                here = self._pattern[self._at : self._at + 1]
            found.append(here)
            self._at += 1
        if found and "".join(found):
            yield GlobToken("text", "".join(found))

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
                raise GlobError(f"the glob {self._pattern!r} is malformed: a [ is not closed")
            members.append(here)
        self._at += 1
        if not members:
            raise GlobError(f"the glob {self._pattern!r} is malformed: a class [] must not be empty")
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
