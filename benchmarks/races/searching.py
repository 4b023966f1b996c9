"""Owns the measurement of exact search: ours beside scikit-learn, FAISS, cuML if there is a GPU, and the fastest bare
matrix product of the same run, each warm and in a process of its own, in turns; and their agreement."""

import importlib.util
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.kit.contenders import Taken, race
from benchmarks.kit.report import Line, Result, Row, line
from benchmarks.races.agreement import agreement
from stages.datum.visible_gpus import gpu_visible

DIMENSION = 2048
FILES = ("library.npy", "queries.npy")
_CHUNK = 10_000
_KERNELS = {
    "Haswell": {"avx2", "fma"},
    "SkylakeX": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "Cooperlake": {"avx512f", "avx512_bf16"},
    "SapphireRapids": {"avx512f", "avx512_bf16", "avx512_fp16"},
    "Zen": {"avx2", "fma", "sse4a"},
}
"""The kernels of OpenBLAS that can be the fastest, and the instructions that each needs. On an older processor OpenBLAS
chooses."""

_MODULE = "benchmarks.races.searchers"
_CEILING, _TIMES_FAISS, _TIMES_SKLEARN, _MEMORY = 1.15, 1.0, 3.0, 1536.0


def measure(pictures: int, rounds: int, sklearn: bool = True, vectors: Path | None = None) -> Result:
    """Searches for a tenth of `pictures` generated vectors among the rest, 2,048 numbers each, k = 3; or for the
    queries.npy of the directory `vectors` in its library.npy."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        directory = Path(scratch)
        if vectors is None:
            _write_vectors(directory, pictures - pictures // 10, pictures // 10)
        else:
            for name in FILES:
                (directory / name).symlink_to((vectors / name).absolute())
        (count, dimension), (queries, _) = (np.load(directory / name, mmap_mode="r").shape for name in FILES)
        products = {"numpy": {}, **_by_kernels(), "tensorflow": {"CUDA_VISIBLE_DEVICES": ""}, "onnxruntime": {}}
        names, absent = _searchers(sklearn)
        taken = race(_MODULE, directory, [*products, *names], rounds, products)
        agreed = agreement(directory, names, "made vectors" if vectors is None else "the given vectors")
    operations = 2.0 * queries * count * dimension
    fastest = min(products, key=lambda name: taken[name].seconds)
    rows = [_row("product", name, taken[name], operations) for name in products]
    rows += [
        _row("knn", "ceiling", taken[fastest], queries),
        *(_row("knn", name, taken[name], queries) for name in names),
    ]
    lines = [
        Line(f"bare product, {name}", f"{each.seconds:.2f} s", f"{operations / each.seconds / 1e9:,.0f} GFLOP/s")
        for name, each in taken.items()
        if name in products
    ]
    ours, bound = taken["ours"].seconds, taken[fastest].seconds
    what = f"search {queries:,} × {count:,} × {dimension:,}"
    goal = f"{_CEILING} × the product"
    lines.append(line(f"{what}, ours, beside {fastest}", ours, bound, "s", goal, ours <= _CEILING * bound, 2))
    lines.append(_in_processor_time(taken, list(products)))
    lines += [_beside(name, taken, queries) for name in names]
    peak = taken["ours"].peak_mib
    lines.append(line("peak memory of ours", peak, None, "MiB", f"under {_MEMORY:,.0f} MiB", peak < _MEMORY, 0))
    return Result((*rows, *agreed.rows), (*lines, *absent, *agreed.lines))


def compare(directory: Path, what: str, rounds: int, sklearn: bool, also: Sequence[str] = ()) -> Result:
    """Every search of the vectors in a directory (library.npy, queries.npy), described by `what`, and the agreement of
    the answers with each other and with those of `also`, which are there already."""
    names, _ = _searchers(sklearn)
    taken = race(_MODULE, directory, names, rounds)
    agreed = agreement(directory, [*names, *also], what)
    queries = len(np.load(directory / "queries.npy", mmap_mode="r"))
    rows = [_row(f"knn, {what}", name, taken[name], queries) for name in names]
    lines = [Line(f"search, {what}, {name}", _said(taken[name], queries, 3)) for name in names]
    return Result((*rows, *agreed.rows), (*lines, *agreed.lines))


def _searchers(sklearn: bool) -> tuple[list[str], list[Line]]:
    """The searchers that can run here, ours first; and a line on cuML if it cannot."""
    without = _without_cuml()
    names = ["ours", "faiss", *(["sklearn"] if sklearn else []), *([] if without else ["cuml"])]
    return names, [Line("search, cuml", without)] if without else []


def _without_cuml() -> str:
    """The reason that cuML cannot be measured, or ""."""
    if not gpu_visible(os.environ):
        return "not measured: no NVIDIA GPU"
    return "" if importlib.util.find_spec("cuml") else "not measured: cuML is not installed"


def _row(section: str, name: str, taken: Taken, things: float) -> Row:
    return Row(section, name, taken.seconds, things / taken.seconds, taken.peak_mib)


def _said(taken: Taken, queries: int, digits: int = 2) -> str:
    return f"{taken.seconds:,.{digits}f} s, {queries / taken.seconds:,.0f} queries/s, {taken.peak_mib:,.0f} MiB"


def _in_processor_time(taken: Mapping[str, Taken], products: Sequence[str]) -> Line:
    """Ours beside the product that takes the least, of all threads: on a busy machine the seconds depend on luck."""
    cheapest = min(products, key=lambda name: taken[name].processor)
    what = f"the same in processor time, beside {cheapest}"
    return line(what, taken["ours"].processor, taken[cheapest].processor, "s", digits=2)


def _beside(name: str, taken: Mapping[str, Taken], queries: int) -> Line:
    times = taken[name].seconds / taken["ours"].seconds
    goal = {"faiss": _TIMES_FAISS, "sklearn": _TIMES_SKLEARN}.get(name)
    return Line(
        f"search, {name}",
        _said(taken[name], queries),
        "",
        "" if name == "ours" else f"{times:.2f} × ours",
        "" if goal is None else f"over {goal:g} × ours",
        "" if goal is None else "yes" if times > goal else "no",
    )


def _by_kernels() -> dict[str, Mapping[str, str]]:
    """The bare products with each kind of kernels, and the variable that chooses it."""
    return {f"numpy:{each}": {"OPENBLAS_CORETYPE": each} for each in _kernels()}


def _write_vectors(directory: Path, library: int, queries: int) -> None:
    """Writes vectors like those of a pooling network: never negative, in clusters, with far fewer directions than
    numbers; one in a hundred is a copy."""
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
    """The kinds of kernels that this processor can run."""
    if not cpuinfo.is_file():
        return []
    flags = set(cpuinfo.read_text(errors="replace").partition("flags")[2].partition("\n")[0].split())
    return [name for name, needed in _KERNELS.items() if needed <= flags]
