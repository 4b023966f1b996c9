"""Pictures at URLs, for the command that adds pictures."""

import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path

import typer

from pipelines.client import server_choice
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.commands.kit import progress
from pipelines.commands.kit.job_completion import UploadedNames, conclude_all
from pipelines.commands.kit.library_setup import begin_library, open_searchable_library
from pipelines.commands.kit.terminal import display_path, say, say_first, say_json
from pipelines.commands.library import stated_facts
from pipelines.errors import LookalikeError
from pipelines.library.remote import fetch_journal, picture_lists, picture_urls
from pipelines.library.remote.fetch_journal import FetchJournal
from pipelines.library.remote.picture_fetcher import PictureFetcher
from pipelines.library.remote.picture_lists import ListProblem
from pipelines.library.remote.picture_urls import PictureUrl, RemoteOptions
from pipelines.library.remote.remote_ingest import Agreement, RemoteIngest, RemoteResult
from pipelines.library.snapshots import REPO
from stages.datum.contract import StageError
from stages.datum.text_format import counted
from stages.files import public_addresses
from stages.files.public_addresses import FETCH_FROM
from stages.files.url_fetcher import FetchLimits
from stages.record import url_records
from stages.record.file_limits import MAX_PICTURE_BYTES
from stages.record.url_names import name_of

_SECONDS = 120.0
"""For which a file may take to come."""

_SHOWN = 5
"""Failures that are named."""


_PRIVATE = "is not on the public internet"
"""Part of the reason for an address that only --networks allows."""


class FailureLog:
    """The URLs and the lines that gave no picture, each with its reason, in a file. Names the first ones at its end."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._file = place.open("w", encoding="utf-8", errors="backslashreplace")
        self._shown: list[str] = []
        self._private = False

    def add(self, what: str, reason: str) -> None:
        """Notes one of them."""
        print(what, reason, sep="\t", file=self._file)
        self._private |= _PRIVATE in reason
        if len(self._shown) < _SHOWN:
            self._shown.append(f"left out {what}: {reason}")

    def close(self) -> None:
        """Names the first ones."""
        self._file.close()
        say_first(self._shown, _SHOWN)

    def conclude(self, number: int) -> None:
        """Raises LookalikeError if there are some; else deletes the file."""
        if number:
            raise LookalikeError(
                f"{counted(number, 'picture is', 'pictures are')} not there: {display_path(self.place)} has the reason "
                "of each; the same command fetches what is missing"
                f"{', with --networks also from networks that are not public' if self._private else ''}"
            )
        self.place.unlink()


def _require_apart(paths: Sequence[str]) -> None:
    """Raises BadParameter if the arguments of the command name others than pictures at URLs."""
    remote = [each for each in paths if picture_urls.is_remote(each)]
    if len(remote) < len(paths):
        raise typer.BadParameter(
            f"{remote[0]} is fetched: name URLs, and lists of URLs, apart from files and directories",
            param_hint="'PATH'",
        )


def add(paths: Sequence[str], options: RemoteOptions, agree: Agreement) -> None:
    """Fetches the pictures, at least one of which is at a URL, and puts them into the library. Raises BadParameter if
    others are not."""
    _require_apart(paths)
    began = time.monotonic()
    fetcher = fetching(options.networks)
    found = pictures(paths, options.folder, fetcher)
    first = next(found, None)
    if first is None:
        raise LookalikeError(f"{' '.join(paths)}: there are no pictures")
    if server_choice.is_free(options.address):
        begin_library()
    connection, done = open_searchable_library(options.address)
    with closing(open_journal(connection)) as journal:
        result, failures = fetch(connection, journal, chain([first], found), fetcher, options, agree)
        for each in paths[:1] if len(paths) == 1 else ():
            journal.settle(place_of(each, options.folder), whole=False)
    done |= dict.fromkeys(result.commits, "")
    rejected = conclude_all(connection, done, options.wait, UploadedNames(REPO, result.names)) if done else []
    left_out = result.failures.total()
    numbers = {"replaced": result.replaced, "unchanged": result.unchanged, "left out": left_out}
    more = "".join(f", {number:,} {word}" for word, number in numbers.items() if number)
    end = f", searchable after {time.monotonic() - began:,.0f} s" if result.put and options.wait else ""
    say(f"{counted(result.put - result.replaced, 'picture', 'pictures')} added{more}{end}")
    stated_facts.put_attributes(connection, paths, result.stated, options)
    stated_facts.put_labels(connection, paths, result.labels)
    if options.as_json:
        told = {"commits": [*result.commits], "put": result.put, "replaced": result.replaced}
        say_json({**told, "unchanged": result.unchanged, "failures": dict(result.failures), "rejected": rejected})
    failures.conclude(left_out)


def fetching(networks: Sequence[str]) -> PictureFetcher:
    """What fetches pictures. Raises BadParameter for networks that are not valid."""
    try:
        allowed = public_addresses.networks(" ".join(networks))
    except StageError as error:
        raise typer.BadParameter(str(error), param_hint="'--networks'") from error
    return PictureFetcher(FetchLimits(MAX_PICTURE_BYTES, _SECONDS, allowed=allowed))


def open_journal(connection: Connection) -> FetchJournal:
    """The journal of a library."""
    return FetchJournal(fetch_journal.place(_identity(connection)))


def place_of(argument: str, folder: str) -> str:
    """What a bucket, a directory of it or a list is called in the journal, of which the names begin with `folder`."""
    where = argument.rstrip("/") if picture_urls.is_url(argument) else str(Path(argument).resolve())
    return f"{where} {folder}".rstrip()


def fetch(
    connection: Connection,
    journal: FetchJournal,
    found: Iterable[PictureUrl | ListProblem],
    fetcher: PictureFetcher,
    options: RemoteOptions,
    agree: Agreement,
) -> tuple[RemoteResult, FailureLog]:
    """Fetches pictures and puts them into the library. Raises LookalikeError, before it asks for any, if they are to
    stay at their URLs, and preprocess may not ask the networks of the options for them."""
    if options.by_reference:
        _require_reach(connection, options.networks)
    failures = FailureLog(fetch_journal.place(_identity(connection)).with_suffix(".failed.tsv"))
    with closing(failures), progress.counting("fetching pictures") as counting:
        ingest = RemoteIngest(
            connection, journal, fetcher, agree, failures.add, counting, by_reference=options.by_reference
        )
        return ingest.run(found), failures


def _require_reach(connection: Connection, wanted: Sequence[str]) -> None:
    running = ProjectJobs(connection).pipelines().get("preprocess")
    if running is None:
        return
    stated = running.details.transform.env.get(FETCH_FROM, "")
    allowed, asked = public_addresses.networks(stated), public_addresses.networks(" ".join(wanted))
    refused = sorted({str(each) for each in asked if not any(each[0] in one and each[-1] in one for one in allowed)})
    if refused:
        together = ",".join(sorted({*map(str, allowed), *refused}))
        raise LookalikeError(
            f"preprocess may not fetch from {', '.join(refused)}, so its jobs would fail; nothing was added. "
            f"`{FETCH_FROM}={together} lookalike deploy --overlay private-urls` lets it; or add the pictures without "
            "--by-reference"
        )


def pictures(paths: Sequence[str], folder: str, fetcher: PictureFetcher) -> Iterator[PictureUrl | ListProblem]:
    """The pictures that the arguments name, one after the other."""
    for each in paths:
        for found in _named(each, fetcher):
            yield found if isinstance(found, ListProblem) else found._replace(name=f"{folder}{found.name}")


def _named(argument: str, fetcher: PictureFetcher) -> Iterator[PictureUrl | ListProblem]:
    if picture_urls.is_shard(argument):
        yield from _of_shard(argument, fetcher)
    elif url_records.is_store(argument):
        yield from fetcher.listed(argument)
    elif picture_urls.is_url(argument):
        yield PictureUrl(argument, name_of(argument))
    else:
        yield from picture_lists.of_list(Path(argument))


def _of_shard(argument: str, fetcher: PictureFetcher) -> Iterator[PictureUrl | ListProblem]:
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        tar = Path(argument)
        if picture_urls.is_url(argument):
            tar = Path(scratch) / "shard.tar"
            fetcher.download(argument, tar)
        yield from picture_lists.of_shard(argument, tar)


def _identity(connection: Connection) -> tuple[str, ...]:
    """What tells a library from all others: its project, and the moment at which its repo was made."""
    made = connection.retry(lambda: connection.client.inspect_repo(REPO, project_name=connection.project)).created
    return connection.project, str(made.ToNanoseconds())
