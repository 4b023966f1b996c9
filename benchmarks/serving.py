"""The service over HTTP, beside FAISS's flat index and a server that answers nothing, both behind the same HTTP server:
`python -m benchmarks.serving --help`.

The index is made and put into a localpachd; `lookalike serve` runs on it as for a user. The clients are a process of
their own on the same machine, so they take processor time from all servers alike.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from python_pachyderm.proto.v2.pps import pps_pb2

from benchmarks.kit import program, servers
from benchmarks.kit.engine import settle
from benchmarks.kit.madeindex import DIMENSION, SEGMENTS, MadeIndex
from benchmarks.kit.program import positive
from benchmarks.kit.report import Line, Result, Row, line
from benchmarks.service.httpload import Load, Taken, measure
from benchmarks.service.served import Served, serving
from benchmarks.service.uploads import UPLOADS, pictures
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection, ServerTarget, connect
from pipelines.library import backbone_push
from stages.files.tables.index_table import TABLE, IndexTable

PACKAGES = ("numpy", "onnxruntime", "faiss", "tensorflow", "fastapi", "uvicorn", "grpcio")

_BACKBONE = "efficientnet-lite0"
_SIDE = 224
_CLIENTS = 200
_ONE_BY_ONE = 300  # questions
_SECONDS = 10.0
_BESIDE = 1.2  # GiB of memory beside the vectors
_JSON, _JPEG = "application/json", "image/jpeg"

_COPY = 'cp -r "${LOCALPACHD_PFS:-/pfs}/made/." "${LOCALPACHD_PFS:-/pfs}/out/"'
"""The made index as the output of a pipeline, whose commits have the model in their provenance."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures a library of the size that the arguments (the command line's by default) name, and prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.serving",
        description="Measures the service over HTTP beside FAISS and a bare server, with an index that is made.",
    )
    parser.add_argument("--pictures", type=positive, default=100_000, metavar="N", help="size of the library")
    parser.add_argument("--seconds", type=positive, default=int(_SECONDS), metavar="N", help="of each load")
    given = program.parse(parser, (), arguments)
    given.sections = [f"{given.pictures:,} pictures"]
    program.exit_on_sigterm()
    beside = "comparison"
    program.run(given, lambda name: run(name, given.pictures, float(given.seconds)), PACKAGES, beside=beside)
    return 0


@dataclass(frozen=True, slots=True)
class Figures:
    """All that was measured. alone, crowd: by id, of the service, FAISS and the bare server. uploads: of the service,
    alone and from a crowd."""

    alone: Sequence[Taken]
    crowd: Sequence[Taken]
    uploads: tuple[Taken, Taken]
    rate: float  # pictures a second of bare forward passes
    decoding: float  # seconds of a core for an uploaded picture
    imported: float  # seconds of a bare import of TensorFlow
    ready: float  # seconds until the service answers
    peak: float  # MiB
    private: float  # MiB, without pages of files, at the end
    batch: float  # pictures in each pass of the crowd, on average


def run(name: str, size: int, seconds: float) -> Result:
    """Measures everything once, one server at a time."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        place = Path(scratch)
        spec, _ = backbone_push.make(_BACKBONE, [f"--image-size={_SIDE}"], place / "models")
        index = MadeIndex(size, model=spec.sha256)
        for segment in SEGMENTS:
            index.write(place / "index", segment)
        by_id = _questions(place / "index")
        uploads = list(pictures())
        with servers.localpachd() as server:
            connection = connect(ServerTarget(f"grpc://127.0.0.1:{server.port}"))
            _put(connection, place)
            _say("passes of the model alone")
            passes = _passes(place / "models")
            with serving(connection, place / "cache") as first:
                _say(f"the first start took {first.ready:.1f} s, with the index to fetch")
            with serving(connection, place / "cache") as ours:
                found = _loads(ours, by_id, uploads, seconds)
        peers = [_peer(arguments, by_id, seconds) for arguments in (("flat", str(place / "index")), ("bare",))]
    alone, crowd = zip(found.by_id, *peers, strict=True)
    rate, decoding, imported = (passes[each] for each in ("rate", "decoding", "imported"))
    memory = found.peak, found.private
    figures = Figures(alone, crowd, found.uploads, rate, decoding, imported, ours.ready, *memory, found.batch)
    return _result(name, size, figures)


def _say(words: str) -> None:
    print(f"  {words} ...", file=sys.stderr, flush=True)


def _questions(index: Path) -> list[bytes]:
    """Questions for the ids of a few library pictures."""
    ids = [id for segment in SEGMENTS for id in IndexTable.read(index / segment / TABLE).ids[:64]]
    np.random.default_rng(0).shuffle(ids)
    return [json.dumps({"id": id}).encode() for id in ids]


def _put(connection: Connection, place: Path) -> None:
    client = connection.client
    for repo in ("images", "models", "made"):
        client.create_repo(repo)
    _say("putting the index into localpachd")
    Repository(connection, "models").write(_files(place / "models"))
    every = [pps_pb2.Input(pfs=pps_pb2.PFSInput(repo=repo, glob="/")) for repo in ("made", "models")]
    transform = pps_pb2.Transform(cmd=["sh", "-c", _COPY])
    client.create_pipeline("index", transform=transform, input=pps_pb2.Input(cross=every))
    commit = Repository(connection, "made").write(_files(place / "index"))
    settle(connection, [commit])


def _files(root: Path) -> list[PutFile]:
    return [PutFile(f"/{path.relative_to(root)}", path) for path in sorted(root.rglob("*")) if path.is_file()]


def _passes(backbone: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.service.httppeers", "passes", str(backbone)]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


@dataclass(frozen=True, slots=True)
class _Loads:
    """The loads of the service, each alone and from a crowd; its peak memory and what
    of it is its own at the end, in MiB, and the pictures in a pass."""

    by_id: tuple[Taken, Taken]
    uploads: tuple[Taken, Taken]
    peak: float
    private: float
    batch: float


def _loads(ours: Served, by_id: list[bytes], uploads: list[bytes], seconds: float) -> _Loads:
    _say("the service, one question at a time")
    _warm(ours.port, by_id)
    alone = measure(Load(ours.port, _JSON, by_id, most=_ONE_BY_ONE))
    measure(Load(ours.port, _JPEG, uploads, most=3))
    alone_uploads = measure(Load(ours.port, _JPEG, uploads, most=UPLOADS))
    _say(f"the service, {_CLIENTS} clients")
    crowd = measure(Load(ours.port, _JSON, by_id, _CLIENTS, seconds))
    before = ours.passed()
    crowd_uploads = measure(Load(ours.port, _JPEG, uploads, _CLIENTS, seconds))
    after = ours.passed()
    batch = (after[0] - before[0]) / max(1.0, after[1] - before[1])
    return _Loads((alone, crowd), (alone_uploads, crowd_uploads), ours.peak, ours.private, batch)


def _warm(port: int, by_id: list[bytes]) -> None:
    """Lets the service make its copies for faster answers: answers no longer become faster then."""
    times = [measure(Load(port, _JSON, by_id, most=20)).share(0.5)]
    while len(times) < 20 and (len(times) < 3 or times[-1] < 0.9 * max(times[-3:])):
        times.append(measure(Load(port, _JSON, by_id, most=20)).share(0.5))


def _peer(arguments: tuple[str, ...], by_id: list[bytes], seconds: float) -> tuple[Taken, Taken]:
    _say(f"{arguments[0]}, one question at a time, then {_CLIENTS} clients")
    with servers.http_peer(*arguments) as server:
        measure(Load(server.port, _JSON, by_id, most=5))
        one = measure(Load(server.port, _JSON, by_id, most=_ONE_BY_ONE))
        return one, measure(Load(server.port, _JSON, by_id, _CLIENTS, seconds))


def _result(name: str, size: int, found: Figures) -> Result:
    rows = []
    for who, one, many in zip(("ours", "FAISS", "bare"), found.alone, found.crowd, strict=True):
        rows.append(Row(name, f"{who}, one at a time", one.share(0.95) / 1000, one.rate))
        rows.append(Row(name, f"{who}, {_CLIENTS} clients", many.share(0.95) / 1000, many.rate))
    one, many = found.uploads
    rows += [
        Row(name, "ours, uploads one at a time", one.share(0.95) / 1000, one.rate),
        Row(name, f"ours, uploads of {_CLIENTS} clients", many.share(0.95) / 1000, many.rate),
        Row(name, "bare passes", None, found.rate),
        Row(name, "ready", found.ready, None, found.peak),
    ]
    return Result(tuple(rows), (*_alone(found), *_crowded(found), *_process(found, size * DIMENSION * 4 / 2**20)))


def _alone(found: Figures) -> Iterator[Line]:
    ours, flat, bare = found.alone
    yield line("by id, one at a time: median", ours.share(0.5), flat.share(0.5), "ms")
    late = ours.share(0.95)
    yield line("by id, one at a time: 95th percentile", late, flat.share(0.95), "ms", "60 ms", late < 60)
    yield line("the same of a server that answers nothing", bare.share(0.95), None, "ms")
    uploads, _ = found.uploads
    late = uploads.share(0.95, beside=True)
    yield line("uploads, one at a time, beside the model's pass: 95th percentile", late, None, "ms", "60 ms", late < 60)
    yield line("uploads, one at a time, all of it: median", uploads.share(0.5), None, "ms")


def _crowded(found: Figures) -> Iterator[Line]:
    ours, flat, bare = found.crowd
    who = f"{_CLIENTS} clients"
    yield line(f"by id, {who}", ours.rate, flat.rate, "searches/s", "200", ours.rate >= 200)
    yield line("the same of a server that answers nothing", bare.rate, None, "answers/s")
    _, many = found.uploads
    # Decoding takes the same cores as the passes, on which these alone keep all of them busy.
    least = 1 / (1 / found.rate + found.decoding / len(os.sched_getaffinity(0)))
    enough = many.rate >= 0.9 * least
    yield line(f"uploads, {who}, beside passes and decoding alone", many.rate, least, "pictures/s", "0.9", enough)
    yield line("passes alone", found.rate, None, "pictures/s")
    yield Line("pictures computed together, on average", f"{found.batch:,.1f}")
    yield Line("refused with 429", f"{ours.refused + many.refused:,}")
    lost = ours.lost + ours.failed + many.lost + many.failed
    yield Line("lost, or failed", f"{lost:,}", goal="0", met="no" if lost else "yes")


def _process(found: Figures, vectors: float) -> Iterator[Line]:
    soon = found.ready <= found.imported + 2
    yield line("ready, beside a bare import of TensorFlow", found.ready, found.imported, "s", "2 s more", soon)
    small = found.peak <= vectors + _BESIDE * 1024
    yield line("peak memory, beside the vectors", found.peak, vectors, "MiB", f"{_BESIDE} GiB more", small)
    yield line("memory of its own afterwards, without pages of files", found.private, None, "MiB")


if __name__ == "__main__":
    sys.exit(main())
