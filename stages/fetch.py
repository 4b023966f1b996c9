"""The fetch stage: the pictures of one file of listing, downloaded into a block that preprocess reads.

Input: `listing`, the file /<bucket>.urls.jsonl. Writes the block /%block-<digits>.tar (stages.files.blocks), whose name
depends on the name of that file alone: masks stay, and a change of one picture changes one block. Pictures that are
gone or refused are listed in /rejected/images/<source>.jsonl, as preprocess lists what it rejects. What may succeed
later fails the datum: a server that is down, and an object that has changed since it was listed.
"""

from __future__ import annotations

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.fetch"))

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from stages.datum.contract import Datum, StageError
from stages.datum.progress import Progress
from stages.files import blocks
from stages.files.blocks import ByteRange
from stages.files.packs import Rejection, write_rejections
from stages.files.remote_files import RemoteFiles, remote_files
from stages.files.url_fetcher import FetchedFile, FetchError
from stages.record import part_names
from stages.record.block_names import stable_name
from stages.record.url_records import UrlRecord

VERSION = 1
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

STAGE = "fetch"

_AT_ONCE = 8


class FetchOutcome(NamedTuple):
    """A picture that was asked for: its file on this machine, or the reason for which there is none."""

    record: UrlRecord
    file: Path | None
    reason: str = ""


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads FETCH_FROM (networks that may be asked though they are not public). Credentials: see
    stages.files.bucket."""
    files = remote_files(environment)

    def process(datum: Datum) -> None:
        datum.require("fetch needs a file of listing", "listing")
        given = datum.inputs["listing"]
        lines = given.path.read_bytes().splitlines()
        records = sorted(UrlRecord(**json.loads(line)) for line in lines)
        with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
            found = _fetched(files, records, Path(scratch))
            _write(found, datum.out, stable_name(f"{STAGE}/{given.repo_path}"))
        print(f"{STAGE}: {sum(each.file is not None for each in found)} of {len(found)} pictures fetched")

    return process


def _fetched(files: RemoteFiles, records: Iterable[UrlRecord], scratch: Path) -> list[FetchOutcome]:
    """Raises StageError if one may be there later, or if none of several is there."""
    found: list[FetchOutcome] = []
    wanted: list[UrlRecord] = []
    for _, same in groupby(records, key=lambda each: each.path):
        first, *others = same
        wanted.append(first)
        found += [FetchOutcome(each, None, f"{first.url} has the same name") for each in others]
    progress = Progress("pictures", len(wanted))
    pool = ThreadPoolExecutor(_AT_ONCE, "fetch")
    try:
        for each in pool.map(partial(_outcome, files, scratch), range(len(wanted)), wanted):
            progress.add()
            found.append(each)
    finally:
        pool.shutdown(cancel_futures=True)
    if len(wanted) > 1 and all(each.file is None for each in found):
        raise StageError(
            f"none of these {len(wanted)} pictures was fetched, so the cause is probably not the pictures: "
            f"{found[-1].reason}"
        )
    return found


def _outcome(files: RemoteFiles, scratch: Path, number: int, record: UrlRecord) -> FetchOutcome:
    try:
        found = files.get_patiently(record.url)
    except FetchError as error:
        if error.temporary:
            raise StageError(f"{record.path} was not fetched from {record.url}: {error.message}") from error
        return FetchOutcome(record, None, f"not fetched from {record.url}: {error.message}")
    if _is_other(found, record):
        raise StageError(
            f"{record.url} has changed since it was listed: the next listing takes its new version, and `pachctl run "
            "cron listing` lists now"
        )
    file = scratch / str(number)
    file.write_bytes(found.content)
    return FetchOutcome(record, file)


def _is_other(found: FetchedFile, record: UrlRecord) -> bool:
    """Whether a file is certainly another one than its listing states."""
    stated = found.etag or found.modified
    return bool(record.etag and stated and record.etag != stated) or record.size not in (-1, len(found.content))


def _write(found: Iterable[FetchOutcome], out: Path, name: str) -> None:
    rejected = [Rejection(each.record.path, STAGE, each.reason) for each in found if each.file is None]
    if rejected:
        write_rejections(out / "rejected" / "images" / f"{part_names.source_name(name)}.jsonl", rejected)
    spans = {each.record.path: ByteRange(each.file) for each in found if each.file is not None}
    if spans:
        with (out / name).open("wb") as block:
            block.writelines(blocks.block(spans).pieces())
