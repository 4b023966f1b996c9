"""The command that puts pictures into the library."""

import shlex
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pipelines.client import server_choice
from pipelines.client.server.local_server import default_root
from pipelines.commands.kit import progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_write_connection
from pipelines.commands.kit.job_completion import UploadedNames, conclude_all
from pipelines.commands.kit.library_setup import begin_library, open_searchable_library
from pipelines.commands.kit.options import (
    AddressOption,
    JsonOption,
    NetworksOption,
    ReferenceOption,
    VerboseOption,
    WaitOption,
    YesOption,
    path,
)
from pipelines.commands.kit.terminal import (
    ask,
    display_path,
    files,
    require_readable,
    say,
    say_all,
    say_json,
    say_unreadable,
)
from pipelines.commands.library.compact import propose
from pipelines.library import ingest, picture_sources
from pipelines.library.datasets import stl10
from pipelines.library.datasets.stl10 import names_stl10
from pipelines.library.library_commit import UploadProgress
from pipelines.library.remote.picture_urls import RemoteOptions, is_remote
from stages.datum.contract import load
from stages.datum.text_format import counted, first_of

app = App()

_MOST_NAMED = 3


@app.command(
    examples=(
        "lookalike add holiday/ cat.jpg",
        "lookalike add /media/card2/DCIM --into card2",
        "lookalike add s3://bucket/photos/",
        "lookalike add urls.csv",
        "lookalike add stl10 --split 0.8",
    )
)
def add(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Pictures, directories, archives or STL-10 files; URLs, buckets or lists of URLs; or the word stl10, "
            "the data set itself.",
        ),
    ],
    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="With stl10: the directory of its files [default: stl10 in the local server's state]."
        ),
    ] = None,
    split: Annotated[
        float | None, typer.Option(help="With stl10: the share of its pictures for the library [default: 0.9].")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="With stl10: the seed that chooses these pictures [default: 0].")
    ] = None,
    into: Annotated[
        str,
        typer.Option(
            metavar="FOLDER", help="A folder of the library that the names begin with: card2 makes card2/DCIM/1.jpg."
        ),
    ] = "",
    by_reference: ReferenceOption = False,
    networks: NetworksOption = None,
    yes: YesOption = False,
    verbose: VerboseOption = False,
    wait: WaitOption = True,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Put pictures into the library, replacing any of the same name.

    Unchanged pictures are left alone. Before others are replaced, it is asked on a terminal; --into keeps both.

    If there is no library here or above, and no other server is named, one begins here: with a server on this machine,
    the pipelines, and the default backbone. Files that cannot be read are named and left out, and the exit code is then
    1. Pictures at URLs (https://, s3://, gs://, az://), and in lists of them (.txt, .csv, .parquet), are fetched and
    put in lots; the same command goes on where it was interrupted, and later fetches what has changed. The word stl10
    alone is the data set STL-10, which is downloaded if missing. One part of its pictures becomes
    library pictures, the rest one query entry. A file or directory called stl10 is ./stl10.
    """
    if names_stl10(paths, data_dir, (split, seed)):
        for option, given in (("--json", as_json), ("--into", into)):
            if given:
                raise typer.BadParameter("it is for pictures, not for the data set stl10", param_hint=f"'{option}'")
        _add_stl10(data_dir or default_root() / "stl10", 0.9 if split is None else split, seed or 0, wait, address)
        return
    agrees = partial(_agree, yes=yes)
    if any(map(is_remote, paths)):
        remote = load("pipelines.commands.library.remote_add")  # it imports numerical packages
        options = RemoteOptions(_folder(into), networks or (), by_reference, yes, wait, as_json, address)
        remote.add(paths, options, lambda held: agrees(held, "`--into FOLDER` keeps both") or _silent)
        return
    if by_reference:
        raise typer.BadParameter("it is for pictures at URLs, in buckets and in lists", param_hint="'--by-reference'")
    named = list(map(path, paths))
    began = time.monotonic()
    found = picture_sources.find(named)
    say_all(f"skipped {each}" for each in found.left_out)
    sources = [replace(each, name=f"{_folder(into)}{each.name}") for each in found.sources]
    if server_choice.is_free(address):
        ingest.require_files(sources)
        begin_library()
    connection, done = open_searchable_library(address)
    with ExitStack() as bars:

        def agree(held: Mapping[str, bool]) -> UploadProgress:
            agrees(held, f"`--into {_card(named)}` keeps both")
            return bars.enter_context(progress.counting("putting pictures", len(sources) - sum(held.values())))

        written = ingest.add(connection, sources, agree=agree)
    unreadable = {**found.unreadable, **written.unreadable}
    say_unreadable(unreadable)
    if written.commit:
        said = f"put {files(written.files)} into images" if verbose else _counts(written.names, written.held)
        done[written.commit] = said if verbose or not wait else ""
    rejected = conclude_all(connection, done, wait, UploadedNames("images", frozenset(written.names))) if done else []
    if wait or not written.commit:
        read = set(written.names).difference(each.source for each in rejected)
        end = f", searchable after {time.monotonic() - began:,.0f} s" if done else ""
        say(f"{_counts(read, written.held)}{end}")
    propose(connection)
    if as_json:
        told = {"commit": written.commit or None, "put": written.files, "skipped": found.left_out}
        told["replaced"] = [name for name in written.names if name in written.held]
        say_json({**told, "unreadable": unreadable, "rejected": rejected})
    require_readable(unreadable)


def _counts(names: Collection[str], held: Mapping[str, bool]) -> str:
    """How many pictures were added, replaced and left alone; of the latter two nothing if there are none."""
    replaced = sum(name in held for name in names)
    numbers = {"added": len(names) - replaced, "replaced": replaced, "unchanged": sum(held.values())}
    (done, first), *others = [each for each in numbers.items() if each[1]] or [("added", 0)]
    return ", ".join((f"{counted(first, 'picture', 'pictures')} {done}", *(f"{n:,} {word}" for word, n in others)))


def _folder(into: str) -> str:
    """What the names begin with in the folder of the library that `--into` names."""
    folder = into.removesuffix("/")
    if into and not {"", ".", ".."}.isdisjoint(folder.split("/")):
        raise typer.BadParameter("it takes a folder of the library, such as card2 or 2026/card2", param_hint="'--into'")
    return f"{folder}/" if into else ""


def _agree(held: Mapping[str, bool], way_out: str, yes: bool) -> None:
    """Asks on a terminal whether pictures are to be replaced, and says elsewhere that they are. held: see
    ingest.add."""
    different = [name for name, equal in held.items() if not equal]
    if yes or not different:
        return
    pictures = "1 picture by another" if len(different) == 1 else f"{len(different):,} pictures by others"
    what = f"{pictures} of the same name ({first_of(different, _MOST_NAMED)})"
    if sys.stdin.isatty():
        ask(f"replace {what}? {way_out}", "--yes replaces them", "nothing was added")
    else:
        say(f"replacing {what}: {way_out}")


def _silent(_: int) -> None:
    """The progress of an upload that nobody watches."""


def _card(named: Sequence[Path]) -> str:
    """A name for `--into` that tells the given pictures from others: that of the folder which they lie in."""
    return shlex.quote(named[0].resolve().parent.name or "FOLDER")


def _add_stl10(directory: Path, share: float, seed: int, wait: bool, address: str) -> None:
    connection = open_write_connection(address)
    different = stl10.differences(connection)
    say_all(different)
    if different:
        say(
            "the specifications stay as they are; for the original experiment deploy them with --overlay "
            f"{stl10.OVERLAY} in a library of its own, as `make experiment` does"
        )
    place = stl10.find(directory)
    if place is None:
        say(f"STL-10 is not in {display_path(directory)}: downloading {stl10.ARCHIVE.url}")
        with progress.transferring("downloading", stl10.ARCHIVE.size) as report:
            place = stl10.fetch(directory, report)
    parts = stl10.split(place, share, seed)
    labels = stl10.labels(place)
    with progress.counting("putting pictures", len(parts.library) + len(parts.queries)) as report:
        done = stl10.add(connection, parts, labels, report)
    conclude_all(connection, done, wait)
