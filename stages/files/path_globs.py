"""Patterns of paths as regular expressions for RE2, which takes linear time for any text. Matches nothing itself."""

import re
from collections.abc import Callable

from stages.datum.contract import StageError

LONGEST = 500
"""Characters of a filter."""

MOST_WILDCARDS = 32
"""Parts of a pattern that match several texts: RE2's time grows with their number."""

_SPECIAL = re.compile(r"[*?\[{]")
_MEANING = re.compile(r"[*?\[{},\\]")
_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[(?P<not>[!^]?)(?P<set>\]?[^\]/]*)\]|[{},]|\\(?P<literal>.)|.", re.DOTALL)
_WHOLE = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_GROUP = {"{": "(?:", ",": "|", "}": ")"}


class FilterError(StageError):
    """A filter of paths, or a cursor, that cannot be used; the message says why."""


def is_glob(filter: str) -> bool:
    """Whether a filter is a pattern, and not the beginning of a path."""
    return _SPECIAL.search(filter) is not None


def meant(filter: str, folder: Callable[[str], bool], file: Callable[[str], bool]) -> str:
    """The filter that a user means, who may not know of patterns: a name first, a pattern second.

    If a folder or a file of the library has just this name, whatever characters it has, the pattern of the paths in the
    folder, or of the file alone; else the filter itself. folder, file: whether the library has one of that name. Raises
    FilterError if the filter is too long.
    """
    if len(filter) > LONGEST:
        raise FilterError(f"the filter has {len(filter):,} characters; use at most {LONGEST}")
    if not is_glob(filter):
        return filter
    escaped = _MEANING.sub(r"\\\g<0>", filter.removesuffix("/"))
    if folder(filter.removesuffix("/")):
        return f"{escaped}/**"
    if filter.endswith("/") or not file(filter):
        return filter
    return escaped if "/" in escaped else f"{{{escaped},/}}"  # a pattern without a slash is of names in any folder


def regular_expression(pattern: str) -> str:
    """The expression for a pattern, to be searched in a path: see stages.files.path_masks.

    Raises FilterError for braces without a partner, ranges in the wrong order, or too many wildcards.
    """
    depth = wildcards = 0
    parts = []
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        wildcards += text in _WHOLE or text == "{" or token["set"] is not None
        if text in _GROUP and (depth or text == "{"):
            depth += (text == "{") - (text == "}")
            parts.append(_GROUP[text])
        elif text in _WHOLE:
            parts.append(_WHOLE[text])
        elif token["set"] is not None:
            parts.append(_alternatives(token["set"], bool(token["not"])))
        else:
            parts.append(re.escape(token["literal"] or text))
    if depth:
        raise FilterError("the filter has a { without a }: close it, or write \\{ for the character")
    if wildcards > MOST_WILDCARDS:
        raise FilterError(f"the filter has {wildcards} wildcards and alternatives; use at most {MOST_WILDCARDS}")
    start = r"\A" if "/" in pattern else r"(?:\A|/)"
    return f"(?s){start}(?:{''.join(parts)})\\z"


def _alternatives(members: str, negative: bool) -> str:
    """A set of characters such as "a-z_", which never includes the slash."""
    parts = []
    at = 0
    while at < len(members):
        if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
            low, high = members[at], members[at + 2]
            if low > high:
                raise FilterError(f"the filter has the range {low}-{high} in the wrong order: write {high}-{low}")
            parts.append(f"{_member(low)}-{_member(high)}")
            at += 3
        else:
            parts.append(_member(members[at]))
            at += 1
    if negative:
        return f"[^/{''.join(parts)}]"
    return f"[{''.join(parts)}]" if parts else re.escape("[]")


def _member(character: str) -> str:
    return f"\\{character}" if character in "\\]^-[&~|" else character
