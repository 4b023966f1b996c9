"""The files in which a picture of a true name can be: itself, its block, an archive or an STL-10 file, or the block of
one of these. By names alone; knows no server."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from stages.record.pfs_names import escape_component, escape_path


class PictureContainer(NamedTuple):
    """The path of a file that may exist, and the name in it that is the picture's, "" for all of the file. Members of
    blocks have their true names."""

    path: str
    member: str


def possible(name: str, blocks_of: Callable[[str], Iterable[str]]) -> Iterator[PictureContainer]:
    """The files that can hold a picture of this true name, each once, the longest names first. blocks_of: the paths of
    the blocks that can hold a file of a true name."""
    parts = name.split("/")
    seen = set()
    for end in range(len(parts), 0, -1):
        above = "/".join(parts[:end])
        for block in blocks_of(above):
            if block not in seen:
                seen.add(block)
                yield PictureContainer(block, name)
        for path in paths_of(above):
            yield PictureContainer(path, "/".join(parts[end:]))


def paths_of(name: str) -> list[str]:
    """The paths of a picture of this true name outside blocks: the one that lookalike uses, and the one in a directory
    put by other means."""
    return list(dict.fromkeys((f"/{escape_component(name)}", f"/{escape_path(name)}")))
