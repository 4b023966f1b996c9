"""The cost of jobs and datums beyond the work itself, beside loops that do only what is indispensable."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from hashlib import blake2b
from itertools import count
from pathlib import Path

import python_pachyderm
from python_pachyderm.proto.v2.pps import pps_pb2

from benchmarks.kit import servers
from benchmarks.kit.growth import growth
from benchmarks.kit.report import Line, Result, Row, interleaved, line, timed
from benchmarks.server import files, trivial

JOB_GOAL = 20.0
BATCHED_GOAL = 5.0
UNBATCHED_GOAL = 30.0
"""Seconds for a job; milliseconds for a datum on top of the bound."""

_fresh = count()


def measure_jobs(sizes: Sequence[int], rounds: int) -> Result:
    """A job with many datums, one of them changed, from before the put until the job has ended; beside a loop that
    reads as many records from SQLite, hashes what Pachyderm hashes, and compares."""
    results = [_measure_job(size, rounds) for size in sizes]
    lines = [each for result in results for each in result.lines]
    rows = [each for result in results for each in result.rows]
    ours = [row.seconds or 0.0 for row in rows if row.name == "ours"]
    return Result(tuple(rows), (*lines, *growth(dict(zip(sizes, ours, strict=True)))))


def _measure_job(size: int, rounds: int) -> Result:
    section = f"job of {size} datums, one changed"
    with servers.localpachd() as server, tempfile.TemporaryDirectory() as directory:
        client = server.client()
        client.create_repo("in")
        files.put(client, "in", size)
        create(client, "copy", batched=True, workers=2)
        wait(client, "copy")
        database = Path(directory) / "records.sqlite"
        _keep(database, size)
        server.forget_peak()
        ours, bound = interleaved(rounds, lambda: change(client, "copy"), lambda: timed(lambda: _skip(database)))
        rows = (Row(section, "ours", ours, size / ours, server.peak), Row(section, "bound", bound, size / bound))
        memory = line("server memory during the job", server.peak, None, "MiB")
    return Result(rows, (line(section, ours, bound, "s", f"under {JOB_GOAL:.0f} s", ours < JOB_GOAL, 2), memory))


def measure_batched(number: int, rounds: int) -> Result:
    """The cost of a datum in a job of `number` trivial datums in one batched process; beside the same program with a
    bare server."""
    section = f"batched datum, of {number}"
    with servers.localpachd() as server:
        client = server.client()
        client.create_repo("in")
        files.put(client, "in", number)
        ours, bound = interleaved(rounds, lambda: _first_job(client, batched=True), lambda: _batched_bound(number))
        rows = (Row(section, "ours", ours, number / ours, server.peak), Row(section, "bound", bound, number / bound))
    return Result(rows, (_each(section, number, ours, bound, BATCHED_GOAL),))


def measure_unbatched(number: int, rounds: int) -> Result:
    """The cost of a datum in a job that runs `true` for each of `number` datums; beside starting `true`."""
    section = f"unbatched datum, of {number}"
    with servers.localpachd() as server:
        client = server.client()
        client.create_repo("in")
        files.put(client, "in", number)

        def start() -> None:
            for _ in range(number):
                subprocess.run(["true"], check=True)

        ours, bound = interleaved(rounds, lambda: _first_job(client, batched=False), lambda: timed(start))
        rows = (Row(section, "ours", ours, number / ours, server.peak), Row(section, "bound", bound, number / bound))
    return Result(rows, (_each(section, number, ours, bound, UNBATCHED_GOAL),))


def create(client: python_pachyderm.Client, name: str, batched: bool, workers: int = 1) -> None:
    """Creates a pipeline on the files of `in` that copies them, if batched, or else does nothing."""
    cmd = [sys.executable, str(Path(trivial.__file__))] if batched else ["true"]
    client.create_pipeline(
        name,
        transform=pps_pb2.Transform(cmd=cmd, datum_batching=batched),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="in", glob="/*")),
        parallelism_spec=pps_pb2.ParallelismSpec(constant=workers),
        datum_set_spec=pps_pb2.DatumSetSpec(per_worker=1),
    )


def wait(client: python_pachyderm.Client, pipeline: str) -> None:
    """Waits until a pipeline's newest job has ended. Raises RuntimeError unless it succeeded."""
    (newest,) = client.list_job(pipeline, number=1, details=False)
    (job,) = client.inspect_job(newest.job.id, pipeline, wait=True)
    if job.state != pps_pb2.JOB_SUCCESS:
        raise RuntimeError(f"the job of {pipeline} ended as {pps_pb2.JobState.Name(job.state)}: {job.reason}")


def change(client: python_pachyderm.Client, pipeline: str) -> float:
    """Seconds to put new content in one file and to wait for the job that follows."""
    before = next(client.list_job(pipeline, number=1, details=False)).job.id

    def work() -> None:
        files.put(client, "in", 1)
        wait(client, pipeline)

    seconds = timed(work)
    if next(client.list_job(pipeline, number=1, details=False)).job.id == before:
        raise RuntimeError(f"putting a file started no job of {pipeline}")
    return seconds


def _first_job(client: python_pachyderm.Client, batched: bool) -> float:
    """Seconds from creating a pipeline until its first job has ended."""
    name = f"first-{next(_fresh)}"

    def work() -> None:
        create(client, name, batched)
        wait(client, name)

    seconds = timed(work)
    client.delete_pipeline(name)
    return seconds


def _batched_bound(number: int) -> float:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "in").mkdir()
        (place / "out").mkdir()
        ((name, data),) = files.contents(1)
        (place / "in" / name.strip("/")).write_bytes(data)
        with servers.bare("next", str(number), directory) as server:
            env = {**os.environ, "LOCALPACHD_PFS": directory, "PPS_WORKER_GRPC_PORT": str(server.port)}
            command = [sys.executable, str(Path(trivial.__file__))]
            return timed(lambda: subprocess.run(command, env=env, check=True))


def _each(section: str, number: int, ours: float, bound: float, goal: float) -> Line:
    mine, least = 1000 * ours / number, 1000 * bound / number
    return line(section, mine, least, "ms", f"at most {goal:.0f} ms more", mine - least <= goal, 2)


def _keep(database: Path, size: int) -> None:
    """Writes minimal records: a path, the file's hash, and as JSON the hash to compare."""
    conn = sqlite3.connect(database, isolation_level=None)
    conn.execute("CREATE TABLE records (path TEXT PRIMARY KEY, file BLOB, record TEXT) WITHOUT ROWID")
    conn.execute("BEGIN")
    for index in range(size):
        path, file = f"/{index:07d}.bin", blake2b(str(index).encode(), digest_size=32).digest()
        conn.execute("INSERT INTO records VALUES (?, ?, ?)", (path, file, json.dumps({"hash": _hash(path, file)})))
    conn.execute("COMMIT")
    conn.close()


def _skip(database: Path) -> None:
    conn = sqlite3.connect(database)
    changed = 0
    for path, file, record in conn.execute("SELECT path, file, record FROM records ORDER BY path"):
        changed += json.loads(record)["hash"] != _hash(path, file)
    conn.close()
    assert not changed


def _hash(path: str, file: bytes) -> str:
    """The hash that decides whether a datum is skipped: of its id, itself a hash of its names, and of its file's
    hash."""
    identity = blake2b(b"in" + b"in" + b"master" + path.encode(), digest_size=32).hexdigest()
    return blake2b(identity.encode() + file, digest_size=32).hexdigest()
