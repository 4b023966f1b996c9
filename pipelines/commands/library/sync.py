"""The command that mirrors a folder in the library, once or as long as it runs."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NoReturn

import grpc
import typer

from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import words_of
from pipelines.commands.kit import interrupts, progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection, open_write_connection
from pipelines.commands.kit.job_completion import UploadedNames, conclude
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
from pipelines.commands.kit.terminal import complain, files, say, say_all, say_json, say_unreadable
from pipelines.commands.library.compact import propose
from pipelines.errors import LookalikeError
from pipelines.library import folder_sync, ingest
from pipelines.library.content_cache import default_path
from pipelines.library.folder_sync import FolderDifference, FolderWatcher
from pipelines.library.ingest import IngestResult
from pipelines.library.picture_hashes import PictureHashes
from pipelines.library.remote.picture_urls import RemoteOptions, is_remote
from stages.datum.contract import load

app = App()

_SHARE = 10
"""A look at a large folder takes at most one tenth of the time."""


@app.command(
    examples=(
        "lookalike sync holiday --dry-run",
        "lookalike sync holiday",
        "lookalike sync /mnt/photos --watch",
        "lookalike sync s3://bucket/photos/",
    )
)
def sync(
    place: Annotated[
        str, typer.Argument(metavar="DIR|URL|LIST", help="The folder of pictures; or a bucket; or a list of URLs.")
    ],
    watch: Annotated[bool, typer.Option("--watch", help="Go on, and mirror every change, until Ctrl-C.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Show the changes, and change nothing.")] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Sync even if that removes every picture of the folder.")
    ] = False,
    interval: Annotated[
        float, typer.Option(min=0.1, help="With --watch: seconds between looks, and for which a file must be at rest.")
    ] = 2.0,
    by_reference: ReferenceOption = False,
    networks: NetworksOption = None,
    yes: YesOption = False,
    verbose: VerboseOption = False,
    wait: WaitOption = True,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Make the library's pictures of a folder equal to the folder, in one commit.

    New pictures are put, changed ones replaced, and those whose files are gone removed. Content counts, not dates. Only
    names that begin with the folder's own are touched, the ones that `lookalike add DIR` gives. Files that cannot be
    read are named, and stay in the library as they are. The exit code is then 1. An empty folder is refused.

    Of a bucket (s3://, gs://, az://), a directory of it or a list of URLs, what is missing or has changed is fetched,
    and what was fetched from there and is not listed any more is removed.
    """
    if is_remote(place):
        if watch:
            raise typer.BadParameter("--watch is for folders: run a sync of a bucket or a list again")
        remote = load("pipelines.commands.library.remote_sync")  # it imports numerical packages
        options = RemoteOptions("", networks or (), by_reference, yes, wait, as_json, address)
        remote.sync(place, options, dry_run, allow_empty)
        return
    directory = path(place)
    if by_reference or networks:
        raise typer.BadParameter("--by-reference and --networks are for buckets and lists of URLs")
    if watch and (dry_run or as_json):
        raise typer.BadParameter("--dry-run and --json are for a single sync: give them without --watch")
    connection = open_connection(address) if dry_run else open_write_connection(address)
    syncs = _Syncs(connection, directory, allow_empty, wait)
    if watch:
        syncs.go_on(interval)
    else:
        syncs.once(dry_run, as_json)


class _Syncs:
    """Syncs of one folder, which read its files and those of the library once."""

    def __init__(self, connection: Connection, directory: Path, allow_empty: bool, wait: bool) -> None:
        self._connection = connection
        self._directory = directory
        self._allow_empty = allow_empty
        self._wait = wait
        self._digests = PictureHashes(default_path())
        self._unreadable = frozenset[str]()

    def compare(self, watch: FolderWatcher | None = None) -> FolderDifference:
        restless, filling = (frozenset[Path](), False) if watch is None else (watch.restless, watch.filling)
        with progress.counting("comparing") as report:
            return folder_sync.compare(
                self._connection, self._directory, self._digests, self._allow_empty, restless, filling, report
            )

    def once(self, dry_run: bool, as_json: bool) -> None:
        different = self.compare()
        written = None if dry_run else self._mirror(different)
        unreadable = _unreadable(different, written)
        if dry_run:
            _show(different)
        else:
            self._tell(different, written)
        if as_json:
            say_json(sync_data(different, written))
        _end(unreadable)

    def go_on(self, interval: float) -> NoReturn:
        """Syncs until Ctrl-C. A failure is said once, and is no reason to end: disks and servers come back."""
        interrupts.explain(f"no longer watching {self._directory}")
        say(f"watching {self._directory}: Ctrl-C ends this")
        watch, said = FolderWatcher(self._directory), ""
        while True:
            interrupts.check()
            began = time.monotonic()
            changed = watch.look()
            looked = time.monotonic() - began
            try:
                if changed:
                    self._take(watch)
                    said = ""
            except (LookalikeError, grpc.RpcError, ConnectionError) as error:
                interrupts.check()
                before, said = said, str(error) if isinstance(error, LookalikeError) else words_of(error)
                if said != before:
                    complain(said)
            time.sleep(max(interval, _SHARE * looked))

    def _take(self, watch: FolderWatcher) -> None:
        """Syncs what is at rest."""
        different = self.compare(watch)
        written = self._mirror(different)
        unreadable = frozenset(different.unreadable)
        news = written is not None or watch.is_new or unreadable - self._unreadable
        self._unreadable = unreadable
        watch.taken()
        if news:
            self._tell(different, written)
            _end(_unreadable(different, written))

    def _mirror(self, different: FolderDifference) -> IngestResult | None:
        if not different:
            return None
        with progress.counting("putting pictures", len(different.sources)) as report:
            return ingest.mirror(self._connection, different, report)

    def _tell(self, different: FolderDifference, written: IngestResult | None) -> None:
        say_all(f"skipped {each}" for each in different.left_out)
        say_unreadable(_unreadable(different, written))
        if written is None:
            say(f"{different.folder}: nothing to change, {different.unchanged:,} unchanged")
        else:
            added = len({each.name for each in different.added}.intersection(written.names))
            counts = added, written.files - added, len(different.removed), different.unchanged
            said = "synced {}: {:,} added, {:,} changed, {:,} removed, {:,} unchanged".format(different.folder, *counts)
            put = UploadedNames("images", frozenset(written.names))
            conclude(self._connection, said, written.commit, self._wait, put)
            propose(self._connection)


def _show(different: FolderDifference) -> None:
    say_all(f"skipped {each}" for each in different.left_out)
    say_unreadable(different.unreadable)
    say_all(f"would add {each.name}" for each in different.added)
    say_all(f"would change {each.name}" for each in different.changed)
    say_all(f"would remove {each}" for each in different.removed)
    say(
        f"{different.folder}: would add {len(different.added):,}, change {len(different.changed):,} and remove "
        f"{len(different.removed):,}; {different.unchanged:,} unchanged"
    )


def sync_data(different: FolderDifference, written: IngestResult | None) -> dict[str, object]:
    """A sync for programs; without a commit if there was none, or it would only have been one."""
    put = {each.name for each in different.sources} if written is None else set(written.names)
    return {
        "commit": None if written is None else written.commit,
        "added": [each.name for each in different.added if each.name in put],
        "changed": [each.name for each in different.changed if each.name in put],
        "removed": different.removed,
        "unchanged": different.unchanged,
        "skipped": different.left_out,
        "unreadable": _unreadable(different, written),
    }


def _unreadable(different: FolderDifference, written: IngestResult | None) -> dict[str, str]:
    return different.unreadable | (written.unreadable if written is not None else {})


def _end(unreadable: Mapping[str, str]) -> None:
    if unreadable:
        raise LookalikeError(f"{files(len(unreadable))} could not be read: the library keeps its pictures of them")
