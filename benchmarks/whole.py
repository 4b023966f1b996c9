"""Owns one run of the whole pipeline: filling an empty server with a library and queries, changing it, swapping the
backbone, and the disk space at each point. Knows no goals."""

import sys
import tempfile
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import storage
from benchmarks.changes import CHANGES
from benchmarks.library import Library, Step
from benchmarks.storage import Needed
from pipelines.library import stl10
from pipelines.library.stl10samples import write_stl10

SWAP = "swap"
HISTORY = "with all history"
_SHARE = 0.9
_SEED = 0
_LABELLED = (10, 10)  # of these only the labels are put


@dataclass(frozen=True, slots=True)
class Kept:
    """The bytes on disk at some time, by purpose and without garbage, and the bytes that are needed."""

    when: str
    on_disk: dict[str, int]
    needed: Needed

    @property
    def total(self) -> int:
        """All bytes on disk."""
        return sum(self.on_disk.values())


@dataclass(slots=True)
class Whole:
    """The measurements of a library of `pictures` pictures, queries included: filling it, changing it, what was stored
    when it was full and at the end, the bytes of every repo's newest commit when it was full, and the server's peak
    memory in MiB."""

    pictures: int
    fill: Step
    changes: list[Step] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    repos: dict[str, int] = field(default_factory=dict)
    server_peak: float = 0.0


def measure(number: int, backbone: Path, other: Path, changes: Collection[str]) -> Whole:
    """Fills a server with `number` pictures, a tenth of them queries, and makes changes: those named in `CHANGES`, and
    `SWAP`, which puts the other backbone. Backbones are directories, as stages.zoo writes them. Raises RuntimeError
    if any result is wrong."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        place = Path(scratch)
        print(f" writing {number:,} pictures ...", file=sys.stderr, flush=True)
        write_stl10(place / "stl10", number, _LABELLED)
        library = Library(place / "root", stl10.split(place / "stl10", _SHARE, _SEED))
        with library.running():
            whole = Whole(number, library.fill(backbone, stl10.labels(place / "stl10")))
            whole.server_peak = library.server.peak
        with library.running():
            whole.repos = storage.by_repo(library.connection)
            whole.kept.append(_kept("full", library))
            for name, make in CHANGES.items():
                whole.changes += make(library, place) if name in changes else ()
            if SWAP in changes:
                whole.changes.append(library.swap(other))
            whole.server_peak = max(whole.server_peak, library.server.peak)
        with library.running():
            whole.kept.append(_kept(HISTORY, library))
            library.forget_history()
        with library.running():
            whole.kept.append(_kept("history forgotten", library))
        return whole


def room(pictures: int) -> int:
    """The bytes of disk that a run of this size may take."""
    return (2 << 30) + pictures * 140_000


def _kept(when: str, library: Library) -> Kept:
    return Kept(when, storage.on_disk(library.server.directory), storage.needed(library.connection, library.sources))
