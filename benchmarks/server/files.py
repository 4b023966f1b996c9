"""Putting and listing many small files, beside the cost of the client, gRPC and the disk alone."""

import sqlite3
import tempfile
from collections.abc import Iterator
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any

import python_pachyderm
from python_pachyderm.proto.v2.pfs import pfs_pb2

from benchmarks.kit import servers
from benchmarks.kit.report import Result, Row, interleaved, line, timed
from benchmarks.server import bare

SIZE = 1024
"""Bytes of each file, whose contents all differ."""

PUT_GOAL = 3000
_fresh = count()


def contents(number: int) -> Iterator[tuple[str, bytes]]:
    """(path, bytes) of `number` files with new content in each call."""
    salt = next(_fresh)
    for index in range(number):
        yield f"/{index:07d}.bin", f"{salt}-{index}-".encode().ljust(SIZE, b".")


def put(client: python_pachyderm.Client, repo: str, number: int) -> None:
    """Puts `number` files on master in one commit."""
    with client.modify_file_client((repo, "master")) as batch:
        for path, data in contents(number):
            batch.put_file_from_bytes(path, data)


def measure_put(number: int, rounds: int) -> Result:
    """`number` files in one commit through python-pachyderm; the same calls to a server that drops them; the same bytes
    hashed and written to SQLite in one durable transaction."""
    section = f"put {number} files"
    with servers.localpachd() as server, servers.bare("put") as null:
        ours, none = server.client(), null.client()

        def put_ours() -> float:
            repo = f"put-{next(_fresh)}"
            ours.create_repo(repo)
            return timed(lambda: put(ours, repo, number))

        seconds = interleaved(
            rounds, put_ours, lambda: timed(lambda: put(none, "none", number)), lambda: _write(number)
        )
        rows = _rows(section, number, seconds, ("ours", "bound", "disk"), (server.peak, null.peak, None))
    rates = [number / each for each in seconds]
    unit = "files/s"
    return Result(
        rows,
        (
            line(section, rates[0], rates[1], unit, f"{PUT_GOAL:,} {unit}", rates[0] >= PUT_GOAL, 0),
            line(f"{section}, the bytes alone", rates[0], rates[2], unit, digits=0),
        ),
    )


def measure_list(number: int, rounds: int) -> Result:
    """Listing a directory of `number` files with python-pachyderm and with a client that decodes nothing; beside a bare
    server that encodes and sends the same messages, and one that only sends them."""
    section = f"list {number} files"
    with servers.localpachd() as server, tempfile.TemporaryDirectory() as directory:
        client = server.client()
        client.create_repo("many")
        put(client, "many", number)
        server.forget_peak()
        kept = Path(directory) / "messages"
        bare.keep(kept, list(_raw(server)))
        with servers.bare("list", str(kept)) as encoding, servers.bare("sent", str(kept)) as sending:
            measured = (server, encoding, sending)
            whole = interleaved(rounds, *(_listing(each.client(), number) for each in measured))
            undecoded = interleaved(rounds, *(_raw_listing(each, number) for each in measured))
            peaks = tuple(each.peak for each in measured)
    names = ("ours", "bound", "sending")
    shown = f"{section}, undecoded"
    rows = _rows(section, number, whole, names, peaks) + _rows(shown, number, undecoded, names, peaks)
    lines = [
        line(what, number / seconds[0], number / seconds[1], "files/s", "the pace of encoding", digits=0)
        for what, seconds in ((section, whole), (shown, undecoded))
    ]
    return Result(rows, tuple(lines))


def _rows(
    section: str, number: int, seconds: list[float], names: tuple[str, ...], peaks: tuple[float | None, ...]
) -> tuple[Row, ...]:
    return tuple(
        Row(section, name, each, number / each, peak) for name, each, peak in zip(names, seconds, peaks, strict=True)
    )


def _listing(client: python_pachyderm.Client, number: int) -> Any:
    def work() -> None:
        found = sum(1 for _ in client.list_file(("many", "master"), "/"))
        assert found == number, f"{found} of {number} files were listed"

    return lambda: timed(work)


def _raw_listing(server: servers.Server, number: int) -> Any:
    def work() -> None:
        found = sum(1 for _ in _raw(server))
        assert found == number, f"{found} of {number} files were listed"

    return lambda: timed(work)


def _raw(server: servers.Server) -> Iterator[bytes]:
    """The undecoded messages of a listing."""
    branch = pfs_pb2.Branch(repo=pfs_pb2.Repo(name="many", type="user"), name="master")
    request = pfs_pb2.ListFileRequest(
        file=pfs_pb2.File(commit=pfs_pb2.Commit(branch=branch, repo=branch.repo), path="/")
    )
    return server.undecoded("pfs_v2.API/ListFile", request.SerializeToString())


def _write(number: int) -> float:
    """Seconds to hash `number` files and write them to SQLite in one transaction that would survive a power cut."""
    with tempfile.TemporaryDirectory() as directory:
        conn = sqlite3.connect(Path(directory) / "bytes.sqlite", isolation_level=None)
        conn.execute("PRAGMA journal_mode=WAL")
        conn.execute("PRAGMA synchronous=FULL")
        conn.execute("CREATE TABLE small (hash BLOB PRIMARY KEY, data BLOB NOT NULL)")

        def work() -> None:
            rows = ((blake2b(data, digest_size=32).digest(), data) for _, data in contents(number))
            conn.execute("BEGIN IMMEDIATE")
            conn.executemany("INSERT INTO small VALUES (?, ?)", rows)
            conn.execute("COMMIT")

        try:
            return timed(work)
        finally:
            conn.close()
