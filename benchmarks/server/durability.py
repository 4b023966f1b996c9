"""The cost of durable steps and of checked reads: localpachd beside the disk's own syncs and the checksums alone."""

import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import python_pachyderm
from python_pachyderm.proto.v2.pfs import pfs_pb2
from xxhash import xxh3_64_digest

from benchmarks.kit import servers
from benchmarks.kit.report import Result, Row, interleaved, line, timed

CLIENTS = 16
"""Writers at the same time, who share syncs."""

MOST_CHECKING = 1.05
"""The goal for a read, beside one that checks nothing."""

_PAGE = 4096 + 24  # bytes that a small transaction appends to the log of SQLite: a page and its frame's header
_BLOCK = 256 << 10
_fresh = count()


def measure_steps(number: int, rounds: int) -> Result:
    """`number` repos created by one client, and by 16; as many appends of a page with a sync after each, one after
    another. All on the disk of temporary files."""
    with servers.localpachd() as server, tempfile.TemporaryDirectory(dir=server.directory.parent) as place:
        clients = [server.client() for _ in range(CLIENTS)]
        one, several, bound = interleaved(
            rounds,
            lambda: timed(lambda: _create(clients[:1], number)),
            lambda: timed(lambda: _create(clients, number)),
            lambda: timed(lambda: _append(Path(place) / "log", number)),
        )
    section, many = f"{number} steps, one client", f"{number} steps, {CLIENTS} clients"
    rows = (
        Row(section, "ours", one, number / one),
        Row(section, "bound", bound, number / bound),
        Row(many, "ours", several, number / several),
        Row(many, "bound", bound, number / bound),
    )
    return Result(
        rows,
        tuple(
            line(what, number / seconds, number / bound, "steps/s", digits=0)
            for what, seconds in ((section, one), (many, several))
        ),
    )


def measure_read(mebibytes: int, rounds: int) -> Result:
    """One file, downloaded by a client that decodes nothing; beside the same time without the checksums of its blocks,
    which are computed alone. The file is in the system's memory."""
    section = f"read {mebibytes} MiB"
    data = os.urandom(1 << 20)
    with servers.localpachd() as server:
        client = server.client()
        client.create_repo("large")
        client.put_file_bytes(("large", "master"), "/file", data * mebibytes)
        asked = pfs_pb2.GetFileRequest(file=pfs_pb2.File(commit=_head(client), path="/file")).SerializeToString()
        ours, checking = interleaved(
            rounds,
            lambda: timed(lambda: sum(map(len, server.undecoded("pfs_v2.API/GetFile", asked)))),
            lambda: timed(lambda: _check(data, mebibytes)),
        )
    bare = ours - checking
    goal = f"{MOST_CHECKING - 1:.0%} more than unchecked"
    rate = mebibytes / ours
    return Result(
        (Row(section, "ours", ours, rate), Row(section, "bound", bare, mebibytes / bare)),
        (line(section, rate, mebibytes / bare, "MiB/s", goal, ours <= MOST_CHECKING * bare, 0),),
    )


def _create(clients: Sequence[python_pachyderm.Client], number: int) -> None:
    each = number // len(clients)

    def create(client: python_pachyderm.Client) -> None:
        for _ in range(each):
            client.create_repo(f"step-{next(_fresh)}")

    with ThreadPoolExecutor(len(clients)) as threads:
        list(threads.map(create, clients))


def _append(log: Path, number: int) -> None:
    with log.open("wb", buffering=0) as file:
        for _ in range(number):
            file.write(b"\1" * _PAGE)
            os.fdatasync(file.fileno())


def _check(data: bytes, times: int) -> None:
    for _ in range(times):
        for at in range(0, len(data), _BLOCK):
            xxh3_64_digest(memoryview(data)[at : at + _BLOCK])


def _head(client: python_pachyderm.Client) -> pfs_pb2.Commit:
    commit: pfs_pb2.Commit = client.inspect_branch("large", "master").head
    return commit
