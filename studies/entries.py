"""Many query entries searched in many segments, on an index that is made: `python -m studies.entries --help`.

Index and entries are put into a localpachd, in place of the pipelines that write them. The section search runs the
pipeline search as it is specified; expand only lists its datums, at sizes that would take hours to search.
"""

import argparse
import hashlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

from benchmarks.kit import program, servers
from benchmarks.kit.engine import Work, settle
from benchmarks.kit.madeindex import DIMENSION, MadeIndex
from benchmarks.kit.program import positive
from benchmarks.kit.report import Line, Result, Row
from benchmarks.kit.servers import Server
from benchmarks.kit.trees import Tree, processor_seconds, processor_seconds_of_all
from pipelines.client.deployment import deployment
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection, ServerTarget, connect
from pipelines.specifications import pipeline_specs
from stages.datum.text_format import counted
from stages.files import thumbnail_files
from stages.files.tables.image_table import ImageTable
from stages.files.thumbnail_files import SUFFIX
from stages.record import entry_paths, part_names
from stages.record.origin import Origin
from stages.record.sources import Source

PACKAGES = ("numpy", "pyarrow", "grpcio")
_THUMBNAIL = 3_000  # bytes


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures crosses of the sizes that the arguments (the command line's by default) name, and prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.entries",
        description="Measures a search of many entries in many segments on localpachd, with an index that is made.",
    )
    parser.add_argument("--entries", type=positive, nargs="+", default=[100, 400], metavar="N", help="query entries")
    parser.add_argument("--digits", type=positive, default=1, metavar="N", help="hex digits that make a segment")
    parser.add_argument("--pictures", type=positive, default=10_000, metavar="N", help="size of the library")
    parser.add_argument(
        "--buckets",
        type=int,
        nargs="+",
        default=[entry_paths.BUCKETS],
        metavar="N",
        help="buckets that the entries share; 0: each entry has one of its own, and is a datum in each segment",
    )
    given = program.parse(parser, tuple(SECTIONS), arguments)
    sizes = {
        f"{16**given.digits} segments × {each:,} entries{f' in {buckets} buckets' if buckets else ''}": (each, buckets)
        for each in given.entries
        for buckets in given.buckets
    }
    program.exit_on_sigterm()
    index = MadeIndex(given.pictures, digits=given.digits)
    program.run(given, lambda section: _all(SECTIONS[section](name, index, *sizes[name]) for name in sizes), PACKAGES)
    return 0


def _all(results: Iterable[Result]) -> Result:
    found = list(results)
    return Result(
        tuple(row for each in found for row in each.rows), tuple(line for each in found for line in each.lines)
    )


@dataclass(frozen=True, slots=True)
class Searched:
    """A job of search: its work, and the seconds of processor of the server alone and of all its workers."""

    work: Work
    server: float
    workers: float


class Measuring:
    """The changes of one index and its entries on a server, each searched and measured."""

    def __init__(self, server: Server, index: MadeIndex, place: Path, buckets: int) -> None:
        """buckets: that the entries share, 0 if each has one of its own."""
        self._server = server
        self._index = index
        self._place = place
        self._buckets = buckets
        self.connection: Connection = connect(ServerTarget(f"grpc://127.0.0.1:{server.port}"))
        for repo in ("index", "features-queries"):
            self.connection.client.create_repo(repo)

    def put_names(self, entries: int) -> None:
        """Puts as many segments and entries, of a small file each: enough to make datums of."""
        for repo, directories in {
            "index": self._index.segments,
            "features-queries": [self._directory(self._name(each)) for each in range(entries)],
        }.items():
            Repository(self.connection, repo).write([PutFile(f"/{each}/file", each.encode()) for each in directories])

    def put_index(self, *segments: str, more: int = 0) -> str:
        """Puts segments, `more` pictures larger, and returns the commit."""
        return self._put("index", (self._index.write(self._place / "index", each, more) for each in segments))

    def put_entries(self, numbers: range) -> str:
        """Puts an entry of one picture for each number, and returns the commit."""
        return self._put("features-queries", (self._entry(each) for each in numbers))

    def searched(self, commits: Sequence[str]) -> Searched:
        """Waits for the search of some commits."""
        pid = self._server.process.pid
        server, everyone = processor_seconds(pid)[0], processor_seconds_of_all(pid)
        settled = settle(self.connection, commits)
        server, everyone = processor_seconds(pid)[0] - server, processor_seconds_of_all(pid) - everyone
        return Searched(settled.works[0], server, everyone - server)

    def datums(self) -> int:
        """Expands the input of search, without a job."""
        (spec,) = _specifications()
        stub = pps_pb2_grpc.APIStub(self.connection.client._channel)
        inputs = spec.request().input
        return sum(1 for _ in stub.ListDatum(pps_pb2.ListDatumRequest(input=inputs)))

    def _put(self, repo: str, directories: Iterator[Path]) -> str:
        root = self._place / repo
        files = [path for each in directories for path in sorted(each.rglob("*")) if path.is_file()]
        return Repository(self.connection, repo).write([PutFile(f"/{path.relative_to(root)}", path) for path in files])

    def _entry(self, number: int) -> Path:
        name = self._name(number)
        place = self._place / "features-queries" / self._directory(name)
        place.mkdir(parents=True)
        noise = np.random.default_rng(number)
        vectors = np.abs(noise.standard_normal((1, DIMENSION), np.float32))
        np.save(place / "vectors.npy", vectors / np.linalg.norm(vectors))
        id_ = hashlib.sha256(name.encode()).hexdigest()
        shares = np.full(1, 0.5)
        images = ImageTable(
            ids=[id_],
            sources=[(Source(name, id_, 640, 480, 90_000),)],
            thumbnail_sizes=[_THUMBNAIL],
            hashes=[number],
            brightness=shares,
            contrast=shares,
            sharpness=shares,
            colours=["grey"],
            origin=Origin(self._index.model, "pad", 224, DIMENSION, "made", ("cpu",)),
        )
        images.write(place / "images.parquet")
        thumbnail_files.write(place / f"images{SUFFIX}", [noise.bytes(_THUMBNAIL)])
        return place

    def _name(self, number: int) -> str:
        return f"entry-{number:05d}.jpg"

    def _directory(self, entry: str) -> str:
        bucket = part_names.bucket(part_names.source_name(entry), self._buckets) if self._buckets else entry
        return f"queries/{bucket}/{entry}"


def measure_expansion(name: str, index: MadeIndex, entries: int, buckets: int) -> Result:
    """Lists the datums of a search of all entries in all segments."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, servers.localpachd() as server:
        measuring = Measuring(server, index, Path(scratch), buckets)
        measuring.put_names(entries)
        server.forget_peak()
        before, used = server.memory, processor_seconds(server.process.pid)[0]
        begun = time.perf_counter()
        datums = measuring.datums()
        wall, used = time.perf_counter() - begun, processor_seconds(server.process.pid)[0] - used
        peak = server.peak
    what = f"{name}: {counted(datums, 'datum', 'datums')} listed"
    lines = (
        Line(f"{what}, processor of server", f"{wall:,.1f} s; {used:,.1f} s"),
        Line(f"{what}, peak memory of the server, before", f"{peak:,.0f} MiB", f"{before:,.0f} MiB"),
    )
    return Result((Row(name, "listed", wall, datums / wall, peak),), lines)


def measure_search(name: str, index: MadeIndex, entries: int, buckets: int) -> Result:
    """Searches all entries in all segments, then one entry more in all of them, then all in a segment with one picture
    more."""
    with (
        tempfile.TemporaryDirectory(prefix="lookalike-") as scratch,
        servers.localpachd() as server,
        Tree(server.process.pid) as tree,
    ):
        measuring = Measuring(server, index, Path(scratch), buckets)
        measuring.put_entries(range(entries))
        before = server.memory
        deployment.deploy(measuring.connection, _specifications())
        done = [("all", measuring.searched([measuring.put_index(*index.segments)]))]
        held, peak = server.peak, tree.peak
        done.append(("one entry more", measuring.searched([measuring.put_entries(range(entries, entries + 1))])))
        done.append(("one picture more", measuring.searched([measuring.put_index(index.segments[0], more=1)])))
    rows: list[Row] = []
    lines: list[Line] = []
    for what, found in done:
        rows.append(Row(name, what, found.work.wall, found.work.processed / found.work.wall))
        lines += _lines(f"{name}: {what}", found)
    lines.append(Line(f"{name}: peak memory of the server, before", f"{held:,.0f} MiB", f"{before:,.0f} MiB"))
    lines.append(Line(f"{name}: peak memory of server and workers", f"{peak:,.0f} MiB"))
    return Result(tuple(rows), tuple(lines))


def _lines(what: str, found: Searched) -> Iterator[Line]:
    work = found.work
    yield Line(f"{what}", f"{work.wall:,.1f} s, {counted(work.processed, 'datum', 'datums')}, {work.skipped:,} skipped")
    yield Line(f"{what}, processor of server; of workers", f"{found.server:,.1f} s; {found.workers:,.1f} s")
    each = [1e3 * part / work.processed for part in (work.wall, found.server, found.workers)]
    yield Line(f"{what}, a datum; server; workers", "; ".join(f"{part:,.2f} ms" for part in each))


def _specifications() -> list[pipeline_specs.PipelineSpec]:
    return [spec for spec in pipeline_specs.load() if spec.name == "search"]


SECTIONS: Mapping[str, Callable[[str, MadeIndex, int, int], Result]] = {
    "expand": measure_expansion,
    "search": measure_search,
}

if __name__ == "__main__":
    sys.exit(main())
