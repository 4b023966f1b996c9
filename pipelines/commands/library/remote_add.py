"""Pictures at URLs, for the command that adds pictures."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import typer

from pipelines.client import server_choice
from pipelines.client.server.connection import Connection
from pipelines.commands.kit import progress
from pipelines.commands.kit.job_completion import UploadedNames, conclude_all
from pipelines.commands.kit.library_setup import begin_library, open_searchable_library
from pipelines.commands.kit.terminal import display_path, say, say_first, say_json
from pipelines.commands.library import attributes
from pipelines.commands.library.attributes import table_name
from pipelines.errors import LookalikeError
from pipelines.library.attributes import attribute_repo
from pipelines.library.attributes.picture_keys import PictureKeys
from pipelines.library.attributes.table_files import StatedTable, attribute_name
from pipelines.library.remote import fetch_journal, picture_lists, picture_urls
from pipelines.library.remote.fetch_journal import FetchJournal
from pipelines.library.remote.picture_fetcher import PictureFetcher
from pipelines.library.remote.picture_lists import ListProblem
from pipelines.library.remote.picture_urls import PictureUrl, RemotePicture
from pipelines.library.remote.remote_ingest import Agreement, RemoteIngest
from pipelines.library.snapshots import REPO
from stages.datum.contract import StageError
from stages.datum.text_format import counted
from stages.files import url_fetcher
from stages.files.attribute_files import RESERVED
from stages.files.url_fetcher import FetchLimits
from stages.record import url_records
from stages.record.file_limits import MAX_PICTURE_BYTES

_SECONDS = 120.0
"""For which a file may take to come."""

_SHOWN = 5
"""Failures that are named."""


class RemoteOptions(NamedTuple):
    """The options of the command that concern pictures at URLs. folder: what names begin with. networks: that are
    asked though they are not public."""

    folder: str
    networks: Sequence[str]
    yes: bool
    wait: bool
    as_json: bool
    address: str


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
    try:
        limits = FetchLimits(MAX_PICTURE_BYTES, _SECONDS, allowed=url_fetcher.networks(" ".join(options.networks)))
    except StageError as error:
        raise typer.BadParameter(str(error), param_hint="'--networks'") from error
    fetcher = PictureFetcher(limits)
    found = _pictures(paths, options.folder, fetcher)
    first = next(found, None)
    if first is None:
        raise LookalikeError(f"{' '.join(paths)}: there are no pictures")
    if server_choice.is_free(options.address):
        begin_library()
    connection, done = open_searchable_library(options.address)
    place = fetch_journal.place(_identity(connection))
    with closing(FetchJournal(place)) as journal, ExitStack() as opened:
        failures = place.with_suffix(".failed.tsv")
        log = opened.enter_context(failures.open("w", encoding="utf-8", errors="backslashreplace"))
        shown: list[str] = []

        def failed(what: str, reason: str) -> None:
            print(what, reason, sep="\t", file=log)
            if len(shown) < _SHOWN:
                shown.append(f"left out {what}: {reason}")

        counting = opened.enter_context(progress.counting("fetching pictures"))
        ingest = RemoteIngest(connection, journal, fetcher, agree, failed, counting)
        result = ingest.run(chain([first], found))
    left_out = result.failures.total()
    say_first(shown, _SHOWN)
    done |= dict.fromkeys(result.commits, "")
    rejected = conclude_all(connection, done, options.wait, UploadedNames(REPO, result.names)) if done else []
    numbers = {"replaced": result.replaced, "unchanged": result.unchanged, "left out": left_out}
    more = "".join(f", {number:,} {word}" for word, number in numbers.items() if number)
    end = f", searchable after {time.monotonic() - began:,.0f} s" if done and options.wait else ""
    say(f"{counted(result.put - result.replaced, 'picture', 'pictures')} added{more}{end}")
    _put_attributes(connection, paths, result.stated, options)
    if options.as_json:
        told = {"commits": [*result.commits], "put": result.put, "replaced": result.replaced}
        say_json({**told, "unchanged": result.unchanged, "failures": dict(result.failures), "rejected": rejected})
    if left_out:
        raise LookalikeError(
            f"{counted(left_out, 'picture is', 'pictures are')} not there: {display_path(failures)} has the reason of "
            "each; the same command fetches what is missing"
        )
    failures.unlink()


def _pictures(paths: Sequence[str], folder: str, fetcher: PictureFetcher) -> Iterator[RemotePicture | ListProblem]:
    """The pictures that the arguments name, one after the other."""
    for each in paths:
        for found in _named(each, fetcher):
            if isinstance(found, ListProblem):
                yield found
            else:
                yield found._replace(picture=found.picture._replace(name=f"{folder}{found.picture.name}"))


def _named(argument: str, fetcher: PictureFetcher) -> Iterator[RemotePicture | ListProblem]:
    if url_records.is_store(argument):
        yield from fetcher.listed(argument)
    elif picture_urls.is_url(argument):
        yield RemotePicture(PictureUrl(argument, picture_urls.name_of(argument)))
    else:
        for each in picture_lists.of_list(Path(argument)):
            yield each if isinstance(each, ListProblem) else RemotePicture(each)


def _put_attributes(
    connection: Connection, paths: Sequence[str], stated: Mapping[str, Mapping[str, Any]], options: RemoteOptions
) -> None:
    """Gives the pictures what the other columns of their lists state of them, as one table. stated: by picture and
    heading."""
    headings = dict.fromkeys(heading for each in stated.values() for heading in each)
    names = {heading: attribute_name(heading) for heading in headings}
    taken = [heading for heading, name in names.items() if name in RESERVED or not name]
    if taken:
        columns_left = counted(len(taken), "column is", "columns are")
        say(f"{columns_left} left out, since lookalike has its own meaning for {', '.join(taken)}{_LABELS}")
    columns = {
        name: [each.get(heading) for each in stated.values()] for heading, name in names.items() if heading not in taken
    }
    if not columns:
        return
    if not options.wait:
        say("the other columns of the lists become attributes when the same command waits for the pictures")
        return
    table = table_name("-".join(Path(each).stem for each in paths if not picture_urls.is_url(each)))
    typed = all(Path(each).suffix.lower() == ".parquet" for each in paths)
    made = StatedTable(table, [*range(1, len(stated) + 1)], [*stated], columns, has_types=typed)
    pictures = PictureKeys(connection.retry(attribute_repo.picture_paths, connection))
    try:
        attributes.put(connection, {table: made}, pictures, {}, keep_unknown=True, wait=True, yes=options.yes)
    except LookalikeError as error:
        raise LookalikeError(
            f"the pictures are in the library, but not what the lists state of them: {error}"
        ) from error


_LABELS = " (`lookalike classify add --labels FILE` puts labels)"


def _identity(connection: Connection) -> tuple[str, ...]:
    """What tells a library from all others: its project, and the moment at which its repo was made."""
    made = connection.retry(lambda: connection.client.inspect_repo(REPO, project_name=connection.project)).created
    return connection.project, str(made.ToNanoseconds())
