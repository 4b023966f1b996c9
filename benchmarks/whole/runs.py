"""Owns one run of the whole pipeline: filling an empty server with a library and queries, changing it, swapping the
backbone, the disk space at each point, and bare forward passes before and after the filling. Knows no goals."""

import shutil
import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.kit import report
from benchmarks.races import original, passes
from benchmarks.races.passes import Pass
from benchmarks.whole import storage
from benchmarks.whole.changes import CHANGES
from benchmarks.whole.journal import Journal
from benchmarks.whole.library import Library, Step
from benchmarks.whole.storage import Needed
from benchmarks.whole.supply import Supply, supply
from pipelines.cluster import library_overview

SWAP = "swap"
HISTORY = "with all history"


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """A library to measure: the number of its pictures, queries included, and their side in pixels."""

    pictures: int
    side: int

    def __str__(self) -> str:
        return f"{self.pictures:,} pictures, {self.side} px"


@dataclass(frozen=True, slots=True)
class Kept:
    """The bytes on disk at some time, by purpose, and the bytes that are needed."""

    when: str
    on_disk: dict[str, int]
    needed: Needed

    @property
    def total(self) -> int:
        """All bytes on disk but those of garbage, which lies in the trash for a day."""
        return sum(size for kind, size in self.on_disk.items() if kind != storage.TRASH)


@dataclass(slots=True)
class Whole:
    """The measurements of a library: filling it, changing it, what was stored when it was full and at the end, the
    bytes of every repo's newest commit when it was full, the server's peak memory in MiB, the distinct pictures of the
    library, and the bare forward passes of a sample."""

    size: Size
    fill: Step
    passes: list[Pass]
    changes: list[Step] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    repos: dict[str, int] = field(default_factory=dict)
    server_peak: float = 0.0
    distinct: int = 0

    @staticmethod
    def parsed(size: Size, value: Mapping[str, Any]) -> "Whole":
        """The measurements of which `value` has the fields."""
        return Whole(
            size,
            Step.parsed(value["fill"]),
            [Pass(**each) for each in value["passes"]],
            [Step.parsed(each) for each in value["changes"]],
            [Kept(each["when"], each["on_disk"], Needed(**each["needed"])) for each in value["kept"]],
            value["repos"],
            value["server_peak"],
            value["distinct"],
        )


def measure(size: Size, place: Path, backbone: Path, other: Path, changes: Collection[str]) -> Whole:
    """Fills a server with pictures, of which at most a tenth are queries, and makes changes: those named in `CHANGES`,
    and `SWAP`, which puts the other backbone. Backbones are directories, as stages.zoo writes them. What the
    directory
    `place` holds of an interrupted run is not repeated. Raises RuntimeError if any result is wrong."""
    settings = {
        "pictures": size.pictures,
        "pixels": size.side,
        "backbone": backbone.name,
        "changes": sorted(changes),
        "commit": report.commit(),
    }
    place.mkdir(parents=True, exist_ok=True)
    journal = Journal(place / "journal.json", settings)
    if done := journal.get("whole"):
        return Whole.parsed(size, done)
    pictures = supply(place, size.pictures)
    library = Library(place / "root", pictures, original.specifications(size.side), journal)
    first = _prepared(size, place, pictures, backbone, journal)
    with library.running():
        fill = library.fill(backbone)
        peak = journal.once("server peak, full", lambda: library.server.peak)
    second = journal.once("passes after", lambda: asdict(passes.measure(place)))
    whole = Whole(size, fill, [Pass(**first), Pass(**second)], server_peak=peak)
    with library.running():
        whole.repos = journal.once("repos", lambda: storage.by_repo(library.connection))
        whole.distinct = journal.once("distinct", lambda: library_overview.pictures(library.connection))
        whole.kept.append(_kept("full", library))
        for name, make in CHANGES.items():
            whole.changes += make(library, place) if name in changes else ()
        if SWAP in changes:
            whole.changes.append(library.swap(other))
        whole.server_peak = max(peak, journal.once("server peak, changed", lambda: library.server.peak))
    with library.running():
        whole.kept.append(_kept(HISTORY, library))
        library.forget_history()
    with library.running():
        whole.kept.append(_kept("history forgotten", library))
    journal.keep("whole", asdict(whole))
    shutil.rmtree(place / "root")
    return whole


def _prepared(size: Size, place: Path, pictures: Supply, backbone: Path, journal: Journal) -> dict[str, Any]:
    """Writes the pictures unless they are there or have been put, and measures bare passes of a sample."""
    if not journal.get("put: fill, images") and not pictures.library.exists():
        print(f" writing {size.pictures:,} pictures ...", file=sys.stderr, flush=True)
        pictures.write()

    def measured() -> dict[str, Any]:
        passes.prepare(place, backbone, pictures.sample(passes.PICTURES, size.side))
        return asdict(passes.measure(place))

    return journal.once("passes before", measured)


def room(pictures: int, side: int, changes: Collection[str]) -> int:
    """The bytes of disk that a run of this size may take: each picture's file, twice until it is put, and later its
    pixels, which the code of packs brings to less than a third, tables, and three copies each of its thumbnail and its
    vector. The change `more` writes two of these once more, since it touches nearly all buckets and all segments."""
    derived = side**2 + (40_000 if "more" in changes else 24_000)
    return (2 << 30) + pictures * (28_000 + max(28_000, derived))


def _kept(when: str, library: Library) -> Kept:
    def look() -> dict[str, Any]:
        on_disk = storage.on_disk(library.server.directory)
        return {"on_disk": on_disk, "needed": asdict(storage.needed(library.connection, library.sources))}

    found = library.journal.once(f"kept {when}", look)
    return Kept(when, found["on_disk"], Needed(**found["needed"]))
