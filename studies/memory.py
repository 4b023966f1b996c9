"""Searches of a library that is larger than the memory: `python -m studies.memory --help`.

Made vectors lie in files. A process whose own memory is limited to a third of them opens them as the service does, with
copies in 8-bit integers in memory and the vectors mapped. It answers one question at a time, with the files in the
system's cache, and after they were dropped from it. FAISS's 8-bit index, which is approximate, answers the same ones in
a process of its own.
"""

import argparse
import ctypes
import json
import mmap
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from benchmarks.kit.trees import status_mib
from stages.files.vector_files import release
from stages.knn.backend import BoundsProvider, Rows, Vectors
from stages.knn.bounded_search import nearest
from stages.knn.joint_queries import JointQueries, LibraryPart
from stages.knn.searcher_factory import open_bounding, open_copy
from stages.knn.vector_set import VectorSet
from stages.serving.run.service_runner import configure_allocator

_PARTS, _FACTORS, _KINDS = 16, 64, 500
_DRAWN = 7
"""Parts whose vectors are drawn; the others have these again, rolled, since drawing takes most of the time."""

_QUESTIONS, _ROUNDS, _K = 60, 3, 3
_BESIDE = 400 << 20
"""Bytes that the interpreter, its libraries and the bounds of one question take beside the vectors' third."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the vectors, asks in two processes, prints what they say as JSON lines, and removes the vectors."""
    parser = argparse.ArgumentParser(prog="python -m studies.memory", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pictures", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--dimension", type=int, default=1280, metavar="D")
    parser.add_argument("--metric", choices=("euclidean", "cosine"), default="euclidean")
    parser.add_argument("--ask", choices=("ours", "faiss"), help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help="the disk for the vectors")
    given = parser.parse_args(arguments)
    if given.ask:
        asked = ours if given.ask == "ours" else faiss_sq8
        print(json.dumps({given.ask: asked(given.place, given.metric)}))
        return 0
    with tempfile.TemporaryDirectory(prefix="lookalike-", dir=given.place) as scratch:
        write(Path(scratch), given.pictures, given.dimension)
        for who in ("ours", "faiss"):
            command = [sys.executable, "-m", "studies.memory", f"--ask={who}", f"--place={scratch}"]
            subprocess.run([*command, f"--metric={given.metric}"], check=True)
    print(json.dumps({"load": os.getloadavg(), "pictures": given.pictures, "dimension": given.dimension}))
    return 0


def write(place: Path, pictures: int, dimension: int) -> None:
    """Rectified mixtures of few factors around the centres of some kinds, as those of benchmarks.kit.madeindex."""
    shared = np.random.default_rng(99)
    mixing = shared.standard_normal((_FACTORS, dimension), np.float32) / np.float32(_FACTORS**0.5)
    centres = shared.standard_normal((_KINDS, _FACTORS), np.float32)
    for part in range(_PARTS):
        if part >= _DRAWN:
            _roll(place, part)
            continue
        own, left = np.random.default_rng(part), pictures * (part + 1) // _PARTS - pictures * part // _PARTS
        with (place / f"{part:x}.npy").open("wb") as file:
            _header(file, left, dimension)
            while left:
                count = min(left, 16_384)
                factors = centres[own.integers(_KINDS, size=count)]
                factors += np.float32(0.6) * own.standard_normal((count, _FACTORS), np.float32)
                some = factors @ mixing
                some += np.float32(0.05) * own.standard_normal((count, dimension), np.float32)
                np.maximum(some, 0, out=some)
                some.tofile(file)
                left -= count
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _roll(place: Path, part: int) -> None:
    """Writes the vectors of an earlier part again, with their numbers in another order."""
    before = np.load(place / f"{part % _DRAWN:x}.npy", mmap_mode="r")
    with (place / f"{part:x}.npy").open("wb") as file:
        _header(file, *before.shape)
        for start in range(0, len(before), 16_384):
            np.roll(before[start : start + 16_384], part, axis=1).tofile(file)
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _header(file: BinaryIO, count: int, dimension: int) -> None:
    shape = {"descr": "<f4", "fortran_order": False, "shape": (count, dimension)}
    np.lib.format.write_array_header_1_0(file, shape)  # type: ignore[no-untyped-call]


def ours(place: Path, metric: str) -> dict[str, Any]:
    """The figures of the exact search, in a process whose own memory is limited."""
    configure_allocator()
    mapped = [np.load(each, mmap_mode="r") for each in sorted(place.glob("*.npy"))]
    size = sum(each.nbytes for each in mapped)
    resource.setrlimit(resource.RLIMIT_DATA, (size // 3 + _BESIDE,) * 2)
    begun, busy = time.perf_counter(), time.process_time()
    sets = []
    for each in mapped:
        sets.append(VectorSet(each, metric))
        release(each)
    opened = time.perf_counter() - begun
    parts, start, centre = list[LibraryPart](), 0, None
    for points, each in zip(sets, mapped, strict=True):
        copy = open_copy(points.rows, centre)
        assert copy is not None and copy.usable
        release(each, scattered=True)
        bounding: BoundsProvider = copy
        parts.append(LibraryPart(start, points, bounding))
        start, centre = start + len(points), copy.centre
    made = {"open_s": opened, "ready_s": time.perf_counter() - begun, "ready_cpu_s": time.process_time() - busy}
    rows = np.random.default_rng(1).integers(start, size=_QUESTIONS)
    asked = [_question(mapped, row, metric) for row in rows.tolist()]
    _drop(mapped)
    before = _resident(mapped)
    found = [nearest(parts, each, _K) for each in asked]
    touched = _resident(mapped) - before
    best = _best(lambda each: nearest(parts, each, _K), asked)
    cold = _best(lambda each: nearest(parts, each, _K), asked, lambda: _drop(mapped))
    plain = open_bounding(sets[0].rows)
    for question, answer in zip(asked[:5], found, strict=False):  # the definition, over the first part
        kept = answer.rows[0][answer.rows[0] < len(sets[0])]
        true = question.points.distances(np.zeros(len(kept), np.int64), sets[0], kept)
        assert np.isin(true, answer.distances[0]).all()
        alone = nearest([LibraryPart(0, sets[0], plain)], question, _K).rows[0]
        assert np.isin(kept, alone).all()
    own = {each: round(status_mib("self", each)) for each in ("RssAnon", "VmHWM")}
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0] >> 20
    return made | own | {
        "vectors_mib": size >> 20,
        "limit_mib": limit,
        "share_touched": touched / size,
        "mib_touched_per_question": touched / _QUESTIONS / 2**20,
        "cached": best,
        "dropped": cold,
    }  # fmt: skip


def faiss_sq8(place: Path, metric: str) -> dict[str, Any]:
    """The figures of FAISS's flat 8-bit index, which compares no true distances."""
    import faiss

    faiss.omp_set_num_threads(2)
    mapped = [np.load(each, mmap_mode="r") for each in sorted(place.glob("*.npy"))]
    kind = faiss.METRIC_L2 if metric == "euclidean" else faiss.METRIC_INNER_PRODUCT
    index = faiss.IndexScalarQuantizer(mapped[0].shape[1], faiss.ScalarQuantizer.QT_8bit, kind)
    index.train(_units(mapped[0][:20_000], metric))
    for each in mapped:
        for start in range(0, len(each), 16_384):
            index.add(_units(each[start : start + 16_384], metric))
        release(each)
    rows = np.random.default_rng(1).integers(index.ntotal, size=_QUESTIONS)
    points = [_units(_question(mapped, row, metric).points.vectors, metric) for row in rows.tolist()]
    best = _best(lambda each: index.search(each, _K), points)
    return {"RssAnon": round(status_mib("self", "RssAnon")), "cached": best}


def _units(vectors: Vectors, metric: str) -> Vectors:
    return VectorSet(np.array(vectors), metric).prepared


def _question(mapped: Sequence[Vectors], row: int, metric: str) -> JointQueries:
    """About a point near a library vector."""
    ends = np.cumsum([len(each) for each in mapped])
    at = int(np.searchsorted(ends, row, side="right"))
    point = np.array(mapped[at][row - (ends[at] - len(mapped[at]))])[None]
    noise = np.random.default_rng(row).standard_normal(point.shape, np.float32)
    nobody: Rows = np.full(1, -1, np.int64)
    return JointQueries.single(VectorSet(point + np.float32(0.05) * noise, metric), nobody)


def _best(
    ask: Callable[[Any], object], asked: Sequence[Any], first: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """Of each question the least time of some rounds, in milliseconds, and the processor time of all."""
    took, busy = np.full((_ROUNDS, len(asked)), np.inf), 0.0
    for turn in range(_ROUNDS):
        for number, each in enumerate(asked):
            first()
            begun, used = time.perf_counter(), time.process_time()
            ask(each)
            took[turn, number], busy = time.perf_counter() - begun, busy + time.process_time() - used
    least = (1000 * took.min(axis=0)).tolist()
    return {
        "median_ms": statistics.median(least),
        "p95_ms": statistics.quantiles(least, n=20)[-1],
        "cpu_ms": 1000 * busy / took.size,
    }


def _drop(mapped: Sequence[Vectors]) -> None:
    """Takes the files out of the system's cache, too."""
    for each in mapped:
        release(each)
        with Path(each.filename).open("rb") as file:  # type: ignore[attr-defined]
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _resident(mapped: Sequence[Vectors]) -> int:
    """The bytes of the files that are in the system's cache."""
    libc, found = ctypes.CDLL(None, use_errno=True), 0
    for each in mapped:
        address = each.ctypes.data & ~(mmap.PAGESIZE - 1)
        pages = -(-(each.ctypes.data + each.nbytes - address) // mmap.PAGESIZE)
        there = (ctypes.c_ubyte * pages)()
        if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(pages * mmap.PAGESIZE), there):
            raise OSError(ctypes.get_errno(), "mincore")
        found += int((np.frombuffer(bytes(there), np.uint8) & 1).sum()) * mmap.PAGESIZE
    return found


if __name__ == "__main__":
    sys.exit(main())
