"""Lists of URLs put into a library: whether each ends as stored or listed with its reason, whatever the server does;
how fast, beside img2dataset; and the memory that a long list takes (`python -m studies.url_lists --help`).

The server is of this machine and in a process of its own. It answers a URL with a fault that the number of its picture
chooses, so every run meets the same ones. The command is killed once, in the middle, and run again.
"""

import argparse
import asyncio
import csv
import hashlib
import io
import ipaddress
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from benchmarks.kit.program import positive
from pipelines.client.commit_history import CommitHistory
from pipelines.client.server.connection import Connection, ServerTarget, connect
from pipelines.library.block_store import BlockDownloads
from pipelines.library.remote import host_queue, picture_lists
from pipelines.library.remote.fetch_journal import FetchJournal
from pipelines.library.remote.host_queue import HostQueue
from pipelines.library.remote.picture_fetcher import PictureFetcher
from pipelines.library.remote.picture_urls import PictureUrl
from pipelines.library.remote.remote_ingest import RemoteIngest
from pipelines.library.snapshots import LibrarySnapshot
from stages.files.url_fetcher import FetchLimits

FOR_GOOD = {"gone": "HTTP 404", "forbidden": "HTTP 403", "loop": "redirects more than", "private": "169.254.169.254"}
"""Faults that stay, and what the reason has to say."""

PASSING = ("busy", "broken", "cut", "closed")
"""Faults that a second request does not meet."""

FAULTS = (*FOR_GOOD, *PASSING)
_EVERY = 97
"""Of so many pictures the first ones have a fault each."""

HERE = FetchLimits(1 << 20, 30.0, allowed=(ipaddress.ip_network("127.0.0.0/8"),))


def fault(number: int) -> str:
    """The fault of a picture, "" for none."""
    at = number % _EVERY
    return FAULTS[at] if at < len(FAULTS) else ""


def picture(number: int) -> bytes:
    """A small picture, another one for each number."""
    file = io.BytesIO()
    Image.frombytes("RGB", (8, 8), hashlib.sha256(b"%d" % number).digest() * 6).save(file, "PNG")
    return file.getvalue()


async def _answer(
    asked: Counter[str], faulty: bool, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        number = int(path.rpartition("/")[2].partition(".")[0])
        asked[path] += 1
        kind = fault(number) if faulty else ""
        kind = "" if kind in PASSING and asked[path] > 1 else kind
        content = picture(number)
        writer.write(_reply(kind, path, content))
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError, IndexError, ValueError):
        pass  # the client has gone away
    finally:
        writer.close()


def _reply(kind: str, path: str, content: bytes) -> bytes:
    tag = hashlib.md5(content).hexdigest().encode()
    start = (
        b'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: image/png\r\nETag: "%s"\r\nContent-Length: %d\r\n\r\n'
    )
    empty = b"Connection: close\r\nContent-Length: 0\r\n\r\n"
    return {
        "": start % (tag, len(content)) + content,
        "gone": b"HTTP/1.1 404 Not Found\r\n" + empty,
        "forbidden": b"HTTP/1.1 403 Forbidden\r\n" + empty,
        "loop": b"HTTP/1.1 302 Found\r\nLocation: %s\r\n" % path.encode() + empty,
        "private": b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\n" + empty,
        "busy": b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\n" + empty,
        "broken": b"HTTP/1.1 503 Service Unavailable\r\n" + empty,
        "cut": start % (tag, len(content) + 99) + content,
        "closed": b"",
    }[kind]


async def _serve(faulty: bool) -> None:
    asked: Counter[str] = Counter()
    server = await asyncio.start_server(lambda *each: _answer(asked, faulty, *each), "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def serving(faulty: bool) -> Iterator[str]:
    """The URL of a server in a process of its own, below which /NUMBER.png are pictures."""
    command = [sys.executable, "-m", "studies.url_lists", "server", *(["--faulty"] if faulty else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


@contextmanager
def library() -> Iterator[Connection]:
    """An empty library without pipelines, on a localpachd of its own."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as root:
        command = [sys.executable, "-m", "localpachd", "--root", root, "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            assert process.stdout is not None
            said = next(line for line in process.stdout if "grpc://" in line)
            Thread(target=process.stdout.read, daemon=True).start()
            try:
                address = "grpc://" + said.partition("grpc://")[2].split()[0].strip(".,;")
                found = connect(ServerTarget(address, project="default"))
                for repo in ("images", "masks"):
                    found.client.create_repo(repo, project_name="default")
                yield found
            finally:
                process.terminate()


def pictures(url: str, number: int) -> Iterator[PictureUrl]:
    """The pictures of a list of so many URLs."""
    return (PictureUrl(f"{url}/{each}.png", f"p/{each}.png") for each in range(number))


def ingest(address: str, url: str, number: int, journal: Path, failed: Path) -> None:
    """Puts the pictures into a library, as the command does. failed: a file of the URLs that are not there."""
    with closing(FetchJournal(journal)) as opened, failed.open("w") as log:
        connection = connect(ServerTarget(address, project="default"))
        agree = lambda _: lambda _: None  # noqa: E731
        note = lambda what, reason: print(what, reason, sep="\t", file=log, flush=True)  # noqa: E731
        RemoteIngest(connection, opened, PictureFetcher(HERE), agree, note).run(pictures(url, number))


def faults(number: int) -> None:
    """Puts a list with faults into a library, kills that in the middle, does it again, and compares."""
    with tempfile.TemporaryDirectory() as scratch, library() as connection, serving(faulty=True) as url:
        journal, failed = Path(scratch, "journal"), Path(scratch, "failed.tsv")
        command = [sys.executable, "-m", "studies.url_lists", "ingest", connection.address, url]
        began = time.monotonic()
        with subprocess.Popen([*command, str(number), str(journal), str(failed)]) as killed:
            while killed.poll() is None and len(names(connection, Path(scratch))) < number / 3:
                time.sleep(2)
            killed.send_signal(signal.SIGKILL)
        there = len(names(connection, Path(scratch)))
        print(f"killed after {time.monotonic() - began:.0f} s with {there:,} pictures in the library")
        again = time.monotonic()
        subprocess.run([*command, str(number), str(journal), str(failed)], check=True)
        print(f"run again: {time.monotonic() - again:.0f} s")
        stored = names(connection, Path(scratch))
        listed = Counter(line.partition("\t")[0] for line in failed.read_text().splitlines())
        reasons = dict(line.split("\t", 1) for line in failed.read_text().splitlines())
        wrong = 0
        for each in range(number):
            kind, at = fault(each), f"{url}/{each}.png"
            right = at in reasons and FOR_GOOD[kind] in reasons[at] if kind in FOR_GOOD else at not in reasons
            wrong += not (right and (f"p/{each}.png" in stored) == (kind not in FOR_GOOD) and listed[at] < 2)
        print(f"{number:,} URLs: {len(stored):,} stored, {len(reasons):,} listed with a reason, {wrong} wrong")
        print(dict(Counter(fault(each) or "none" for each in range(number))))
        if wrong:
            raise SystemExit(1)


def names(connection: Connection, scratch: Path) -> set[str]:
    """The names of the pictures that the library has now."""
    (scratch / "blocks").mkdir(exist_ok=True)
    newest = CommitHistory(connection).last("images", 1)
    return LibrarySnapshot(connection, newest[0].id if newest else "", BlockDownloads(scratch / "blocks")).names()


def speed(number: int, peer: Path | None) -> None:
    """The pictures a second, of the fetching alone, into a library, and of img2dataset, in turns."""
    with tempfile.TemporaryDirectory() as scratch, serving(faulty=False) as url:
        listed = Path(scratch, "list.txt")
        listed.write_text("".join(f"{url}/{each}.png\n" for each in range(number)))
        for turn in range(2):
            fetcher = PictureFetcher(HERE)
            queue: HostQueue[PictureUrl, object] = HostQueue(lambda each: fetcher.get(each.url, None), lambda _: "here")
            _timed(f"turn {turn}: fetching alone", number, lambda: [*queue.run(pictures(url, number))])
            with library() as connection:
                arguments = connection.address, url, number, Path(scratch, f"{turn}"), Path(scratch, "failed")
                _timed(f"turn {turn}: into a library", number, lambda: ingest(*arguments))
            if peer is not None:
                command = [str(peer), f"--url_list={listed}", f"--output_folder={scratch}/out{turn}"]
                command += ["--processes_count=1", f"--thread_count={host_queue.AT_A_HOST}", "--resize_mode=no"]
                command += ["--encode_quality=1", "--encode_format=png", "--output_format=webdataset"]
                environment = {**os.environ, "NO_ALBUMENTATIONS_UPDATE": "1"}
                run = lambda: subprocess.run(command, check=True, capture_output=True, env=environment)  # noqa: E731
                _timed(f"turn {turn}: img2dataset", number, run)


def _timed(what: str, number: int, run: Callable[[], object]) -> None:
    began, before = time.monotonic(), os.times()
    run()
    now, took = os.times(), time.monotonic() - began
    cpu = sum(now[:4]) - sum(before[:4])
    print(f"{what}: {number / took:,.0f} pictures a second, {1000 * cpu / number:.2f} ms of processor each", flush=True)


def memory(number: int) -> None:
    """The most memory of a process that reads a list, beside one that reads a hundredth of it."""
    with tempfile.TemporaryDirectory() as scratch:
        for suffix in ("csv", "parquet"):
            for rows in (number // 100, number):
                path = Path(scratch, f"{rows}.{suffix}")
                _write(path, rows)
                read = [sys.executable, "-m", "studies.url_lists", "read", str(path), f"{path}.journal"]
                said = subprocess.run(read, check=True, capture_output=True, text=True).stdout.strip()
                print(f"{suffix}, {rows:,} rows: {said}", flush=True)


def _write(path: Path, rows: int) -> None:
    urls = (f"https://example.org/pictures/{each}.jpg" for each in range(rows))
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([("url", "caption"), *((each, f"picture {each}") for each in urls)])
        return
    with pq.ParquetWriter(path, pa.schema([("url", pa.string()), ("caption", pa.string())])) as writer:
        for first in range(0, rows, 10_000):
            some = [f"https://example.org/pictures/{each}.jpg" for each in range(first, min(rows, first + 10_000))]
            writer.write_table(pa.table({"url": some, "caption": [f"picture {each}" for each in some]}))


def read(path: Path, journal: Path) -> None:
    """Reads a list and notes its pictures, as the command does before it fetches them. Prints the most memory."""
    with closing(FetchJournal(journal)) as opened:
        began = time.process_time()
        for each in picture_lists.of_list(path):
            if isinstance(each, PictureUrl):
                opened.take(each.name, each.url)
                opened.find(each.name, each.url)
        took = time.process_time() - began
    high = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(f"{int(high.split()[1]) / 1024:.0f} MB at most, {took:.1f} s of processor")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the section that the arguments (the command line's by default) name."""
    parser = argparse.ArgumentParser(prog="python -m studies.url_lists", description=__doc__)
    sections = parser.add_subparsers(dest="section", required=True)
    for name, most in (("faults", 100_000), ("speed", 10_000), ("memory", 1_000_000)):
        sections.add_parser(name).add_argument("--urls", type=positive, default=most)
    sections.choices["speed"].add_argument("--img2dataset", type=Path, help="the program of an environment of its own")
    sections.add_parser("server").add_argument("--faulty", action="store_true")
    for name, *names_ in (("ingest", "address", "url", "number", "journal", "failed"), ("read", "path", "journal")):
        one = sections.add_parser(name)
        for each in names_:
            one.add_argument(each)
    given = parser.parse_args(arguments)
    match given.section:
        case "faults":
            faults(given.urls)
        case "speed":
            speed(given.urls, given.img2dataset)
        case "memory":
            memory(given.urls)
        case "server":
            asyncio.run(_serve(given.faulty))
        case "ingest":
            ingest(given.address, given.url, int(given.number), Path(given.journal), Path(given.failed))
        case "read":
            read(Path(given.path), Path(given.journal))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
