"""Faults of a commit's content: files of two datums at one path, and a file at the path of a directory."""

from collections.abc import Iterator

from localpachd.storage.filesets import FileSet

_SCAN_SHARE = 16
"""Reading an entry in a full scan is about this many times cheaper than the look-ups around one entry."""


def survey(below: FileSet, written: FileSet, whole: FileSet, size: int) -> tuple[str, int]:
    """Returns the first inconsistency in `whole`, `written` on top of `below` ("" if none), and its size in bytes.

    `below`, of `size` bytes, must have no fault. Costs look-ups for each entry written or, if those are many, one full
    scan. The texts are the real server's (`src/server/pfs/server/compaction.go`); but it compares only neighbours in
    path order, and so misses a file and a directory of one name with another file between them.
    """
    if written.weight() * _SCAN_SHARE >= whole.weight():
        return _scan(whole)
    first = ""
    for path, tag, content in written.entries():
        old = below.find(path, tag)
        size += (content.size if content else 0) - (old.content.size if old else 0)
        if content is not None and not first:
            first = _around(whole, path)
    return first, size


def _scan(whole: FileSet) -> tuple[str, int]:
    total = 0
    first = ""
    previous = ("", "")
    begun: list[str] = []  # earlier paths that this one begins with; they are adjacent in byte order
    for path, tag, size, _ in whole.rows():
        total += size
        if first:
            continue
        while begun and not path.startswith(begun[-1]):
            begun.pop()
        if path == previous[0]:
            first = _duplicate(path, previous[1], tag)
        elif any(path[len(above)] == "/" for above in begun):
            first = _collision(path)
        begun.append(path)
        previous = (path, tag)
    return first, total


def _around(whole: FileSet, path: str) -> str:
    holders = whole.get(path)
    if len(holders) > 1:
        return _duplicate(path, holders[0].tag, holders[1].tag)
    inside = next(whole.under(path), None)
    if inside is not None:
        return _collision(inside.path)
    return _collision(path) if any(whole.get(above) for above in _directories(path)) else ""


def _directories(path: str) -> Iterator[str]:
    end = path.rfind("/")
    while end > 0:
        yield path[:end]
        end = path.rfind("/", 0, end)


def _duplicate(path: str, one: str, other: str) -> str:
    return f"duplicate path output by different datums ({path} from {one} and {path} from {other})"


def _collision(path: str) -> str:
    return f"file / directory path collision ({path})"
