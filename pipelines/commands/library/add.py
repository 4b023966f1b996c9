"""The command that puts pictures into the library."""

import time
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
from pipelines.commands.kit.options import AddressOption, JsonOption, WaitOption, path
from pipelines.commands.kit.terminal import (
    display_path,
    files,
    require_readable,
    say,
    say_all,
    say_json,
    say_unreadable,
)
from pipelines.library import ingest, picture_sources
from pipelines.library.datasets import stl10
from pipelines.library.datasets.stl10 import names_stl10

app = App()


@app.command(
    examples=(
        "lookalike add holiday/ cat.jpg",
        "lookalike add stl10 --split 0.8",
    ),
)
def add(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Pictures, directories, archives or STL-10 files, or the word stl10, the data set itself.",
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
    wait: WaitOption = True,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Put pictures into the library, replacing any of the same name.

    If there is no library here or above, and no other server is named, one begins here: with a server on this machine,
    the pipelines, and the default backbone. Files that cannot be read are named and left out, and the exit code is then
    1. The word stl10 alone is the data set STL-10, which is downloaded if missing. One part of its pictures becomes
    library pictures, the rest one query entry. A file or directory called stl10 is ./stl10.
    """
    if names_stl10(paths, data_dir, (split, seed)):
        if as_json:
            raise typer.BadParameter("it is for pictures, not for the data set stl10", param_hint="'--json'")
        _add_stl10(data_dir or default_root() / "stl10", 0.9 if split is None else split, seed or 0, wait, address)
        return
    named = list(map(path, paths))
    began = time.monotonic()
    if server_choice.is_free(address):
        ingest.require_files(picture_sources.find(named).sources)
        begin_library()
    connection, done = open_searchable_library(address)
    found = picture_sources.find(named)
    say_all(f"skipped {each}" for each in found.left_out)
    with progress.counting("putting pictures", len(found.sources)) as report:
        written = ingest.add(connection, found.sources, report)
    unreadable = {**found.unreadable, **written.unreadable}
    say_unreadable(unreadable)
    put = UploadedNames("images", frozenset(written.names))
    done[written.commit] = f"put {files(written.files)} into images"
    rejected = conclude_all(connection, done, wait, put)
    if wait:
        added = len(set(written.names).difference(each.source for each in rejected))
        say(f"{files(added)} added, searchable after {time.monotonic() - began:,.0f} s")
    if as_json:
        told = {"commit": written.commit, "put": written.files, "skipped": found.left_out, "unreadable": unreadable}
        say_json({**told, "rejected": rejected})
    require_readable(unreadable)


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
