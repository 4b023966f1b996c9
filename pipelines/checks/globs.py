"""Glob patterns as Pachyderm reads them, as far as a preview needs: wildcards, classes, braces and captures.

Of the extended patterns @(…), *(…), +(…) and ?(…) are read; negations, whose reading depends on what follows them, are
not previewed.
"""

import re
from collections.abc import Sequence

_REFERENCE = re.compile(r"\$(?:\$|([0-9]+)|\{([0-9]+)\})")
_REPEATS = {"*": "*", "+": "+", "?": "?", "@": ""}


class GlobError(Exception):
    """A pattern that cannot be read; says why."""


class Glob:
    """A pattern. Raises GlobError for one that is malformed; `previewed` is whether matches can be told here."""

    def __init__(self, pattern: str) -> None:
        self.pattern = "/" + pattern.strip("/")
        self.previewed = "!(" not in pattern and "[:" not in pattern
        text = self.pattern if self.previewed else re.sub(r"!\(", "@(", re.sub(r"\[:\w+:\]", "a", self.pattern))
        try:
            self._regex = re.compile(_Translation(text).regex)
        except re.error as error:
            raise GlobError(f'the glob "{pattern}" is malformed: {error}') from None
        self.groups = self._regex.groups

    def match(self, path: str) -> tuple[str, ...] | None:
        """Matches a whole path that begins with a slash and does not end with one; the root is "". Returns the path and
        what each group took ("" for none), or None."""
        if path in ("", "/"):
            return ("",) if self.pattern == "/" else None
        found = self._regex.fullmatch(path)
        return None if found is None else (path, *(group or "" for group in found.groups()))

    def unknown_reference(self, template: str) -> int:
        """The first `$n` of a join_on or group_by that the pattern has no group for; 0 if there is none."""
        numbers = (int(found[1] or found[2] or 0) for found in _REFERENCE.finditer(template))
        return next((number for number in numbers if number > self.groups), 0)


def substituted(template: str, captures: Sequence[str]) -> str:
    """The key of a match: `$1` and `${1}` stand for what the groups took, `$$` for a dollar sign."""

    def value(found: re.Match[str]) -> str:
        number = found[1] or found[2]
        if not number:
            return "$"
        return captures[int(number)] if int(number) < len(captures) else ""

    return _REFERENCE.sub(value, template)


class _Translation:
    """The regular expression of a pattern."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self.regex = self._alternatives("")

    def _alternatives(self, end: str) -> str:
        """The expression up to a closing sign, "" for the pattern's end."""
        separators = {"}": ",", ")": "|"}.get(end, "")
        found = [""]
        while True:
            here = self._next()
            if here == end:
                return "|".join(found)
            if not here:
                raise GlobError(
                    f'the glob "{self._pattern}" is malformed: a {"{" if end == "}" else "("} is not closed'
                )
            if here == separators:
                found.append("")
            else:
                found[-1] += self._piece(here)

    def _piece(self, here: str) -> str:
        if here == "\\":
            return re.escape(self._next())
        if here == "[":
            return self._class()
        if here == "{":
            return f"(?:{self._alternatives('}')})"
        if here == "(" or (here in _REPEATS and self._pattern[self._at : self._at + 1] == "("):
            self._at += here != "("
            inside = self._alternatives(")")
            repeats = _REPEATS.get(here, "") if here != "(" else ""
            return f"((?:{inside}){repeats})"
        if here == "*":
            if self._pattern[self._at : self._at + 1] == "*" and self._pattern[self._at + 1 : self._at + 2] != "(":
                self._at += 1
                return ".*"
            return "[^/]*"
        return "[^/]" if here == "?" else re.escape(here)

    def _class(self) -> str:
        end = self._pattern.find("]", self._at + 1)
        if end < 0:
            raise GlobError(f'the glob "{self._pattern}" is malformed: a [ is not closed')
        members = self._pattern[self._at : end]
        self._at = end + 1
        negated = members[:1] in ("!", "^")
        inside = re.sub(r"[\\\[\]^&~|]", r"\\\g<0>", members[negated:])
        return f"[{'^' if negated else ''}{inside}]"

    def _next(self) -> str:
        here = self._pattern[self._at : self._at + 1]
        self._at += 1
        return here
