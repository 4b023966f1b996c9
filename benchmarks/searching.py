"""Owns the measurement of exact search on the CPU: ours beside scikit-learn, FAISS and the fastest bare matrix product
of the same run, each warm and in a process of its own, in turns; and how far their answers agree."""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Line, Result, Row, interleaved, line

DIMENSION = 2048
_CHUNK = 10_000
_KERNELS = {
    "Haswell": {"avx2", "fma"},
    "SkylakeX": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "Cooperlake": {"avx512f", "avx512_bf16"},
    "SapphireRapids": {"avx512f", "avx512_bf16", "avx512_fp16"},
    "Zen": {"avx2", "fma", "sse4a"},
}
"""OpenBLAS's sorts of kernels, and what a processor must have for each."""


class Contender:
    """A process that does one thing over and over; see benchmarks.contenders."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.peak_mib: float | None = None
        kernels = name.partition(":")[2]
        self._complaints = directory / f"{name}.err"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.contenders", name, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints.open("w"),
            text=True,
            env={**os.environ, **({"OPENBLAS_CORETYPE": kernels} if kernels else {})},
        )

    def __enter__(self) -> "Contender":
        self._said("ready")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()

    def seconds(self) -> float:
        """Does it once more."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._said())

    def finish(self) -> None:
        """Lets it write its answers and say its peak."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self.peak_mib = round(float(self._said()), 1)

    def _said(self, wanted: str = "") -> str:
        assert self._process.stdout is not None
        said = self._process.stdout.readline().strip()
        if not said or (wanted and said != wanted):
            self._process.wait()
            why = self._complaints.read_text(errors="replace").strip().splitlines()
            raise RuntimeError(f"{self.name} does not run here: {why[-1] if why else 'it ended'}")
        return said


def measure(pictures: int, rounds: int, sklearn: bool = True) -> Result:
    """The search of a tenth of so many vectors among the rest, 2,048 numbers each, k = 3."""
    queries = pictures // 10
    operations = 2.0 * queries * (pictures - queries) * DIMENSION
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, ExitStack() as stack:
        directory = Path(scratch)
        _write_vectors(directory, pictures - queries, queries)
        products = ["numpy", *(f"numpy:{each}" for each in _kernels()), "tensorflow"]
        searchers = ["ours", "faiss", *(["sklearn"] if sklearn else [])]
        running = [stack.enter_context(Contender(name, directory)) for name in (*products, *searchers)]
        taken = dict(
            zip((each.name for each in running), interleaved(rounds, *(e.seconds for e in running)), strict=True)
        )
        for each in running:
            each.finish()
        peaks = {each.name: each.peak_mib for each in running}
        fastest = min(products, key=taken.__getitem__)
        rows = [Row("knn", "ceiling", taken[fastest], queries / taken[fastest], peaks[fastest])]
        rows += [Row("product", name, taken[name], operations / taken[name], peaks[name]) for name in products]
        rows += [Row("knn", name, taken[name], queries / taken[name], peaks[name]) for name in searchers]
        agreed = _agreements(directory, searchers)
    what = f"{queries:,} × {pictures - queries:,} × {DIMENSION:,}"
    lines = [
        Line(f"bare product, {name}", f"{taken[name]:.2f} s", f"{operations / taken[name] / 1e9:,.0f} GFLOP/s")
        for name in products
    ]
    ratio = taken["ours"] / taken[fastest]
    lines.append(
        line(f"search {what}, ours, beside {fastest}", taken["ours"], taken[fastest], "s", "1.15", ratio <= 1.15, 2)
    )
    for name, goal in (("faiss", 1.0), ("sklearn", 3.0)):
        if name in taken:
            times = taken[name] / taken["ours"]
            lines.append(
                Line(
                    f"search, {name}",
                    f"{taken[name]:.2f} s",
                    "",
                    f"{times:.2f} × ours",
                    f"over {goal:g}",
                    "yes" if times > goal else "no",
                )
            )
    lines.append(
        Line(
            "peak memory of ours",
            f"{peaks['ours']:,.0f} MiB",
            "",
            "",
            "1,536 MiB",
            "yes" if (peaks["ours"] or 0) < 1536 else "no",
        )
    )
    return Result((*rows, *agreed[0]), (*lines, *agreed[1]))


def _agreements(directory: Path, names: list[str]) -> tuple[list[Row], list[Line]]:
    """Between all pairs: the most that distances differ, and the share of neighbours that are the same or as near."""
    found = {name: np.load(directory / f"{name}.npz") for name in names}
    rows, lines = [], []
    for one, other in combinations(names, 2):
        apart = np.abs(found[one]["distances"] - found[other]["distances"])
        same = (found[one]["rows"] == found[other]["rows"]) | (apart <= 1e-5 * found[one]["distances"])
        rows.append(Row("agreement", f"{one} and {other}", rate=float(same.mean())))
        said = f"{same.mean():.2%} of neighbours, distances within {apart.max():.2g}"
        lines.append(
            Line(
                f"agreement of {one} and {other}",
                said,
                "",
                "",
                "distances within 1",
                "yes" if apart.max() < 1 else "no",
            )
        )
    return rows, lines


def _write_vectors(directory: Path, library: int, queries: int) -> None:
    """Vectors as a network's pooled ones are: never negative, in clusters, of far fewer directions than numbers; one in
    a hundred is a copy."""
    random = np.random.default_rng(0)
    ways = random.standard_normal((48, DIMENSION), np.float32)
    centres = random.standard_normal((200, 48), np.float32)
    for name, count in (("library", library), ("queries", queries)):
        file = np.lib.format.open_memmap(  # type: ignore[no-untyped-call]
            directory / f"{name}.npy", mode="w+", dtype=np.float32, shape=(count, DIMENSION)
        )
        for start in range(0, count, _CHUNK):
            some = file[start : start + _CHUNK]
            some[:] = _some(random, ways, centres, len(some))
        file.flush()


def _some(
    random: np.random.Generator, ways: NDArray[np.float32], centres: NDArray[np.float32], count: int
) -> NDArray[np.float32]:
    inner = centres[random.integers(0, len(centres), count)] + 0.5 * random.standard_normal((count, 48), np.float32)
    vectors = np.maximum(inner @ ways + random.standard_normal((count, DIMENSION), np.float32), 0).astype(np.float32)
    copies = random.integers(0, count, count // 100)
    vectors[copies] = vectors[random.integers(0, count, count // 100)]
    return vectors


def _kernels(cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str]:
    """The sorts of kernels that this processor can run."""
    if not cpuinfo.is_file():
        return []
    flags = set(cpuinfo.read_text(errors="replace").partition("flags")[2].partition("\n")[0].split())
    return [name for name, needed in _KERNELS.items() if needed <= flags]
