"""Writers that tests stop halfway, for processes that are forked when what they need has been imported."""

import ipaddress
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipelines.client.commit_writer import CommitWriter
from pipelines.client.file_sets import FileSets
from pipelines.client.repository import PutFile, Repository, write_set
from pipelines.client.server.connection import Connection, ServerTarget, connect
from pipelines.library import ingest
from pipelines.library.picture_sources import PictureSource
from pipelines.library.remote.fetch_journal import FetchJournal
from pipelines.library.remote.picture_fetcher import PictureFetcher
from pipelines.library.remote.picture_urls import PictureUrl
from pipelines.library.remote.remote_ingest import RemoteIngest
from stages.files.url_fetcher import FetchLimits
from tests.forking import Forked

HERE = FetchLimits(bytes=1 << 20, seconds=20, allowed=(ipaddress.ip_network("127.0.0.0/8"),))


def start(kind: str, connection: Connection, *arguments: str | Path, **streams: Any) -> "subprocess.Popen[str]":
    """A writer of one of the kinds below, which heeds Ctrl-C even if the tests do not."""
    return Forked([kind, connection.address, connection.project, *map(str, arguments)], __name__, **streams)


def _write_two_repos(connection: Connection) -> None:
    """Once it is told to."""
    sys.stdin.readline()
    write_set(connection, {repo: [PutFile("/new", b"new")] for repo in ("images", "masks")})


def _hold_commit_open(connection: Connection) -> None:
    """Its content is asked for while its commit is open, because others write whenever it has prepared some before."""
    images = Repository(connection, "images")
    with FileSets(connection) as filesets:

        def content(parents: Mapping[str, str]) -> dict[str, str]:
            newest = next(iter(connection.client.list_commit("images", project_name=connection.project)))
            if newest.HasField("finishing"):
                images.write([PutFile("/other", b"by another")])
            else:
                print("open", flush=True)
                time.sleep(60)
            return {"images": filesets.make(images.requests([PutFile("/mine", b"mine")]))}

        CommitWriter(connection, "images").make(content)


def _fetch_pictures(connection: Connection, journal: str, site: str) -> None:
    pictures = (PictureUrl(f"{site}/{number}.pgm", f"site/{number}.pgm") for number in range(60))
    held, fetcher = FetchJournal(Path(journal)), PictureFetcher(HERE)
    RemoteIngest(connection, held, fetcher, lambda _: lambda _: None, lambda *_: None, lot=10).run(pictures)


_KINDS: dict[str, Callable[..., object]] = {
    "two repos": _write_two_repos,
    "open commit": _hold_commit_open,
    "replaced": lambda connection, file: ingest.add(connection, [PictureSource("photos/0007.jpg", Path(file), 3)]),
    "removed": lambda connection: ingest.remove(connection, ["photos/0007.jpg", "a.jpg"]),
    "urls": _fetch_pictures,
}


def main() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    kind, address, project, *arguments = sys.argv[1:]
    _KINDS[kind](connect(ServerTarget(address, project)), *arguments)
    return 0
