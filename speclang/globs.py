"""Glob patterns over paths, in the dialect of Pachyderm's glob library. Knows nothing of files.

The tokens of a pattern become one regular expression, whose groups are the captures, or a machine where an expression
could take for ever. The dialect is followed also where it surprises: a class may match "/", and what a negation refuses
depends on what comes after it.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

from speclang import glob_machine, paths
from speclang.glob_tokens import GlobError, GlobToken, fold, negations_reach_the_end, tokenise

__all__ = ["Glob", "GlobError", "references", "substitute"]

_NESTED = 50
_DOUBLINGS_OF_NAMES, _DOUBLINGS_OF_PATHS, _MOST_DOUBLINGS = 8, 12, 26  # names have 2**8 characters, paths 2**12

_EXPRESSIONS = {"any": "[^/]*", "super": ".*", "single": "[^/]"}
_REFERENCE = re.compile(r"\$(?:(\$)|([0-9]+)|\{([0-9]+)\})")


def substitute(template: str, captures: Sequence[str]) -> str:
    """Replaces `$1`, `${2}`... with the captures that `Glob.match` gives, and `$$` with a dollar sign.

    A group that the pattern does not have is empty; a dollar sign before anything else stays.
    """

    def value(found: re.Match[str]) -> str:
        if found[1]:
            return "$"
        number = found[2] or found[3]
        known = len(number) < 9 and (number == "0" or not number.startswith("0"))
        return captures[int(number)] if known and int(number) < len(captures) else ""

    return _REFERENCE.sub(value, template)


def references(template: str) -> Iterator[int]:
    """The numbers of the groups that a template names."""
    for found in _REFERENCE.finditer(template):
        if not found[1]:
            yield int((found[2] or found[3])[:9])  # of which no pattern has as many


class Glob:
    """A compiled pattern. Raises GlobError for a malformed pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = paths.clean(pattern)
        tokens = tokenise(self.pattern)
        texts = [token.text for token in tokens]
        literal = next((place for place, token in enumerate(tokens) if token.kind != "text"), len(tokens))
        self.literal_prefix = "".join(texts[:literal])
        """The text at the beginning of every match."""
        self.literal = literal == len(tokens) and paths.clean(self.literal_prefix) == self.literal_prefix
        """Whether the pattern is a plain path."""
        if max(itertools.accumulate((each.kind == "open") - (each.kind == "close") for each in tokens)) > _NESTED:
            raise GlobError(f"the glob {pattern!r} is malformed: more than {_NESTED} groups within one another")
        try:
            self._captures = _matcher(tokens)
        except re.error as fault:
            raise GlobError(f"the glob {pattern!r} is malformed: {fault}") from None
        self.depth = _depth(tokens)
        """The number of slashes in every match, or None where matches differ in it. With a number, no match lies below
        another."""
        self.groups = sum(token.kind == "open" and token.text != "{" for token in tokens)
        """How many groups capture."""
        self.unclosed = sum((each.kind == "open") - (each.kind == "close") for each in tokens)
        """How many groups and braces are left open: they end with the pattern."""

    def match(self, path: str) -> tuple[str, ...] | None:
        """Matches a whole path, given without a directory's trailing slash.

        Returns None, or the path followed by the capture of each group, so that `$n` is element n; a group that took no
        part is "". Only the pattern "/" matches the root, whose form without the slash is "".
        """
        if path in ("", "/"):
            return ("",) if self.pattern == "/" else None
        found = self._captures(path)
        return None if found is None else (path, *found)

    def matches(self, path: str) -> bool:
        """Whether a path matches, in either form: a directory may have its trailing slash."""
        if path[-1:] != "/":
            return self._captures(path) is not None
        return self.pattern == "/" if path == "/" else self._captures(path[:-1]) is not None


def _matcher(tokens: Sequence[GlobToken]) -> Callable[[str], tuple[str, ...] | None]:
    """The function that matches a whole path: it returns what each group captured, or None."""
    if not _cheap(tokens):
        return glob_machine.assemble(tokens).match
    expression = re.compile(_regex(tokens))

    def match(path: str) -> tuple[str, ...] | None:
        found = expression.fullmatch(path)
        return None if found is None else found.groups("")

    return match


def _regex(tokens: Sequence[GlobToken]) -> str:
    """The regular expression of a whole pattern."""
    end = "$" if negations_reach_the_end(tokens) else ""

    def close(meaning: str, alternatives: Sequence[list[str]], _: int) -> list[str]:
        return [_group(meaning, ["".join(each) for each in alternatives], end)]

    return "".join(fold(tokens, lambda token: [_EXPRESSIONS.get(token.kind) or _plain(token)], close))


def _plain(token: GlobToken) -> str:
    return token.text if token.kind == "class" else re.escape(token.text)


def _group(meaning: str, alternatives: Sequence[str], end: str) -> str:
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


def _cheap(tokens: Sequence[GlobToken]) -> bool:
    """Whether a regular expression fails in good time, although it may have to try every way to match.

    Estimates how many ways there are: the choices that groups offer, times the lengths that stars can have. Of the
    stars between two slashes, which they cannot cross, the last one has no choice.
    """
    doublings = inside = 0
    stars = [0]
    for token in tokens:
        inside += (token.kind == "open") - (token.kind == "close")
        if token.kind == "open" and token.text in "*+":
            return False
        doublings += token.kind == "separator" or (token.kind == "open" and token.text == "?")
        doublings += _DOUBLINGS_OF_PATHS * (token.kind == "super")
        stars[-1] += token.kind == "any" or (token.kind == "open" and token.text == "!")
        if token.kind == "text" and "/" in token.text and not inside:
            stars.append(0)
    free = sum(max(0, each - 1) for each in stars) + any(stars)
    return doublings + _DOUBLINGS_OF_NAMES * free <= _MOST_DOUBLINGS


def _depth(tokens: Sequence[GlobToken]) -> int | None:
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
