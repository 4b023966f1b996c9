"""True names and PFS paths: the reversible escaping between them, and the names of files that are never pictures.

Knows strings only: no files, no Pachyderm. PFS accepts printable ASCII without glob characters and without components
"." and ".."; a backslash or a component over 255 bytes passes its check and then blocks the pipeline for ever.

Escaping is percent-encoding of UTF-8 with upper-case hex. A component that would be too long is cut between two escapes
and continues in the next component; a bare "%" marks the cut. Since escaping never puts "%" before a letter past F,
top-level names that begin with that are lookalike's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST_COMPONENT = 255  # bytes, of a file name on the worker's disk
NAMES_FILE = "%names"  # lists a directory's names, one per line, since Pachyderm's directory hash ignores names
MEMBERS_FILE = "%names.jsonl"  # may begin a block: a line {"path": true name, "sha256": hex, "size": bytes} a picture
QUESTION_FILE = "question.json"  # in a query entry: what is asked about its pictures, see stages.files.question
TEXT_ENDING = ".txt"  # of a file of words in a query entry
TEXTS_FILE = "texts.jsonl"  # of an entry, on its way to its sheet: the words that are asked about
EMPTY = "%void"  # the escaped empty name, which no file system has but the functions here must handle
# Files that operating systems leave in folders and archives, and the state of a library in the folder that it is of:
# skipped without a record.
SYSTEM_FILES = frozenset({".DS_Store", "Thumbs.db", "ehthumbs.db", "desktop.ini", "__MACOSX", ".lookalike"})

_BLOCK = re.compile(r"%block-[0-9a-f]{16}\.(?:tar|urls\.jsonl)")
_UNSAFE = re.compile(r"[^ -~]|[*?\[\]{}!()@+^\\%]")
_SEPARATES_NOTHING = re.compile(r"\A/|/\Z|(?<=/)/")
_ESCAPED_BYTE = re.compile(rb"%([0-9A-F]{2})")
_CUT = re.compile(rf"(?<![^/])([^/]{{{LONGEST_COMPONENT - 3},{LONGEST_COMPONENT - 1}}})%/")


def escape_path(true: str) -> str:
    """The PFS path of a relative path, whose slashes stay separators. For every str: unescape(escape_path(s)) == s.

    A slash at either end or after another slash is escaped, since PFS has no empty components.
    """
    return _in_components(_SEPARATES_NOTHING.sub("%2F", _percent(true)))


def escape_component(true: str) -> str:
    """The PFS name of a whole relative path as one entry: slashes are escaped, too. unescape is its inverse as well.

    If the name is too long for one component, the result has several, and the entry is a directory.
    """
    return _in_components(_percent(true).replace("/", "%2F"))


def unescape(path: str) -> str:
    """The true name of a PFS path, or of one component of it.

    Everything that escaping never produces (a bare "%", lower-case hex, characters outside ASCII) stays as it is, so
    names put without lookalike come out unchanged unless they contain "%" and two upper-case hex digits.
    """
    if path == EMPTY:
        return ""
    joined = _CUT.sub(r"\1", path)
    return _decode(_ESCAPED_BYTE.sub(lambda match: bytes.fromhex(match[1].decode()), _encode(joined)))


def is_text(name: str) -> bool:
    """Whether a file of a query entry is asked about by its words."""
    return name.lower().endswith(TEXT_ENDING)


def is_block(path: str) -> bool:
    """Whether a PFS path names an ingest block, "%block-<16 hex>.tar", whose members' names are escaped true paths, or
    one of records, "%block-<16 hex>.urls.jsonl" (see stages.record.url_records)."""
    return _BLOCK.fullmatch(path.rpartition("/")[2]) is not None


def block_name(digits: str, suffix: str = ".tar") -> str:
    """The PFS name of the ingest block with these 16 lower-case hex digits. Raises ValueError for any others."""
    name = f"%block-{digits}{suffix}"
    if not is_block(name):
        raise ValueError(f"{digits!r} is not 16 lower-case hex digits")
    return name


def is_system_file(path: str) -> bool:
    """Whether an operating system, or a library, left the file at a path, and not its owner."""
    parts = path.split("/")
    return not SYSTEM_FILES.isdisjoint(parts) or (parts[-1].startswith("._") and len(parts[-1]) > 2)


def _percent(true: str) -> str:
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", _encode(true).decode("latin-1"))


def _in_components(escaped: str) -> str:
    if not escaped:
        return EMPTY
    return "/".join(piece for component in escaped.split("/") for piece in _cut(_without_dots(component)))


def _without_dots(component: str) -> str:
    """Escapes a name of dots alone: "." and ".." have a meaning in PFS, and longer ones confuse people."""
    return component if component.strip(".") else "%2E" * len(component)


def _cut(component: str) -> Iterator[str]:
    while len(component) > LONGEST_COMPONENT:
        end = LONGEST_COMPONENT - 1
        end -= next((back for back in (1, 2) if component[end - back] == "%"), 0)  # not inside an escape
        yield component[:end] + "%"
        component = _without_dots(component[end:])
    yield component


def _encode(text: str) -> bytes:
    """The bytes of a str from a file system: UTF-8, with undecodable bytes (lone surrogates in the str) as they were.

    A str from elsewhere that would be read back differently keeps its surrogates encoded.
    """
    try:
        raw = text.encode("utf-8", "surrogateescape")
        if _decode(raw) == text:
            return raw
    except UnicodeEncodeError:
        pass
    return text.encode("utf-8", "surrogatepass")


def _decode(raw: bytes) -> str:
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "surrogateescape")
