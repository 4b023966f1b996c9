"""Pictures by the hash of their content: of files on disk, and of those in the library.

The server tells the hashes of files and blocks, which depend on the way it stores them and say nothing about the
pictures in a block. So each is read once, and the hashes of its pictures are kept on this machine, by its own hash:
they can be missing, but not wrong. A file on disk is read again whenever anything about it has changed.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pipelines.library.content_cache import ContentCache
from pipelines.library.picture_sources import PictureSource
from pipelines.library.snapshots import LibrarySnapshot
from stages.files import blocks
from stages.files.blocks import ByteRange

_ALONE = ""
"""The name of the only picture of a file that is no block."""


@dataclass(frozen=True, slots=True)
class LibraryPicture:
    """A picture in the library: its hash, and the path of its file, "" if it is in a block."""

    digest: str
    path: str = ""


class PictureHashes:
    """The hashes of pictures, as SHA-256 in hex digits."""

    def __init__(self, place: Path) -> None:
        """place: see `content_cache.default_path`. If it cannot be used, nothing is kept."""
        self._kept = ContentCache(place)
        self._files: dict[ByteRange, tuple[object, str]] = {}
        """Of files on disk and parts of them, with their states when they were read."""

    def file(self, source: PictureSource) -> str:
        """The hash of a file on disk. Raises OSError if it cannot be read, or is written meanwhile."""
        state = state_of(source.path)
        known = self._files.get(source.span)
        if known is None or known[0] != state:
            known = state, digest(blocks.content(source.span))
            if state_of(source.path) != state:
                raise OSError(0, "it has changed while it was read", str(source.path))
            self._files[source.span] = known
        return known[1]

    def library(
        self, library: LibrarySnapshot, folder: str, report: Callable[[int], None]
    ) -> dict[str, LibraryPicture]:
        """All pictures below a folder of the library, by true name. Reads the blocks and files that this
        machine has not read before; `report` hears of every block."""
        found: dict[str, LibraryPicture] = {}
        for block in library.blocks.keys() - library.fetched:  # which no folder mirrors
            held = library.names_in(block)
            found |= {name: LibraryPicture(sha256) for name, sha256 in held.items() if name.startswith(f"{folder}/")}
            report(1)
        for name, path, content in library.outside_blocks(folder):
            kept = self._kept.get(content)
            if kept is None or _ALONE not in kept:
                kept = {_ALONE: digest(library.content(path))}
                self._kept.put(content, kept)
            found[name] = LibraryPicture(kept[_ALONE], path)
        self._kept.save()
        return found


def state_of(path: Path) -> object:
    """All that changes when a file is written or replaced. Raises OSError if there is none."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def digest(pieces: Iterable[bytes]) -> str:
    """The hash of content, piece by piece."""
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()
