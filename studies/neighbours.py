"""The opt-in pipelines of near pictures, on an index that is made: `python -m studies.neighbours --help`.

The index is put into a localpachd, in place of the pipeline that writes it; the bound is the matrix product of every
pair of segments in float32 alone. The time for a million pictures is calculated, and said to be.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.kit import program, segments, servers
from benchmarks.kit.engine import Work, settle
from benchmarks.kit.madeindex import SEGMENTS, MadeIndex
from benchmarks.kit.program import positive
from benchmarks.kit.report import Line, Result, Row, line, timed
from benchmarks.kit.trees import Tree
from pipelines.client.deployment import deployment
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection, ServerTarget, connect
from pipelines.specifications import optional_specs, pipeline_specs
from pipelines.specifications.pipeline_specs import PipelineSpec
from stages.datum.text_format import counted
from stages.files import thumbnail_files, vector_files
from stages.files.tables.index_table import TABLE

PACKAGES = ("numpy", "onnxruntime", "pyarrow", "grpcio")
GROUP = "duplicates"

_PRODUCTS = 4  # pairs of segments whose products are measured
_MILLION = 1_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures a library of the size that the arguments (the command line's by default) name, and prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.neighbours",
        description="Measures the opt-in pipelines of near pictures on localpachd, with an index that is made.",
    )
    parser.add_argument("--pictures", type=positive, default=10_000, metavar="N", help="size of the library")
    parser.add_argument(
        "--left", type=int, choices=range(1, 17), default=16, metavar="N", help="left segments, of 16, to compute"
    )
    given = program.parse(parser, (), arguments)
    given.sections = [f"{given.pictures:,} pictures"]
    program.exit_on_sigterm()
    program.run(given, lambda name: measure(name, MadeIndex(given.pictures), given.left), PACKAGES)
    return 0


@dataclass(frozen=True, slots=True)
class Measured:
    """All that was measured: the work for all pictures, and for one more, by pipeline; the seconds of the products of
    as many pairs of segments; the bytes of the files of a segment, and of the output; MiB of memory."""

    built: Mapping[str, Work]
    added: Mapping[str, Work]
    product: float
    sizes: Mapping[str, int]
    written: int
    peak: float


def measure(name: str, index: MadeIndex, left: int) -> Result:
    """Computes the pairs of the first `left` segments with all others, and then what one more picture changes."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        place = Path(scratch, "index")
        for segment in SEGMENTS:
            index.write(place, segment)
        sizes = {path.name: _size(path) for path in (place / "0").iterdir()}
        product = _product(place, left)
        with servers.localpachd() as server, Tree(server.process.pid) as tree:
            connection = connect(ServerTarget(f"grpc://127.0.0.1:{server.port}"))
            connection.client.create_repo("index")
            deployment.deploy(connection, _specifications(left))
            built = _put(connection, place)
            peak = tree.peak
            index.write(place, "0", more=1)
            added = _put(connection, place / "0")
            repos = {info.repo.name: info.size_bytes_upper_bound for info in connection.client.list_repo()}
    return _result(name, index, left, Measured(built, added, product, sizes, repos["neighbours"], peak))


def _specifications(left: int) -> list[PipelineSpec]:
    """The specifications, with so many segments on the left."""
    found = {spec.name: spec for spec in optional_specs.required_specs(pipeline_specs.SHIPPED_SPECS, GROUP)}
    document = json.loads(json.dumps(found["neighbours"].document))
    document["input"]["cross"][0]["pfs"]["glob"] = f"/[{SEGMENTS[:left]}]"
    found["neighbours"] = replace(found["neighbours"], document=document)
    return [*found.values()]


def _put(connection: Connection, place: Path) -> dict[str, Work]:
    root = place if place.name == "index" else place.parent
    files = sorted(path for path in place.rglob("*") if path.is_file())
    commit = Repository(connection, "index").write([PutFile(f"/{path.relative_to(root)}", path) for path in files])
    return {work.pipeline: work for work in settle(connection, [commit]).works}


def _product(place: Path, left: int) -> float:
    """The seconds of the products of all those pairs of segments, by the fastest of a few."""
    one, *others = (np.array(segments.vectors(place / name)) for name in SEGMENTS[: _PRODUCTS + 1])
    return min(timed(partial(np.matmul, one, other.T)) for other in others) * left * len(SEGMENTS)


def _size(path: Path) -> int:
    """The bytes of a file, or of the files in a directory."""
    return sum(map(_size, path.iterdir())) if path.is_dir() else path.stat().st_size


def _read(sizes: Mapping[str, int]) -> int:
    """The bytes that all pairs of segments read from the index if each pair has near pictures: everything but the facts
    of the left segment once, the table and vectors of each other one, and its hashes and thumbnails where it is on the
    right of the left one."""
    count = len(SEGMENTS)
    pairs = count * (count - 1)
    always = sizes[TABLE] + sizes[vector_files.DIRECTORY]
    near = sizes["hashes.npy"] + sizes[thumbnail_files.DIRECTORY]
    return count * (always + near) + pairs * always + pairs // 2 * near


def _result(name: str, index: MadeIndex, left: int, found: Measured) -> Result:
    rows, lines = [Row(name, "bound", found.product)], []
    for what, works in (("all pictures", found.built), ("one more", found.added)):
        for work in works.values():
            rows.append(Row(name, f"{what}, {work.pipeline}", work.wall))
            datums = f"{counted(work.processed, 'datum', 'datums')}, {work.skipped:,} skipped"
            lines.append(Line(f"{what}: {work.pipeline}", f"{work.wall:,.1f} s, {datums}"))
    pairs, whole = left * len(SEGMENTS), len(SEGMENTS) ** 2
    wall, product = (each * whole / pairs for each in (found.built["neighbours"].wall, found.product))
    measured = "" if pairs == whole else f", {whole // pairs} times those of {pairs} pairs"
    read, times = _read(found.sizes), _MILLION / index.pictures
    changed = (2 * len(SEGMENTS) - 1) / whole
    million = f"a million, calculated from {index.pictures:,}"
    lines += [
        line(f"all {whole} pairs of segments{measured}, beside the products", wall, product, "s"),
        Line("read from the index", f"{read / 1e9:,.2f} GB", f"{sum(found.sizes.values()) * 16 / 1e9:,.2f} GB"),
        Line("written", f"{found.written * whole / pairs / 1e6:,.1f} MB"),
        Line("peak memory of server and workers", f"{found.peak:,.0f} MiB"),
        line(f"{million}: all pairs", wall * times**2 / 3600, product * times**2 / 3600, "h"),
        line(f"{million}: one more picture", wall * times**2 * changed / 60, product * times**2 * changed / 60, "min"),
        Line(f"{million}: read from the index", f"{read * times / 1e9:,.0f} GB"),
    ]
    return Result(tuple(rows), tuple(lines))


if __name__ == "__main__":
    sys.exit(main())
