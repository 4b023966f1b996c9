"""Glob patterns over paths, in the dialect of Pachyderm's glob library. Knows nothing of files.

The tokens of a pattern become one regular expression, whose groups are the captures. The dialect is followed also where
it surprises: a class may match "/", and what a negation refuses depends on what comes after it.
"""

import re
from collections.abc import Sequence

from localpachd.errors import InvalidArgument
from localpachd.storage import paths
from localpachd.storage.glob_tokens import Token, tokenise

_ANY = "[^/]*"
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


def _regex(tokens: Sequence[Token]) -> str:
    """The regular expression of a whole pattern. Groups left open end with the pattern."""
    plain = {"any": _ANY, "super": ".*", "single": "[^/]"}
    end = "$" if _negations_reach_the_end(tokens) else ""
    meanings = [""]
    groups: list[list[str]] = [[""]]  # the alternatives of each open group, the pattern itself first
    opened = sum(token.kind == "open" for token in tokens) - sum(token.kind == "close" for token in tokens)
    for token in (*tokens, *[Token("close")] * opened):
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
        case "*" | "+" if either == _ANY:
            # The same language and captures; a repeated star would take time exponential in the path's length.
            return f"({either})"
        case repeat:
            return f"((?:{either}){repeat})"


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
