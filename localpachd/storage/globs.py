"""Glob patterns over paths, in the dialect of Pachyderm's glob library. Knows nothing of files.

The tokens of a pattern become one regular expression, whose groups are the captures, or a machine where that could take
for ever. The dialect is followed also where it surprises: a class may match "/", and what a negation refuses depends on
what comes after it.
"""

import itertools
import re
from collections.abc import Callable, Sequence

from localpachd.errors import InvalidArgument
from localpachd.storage import glob_machine, paths
from localpachd.storage.glob_tokens import Token, fold, tokenise

_NESTED = 50
_DOUBLINGS_OF_NAMES, _DOUBLINGS_OF_PATHS, _MOST_DOUBLINGS = 8, 12, 26  # names have 2**8 characters, paths 2**12

_EXPRESSIONS = {"any": "[^/]*", "super": ".*", "single": "[^/]"}
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
        tokens = tokenise(self.pattern)
        texts = [token.text for token in tokens]
        literal = next((place for place, token in enumerate(tokens) if token.kind != "text"), len(tokens))
        self.literal_prefix = "".join(texts[:literal])
        """The text that every match starts with."""
        self.literal = literal == len(tokens) and paths.clean(self.literal_prefix) == self.literal_prefix
        """Whether the pattern is a plain path."""
        if max(itertools.accumulate((each.kind == "open") - (each.kind == "close") for each in tokens)) > _NESTED:
            raise InvalidArgument(f"the glob {pattern!r} is malformed: more than {_NESTED} groups within one another")
        try:
            self._captures = _matcher(tokens)
        except re.error as fault:
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
        found = self._captures(path)
        return None if found is None else (path, *found)

    def matches(self, path: str) -> bool:
        """Whether a path matches, in either form: a directory may have its trailing slash."""
        if path[-1:] != "/":
            return self._captures(path) is not None
        return self.pattern == "/" if path == "/" else self._captures(path[:-1]) is not None


def _matcher(tokens: Sequence[Token]) -> Callable[[str], tuple[str, ...] | None]:
    """What each group captures of a whole path, or None, as a function."""
    to_the_end = _negations_reach_the_end(tokens)
    if not _cheap(tokens):
        return glob_machine.assemble(tokens, to_the_end).match
    expression = re.compile(_regex(tokens, to_the_end))

    def match(path: str) -> tuple[str, ...] | None:
        found = expression.fullmatch(path)
        return None if found is None else found.groups("")

    return match


def _regex(tokens: Sequence[Token], to_the_end: bool) -> str:
    """The regular expression of a whole pattern."""

    def close(meaning: str, alternatives: Sequence[list[str]], _: int) -> list[str]:
        return [_group(meaning, ["".join(each) for each in alternatives], "$" if to_the_end else "")]

    return "".join(fold(tokens, lambda token: [_EXPRESSIONS.get(token.kind) or _plain(token)], close))


def _plain(token: Token) -> str:
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


def _cheap(tokens: Sequence[Token]) -> bool:
    """Whether a regular expression can be trusted to fail in good time: it may have to try every way to match.

    An estimate of how many there are: the choices that groups offer, times the lengths that stars can have. Of the
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


def _negations_reach_the_end(tokens: Sequence[Token]) -> bool:
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


def _depth(tokens: Sequence[Token]) -> int | None:
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
