"""The listing stage: the pictures in buckets and on lists of URLs, as their servers list them at each tick of a clock.

Input: `tick`, the newest file of a cron. Writes /<bucket>.urls.jsonl (stages.record.url_records, without SHA-256), the
pictures whose names have one of BUCKETS hashes, sorted, so that one changed object changes one file. Downloads no
picture.
"""

from __future__ import annotations

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.listing"))

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from urllib.parse import quote, urlsplit

from stages.datum.contract import Datum, StageError
from stages.datum.progress import Progress
from stages.datum.stage_parameters import integer
from stages.datum.text_format import first_line
from stages.files.bucket import FAILURES, BadUrl, BucketError
from stages.files.remote_files import CREDENTIALS, RemoteFiles, bucket_parts, remote_files
from stages.files.url_fetcher import FetchedFile, FetchError
from stages.record.url_names import name_of
from stages.record.url_records import SUFFIX, UrlRecord, format_records, is_store

VERSION = 1
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

SOURCES, BUCKETS = "SOURCES", "BUCKETS"
"""The variables with the URLs, and with the number of files."""

_MOST_BUCKETS = 65536
_HELD = 50_000
"""Records that are held before they go to the disk."""

LIST = ".txt"
"""The ending of a list: a URL on each line, but for empty lines and those that begin with #."""

_AT_ONCE = 16
_AHEAD = 256


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads SOURCES (URLs of buckets and lists, with spaces), BUCKETS (256) and FETCH_FROM (networks that may be
    asked though they are not public). Credentials: see stages.files.bucket."""
    urls = environment.get(SOURCES, "").split()
    buckets = integer(environment, BUCKETS, default=256, lowest=1, highest=_MOST_BUCKETS)
    files = remote_files(environment)

    def process(datum: Datum) -> None:
        datum.require("listing needs the tick of a cron", "tick")
        if not urls:
            raise StageError(f"{SOURCES} names no bucket and no list: `lookalike listing s3://bucket/folder` sets it")
        progress = Progress("pictures", None)
        found = (each for url in dict.fromkeys(urls) for each in _some(files, url, progress))
        number = write(found, datum.out, buckets)
        print(f"listing: {number} pictures at {', '.join(urls)}")

    return process


def write(records: Iterable[UrlRecord], out: Path, buckets: int) -> int:
    """Writes records into the files of their buckets, each file sorted and each record once; returns their number.
    Holds a bounded number of them."""
    held: dict[str, list[UrlRecord]] = defaultdict(list)
    files: set[str] = set()
    for number, each in enumerate(records, 1):
        held[_bucket(each.path, buckets)].append(each)
        if number % _HELD == 0:
            files |= _flush(held, out)
    number = 0
    for name in files | _flush(held, out):
        lines = sorted({*(out / name).read_bytes().splitlines(keepends=True)})
        (out / name).write_bytes(b"".join(lines))
        number += len(lines)
    return number


def _flush(held: dict[str, list[UrlRecord]], out: Path) -> set[str]:
    names = set(held)
    for name in names:
        with (out / name).open("ab") as file:
            file.write(format_records(held.pop(name)))
    return names


def _some(files: RemoteFiles, url: str, progress: Progress) -> Iterator[UrlRecord]:
    """The pictures at a URL. Raises StageError for none: a wrong name would empty the library."""
    empty = True
    for each in _records(files, url):
        progress.add()
        yield each
        empty = False
    if empty:
        raise StageError(
            f"there is no picture at {url}, so the library stays as it is: correct the URL with `lookalike listing`, "
            "or name the others without it"
        )


def _records(files: RemoteFiles, url: str) -> Iterator[UrlRecord]:
    """The pictures below the URL of a bucket or a directory in it, or those on the list at a URL, with the version
    and the size that their servers state ("" and -1 for none) and without a SHA-256. Those of a bucket are named as
    `lookalike add` names them, by the last part of the URL and the path below it. Raises StageError."""
    if urlsplit(url).path.lower().endswith(LIST):
        yield from _on_list(files, url)
    elif is_store(url):
        yield from _in_bucket(files, url)
    else:
        raise StageError(
            f"{url} is neither a bucket nor a list: write s3://bucket/folder, gs:// or az://, or the URL of a "
            f"file of URLs with the ending {LIST}"
        )


def _in_bucket(files: RemoteFiles, url: str) -> Iterator[UrlRecord]:
    try:
        bucket, _ = bucket_parts(url)
        for name, key, each in files.listed(url):
            yield UrlRecord(name, f"{bucket}/{quote(key)}", each["e_tag"] or "", "", int(each["size"]))
    except (*FAILURES, BadUrl, BucketError) as error:
        raise StageError(f"{url} cannot be listed: {first_line(error)}; {CREDENTIALS}") from error


def _on_list(files: RemoteFiles, url: str) -> Iterator[UrlRecord]:
    try:
        found = files.get(url)
        assert found is not None
        lines = (each.strip() for each in found.content.decode("utf-8-sig").splitlines())
    except FetchError as error:
        raise StageError(f"the list {url} cannot be read: {error.message}") from error
    except UnicodeDecodeError as error:
        raise StageError(f"the list {url} is not UTF-8: save it as UTF-8") from error
    wanted = dict.fromkeys(each for each in lines if each and not each.startswith("#"))
    waiting = iter(wanted)
    with ThreadPoolExecutor(_AT_ONCE, "list") as pool:
        while some := list(islice(waiting, _AHEAD)):
            yield from pool.map(partial(_record, files), some)


def _record(files: RemoteFiles, url: str) -> UrlRecord:
    """A picture on a list. One that is gone, or that its server refuses, has no version: fetch says why."""
    try:
        found = files.state(url)
    except FetchError as error:
        if error.temporary:
            raise StageError(f"{url}: {error.message}; the list is read again later") from error
        found = FetchedFile(b"")
    return UrlRecord(name_of(url), url, found.etag or found.modified, "", found.size)


def _bucket(name: str, buckets: int) -> str:
    """The file of a picture: every one has an equal range of the hashes of names."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return f"{int.from_bytes(digest[:4], 'big') * buckets >> 32:04x}{SUFFIX}"
