"""Owns one run of the whole pipeline: a library of some size and its queries put into an empty server, changes of it,
another backbone, and what is on disk meanwhile. Says nothing of goals."""

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
_LABELLED = (10, 10)  # what has labels is not put, but for the labels


@dataclass(frozen=True, slots=True)
class Kept:
    """What is stored at some time: bytes on disk by what they are for, collected garbage not counted, and needed."""

    when: str
    on_disk: dict[str, int]
    needed: Needed

    @property
    def total(self) -> int:
        """All bytes on disk."""
        return sum(self.on_disk.values())


@dataclass(slots=True)
class Whole:
    """What was measured with a library of `pictures` pictures, queries included: filling it, changes, what was stored
    when it was full and at the end, bytes of every repo's newest commit when it was full, and the most memory that the
    server held, in MiB."""

    pictures: int
    fill: Step
    changes: list[Step] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    repos: dict[str, int] = field(default_factory=dict)
    server_peak: float = 0.0


def measure(number: int, backbone: Path, other: Path, changes: Collection[str]) -> Whole:
    """Fills a server with `number` pictures, a tenth of them queries, and makes changes: those named in `CHANGES`, and
    `SWAP`, which puts the other backbone. Backbones are directories, as stages.zoo writes them. Raises RuntimeError
    where anything comes out wrong."""
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
    """Bytes of disk that a run of that size may take."""
    return (2 << 30) + pictures * 140_000


def _kept(when: str, library: Library) -> Kept:
    return Kept(when, storage.on_disk(library.server.directory), storage.needed(library.connection, library.sources))
