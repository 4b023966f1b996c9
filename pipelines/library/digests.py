"""Pictures by the hash of their content: of files on disk, and of those in the library.

The server tells the hashes of files and blocks, which depend on the way it stores them and say nothing about the
pictures in a block. So each is read once, and the hashes of its pictures are kept on this machine, by its own hash:
they can be missing, but not wrong. A file on disk is read again whenever anything about it has changed.
"""

import contextlib
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines.library import blocks
from pipelines.library.pictures import Source
from pipelines.library.snapshots import Snapshot

Report = Callable[[int], None]

_KEPT_DAYS = 60
"""For which what a block held is kept after it was last used."""

_ALONE = ""
"""The name of the only picture of a file that is no block."""


def default_place() -> Path:
    """The file that keeps what blocks hold."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "lookalike" / "pictures.sqlite"


@dataclass(frozen=True, slots=True)
class Held:
    """A picture in the library: its hash, and the path of its file, "" if it is in a block."""

    digest: str
    path: str = ""


class Digests:
    """The hashes of pictures, as SHA-256 in hex digits."""

    def __init__(self, place: Path) -> None:
        """place: see `default_place`. If it cannot be used, nothing is kept."""
        self._kept = _Kept(place)
        self._files: dict[Path, tuple[object, str]] = {}
        """Of files on disk, with their states when they were read."""

    def file(self, source: Source) -> str:
        """The hash of a file on disk. Raises OSError if it cannot be read, or is written meanwhile."""
        state = state_of(source.path)
        known = self._files.get(source.path)
        if known is None or known[0] != state:
            known = state, _digest(blocks.content(source.span))
            if state_of(source.path) != state:
                raise OSError(0, "it has changed while it was read", str(source.path))
            self._files[source.path] = known
        return known[1]

    def library(self, library: Snapshot, folder: str, report: Report) -> dict[str, Held]:
        """All pictures below a folder of the library, by true name. Reads the blocks and files that this
        machine has not read before; `report` hears of every block."""
        found: dict[str, Held] = {}
        for prefix, content in library.blocks.items():
            held = self._kept.get(content)
            if held is None:
                held = {name: _digest(blocks.content(span)) for name, span in library.block(prefix).items()}
                library.forget(prefix)
                self._kept.put(content, held)
            found |= {name: Held(digest) for name, digest in held.items() if name.startswith(f"{folder}/")}
            report(1)
        for name, path, content in library.outside_blocks(folder):
            held = self._kept.get(content)
            if held is None or _ALONE not in held:
                held = {_ALONE: _digest(library.content(path))}
                self._kept.put(content, held)
            found[name] = Held(held[_ALONE], path)
        self._kept.save()
        return found


def state_of(path: Path) -> object:
    """All that changes when a file is written or replaced. Raises OSError if there is none."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _digest(pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


class _Kept:
    """The hashes of the pictures in blocks and files of the library, in a database of this machine."""

    def __init__(self, place: Path) -> None:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            self._database = self._open(str(place))
        except (OSError, sqlite3.Error):  # a home that cannot be written to
            self._database = self._open(":memory:")

    def get(self, content: bytes) -> dict[str, str] | None:
        for (pictures,) in self._read("SELECT pictures FROM held WHERE content = ?", content):
            self._write("UPDATE held SET used = ? WHERE content = ?", time.time(), content)
            held: dict[str, str] = json.loads(pictures)
            return held
        return None

    def put(self, content: bytes, held: dict[str, str]) -> None:
        self._write("INSERT OR REPLACE INTO held VALUES (?, ?, ?)", content, json.dumps(held), time.time())

    def save(self) -> None:
        """Makes what was put last, and forgets what was not used for long."""
        self._write("DELETE FROM held WHERE used < ?", time.time() - _KEPT_DAYS * 86400)
        with contextlib.suppress(sqlite3.Error):
            self._database.commit()

    def _open(self, place: str) -> sqlite3.Connection:
        database = sqlite3.connect(place, timeout=10)
        database.execute("CREATE TABLE IF NOT EXISTS held (content BLOB PRIMARY KEY, pictures TEXT, used REAL)")
        return database

    def _read(self, query: str, *values: object) -> Iterator[tuple[str]]:
        with contextlib.suppress(sqlite3.Error):
            yield from self._database.execute(query, values)

    def _write(self, query: str, *values: object) -> None:
        with contextlib.suppress(sqlite3.Error):  # a full disk, or a database that another process holds for long
            self._database.execute(query, values)
