"""A library on a real localpachd whose copies are listed: pictures of their own and in blocks, an archive, and a
pipeline that takes the place of `duplicates`, with groups that a test gives."""

from __future__ import annotations

import http.client
import io
import json
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.client.deployment.deployment import has_repo
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server import connection as connections
from pipelines.client.server.connection import Connection, ServerTarget
from pipelines.commands.service.command_editor import CommandEditor
from pipelines.library import ingest
from pipelines.library.block_store import BlockDownloads
from pipelines.library.picture_sources import PictureSource
from pipelines.library.snapshots import LibrarySnapshot
from stages.quality import copy_groups
from stages.record.sources import Source
from stages.record.url_records import UrlRecord
from stages.serving.follow.configuration import ServiceConfiguration
from stages.serving.follow.copy_listings import CopyListings
from stages.serving.follow.pachyderm_client import PachydermAddress, PachydermClient
from stages.serving.follow.snapshots import Snapshot, SnapshotState
from tests.servers import Localpachd
from tests.stages import pairings
from tests.stages.serving import services
from tests.stages.serving.follow.followers import create_pipeline
from tests.stages.serving.services import Answer, Service

if TYPE_CHECKING:
    from python_pachyderm.proto.v2.pfs import pfs_pb2

TOKEN = "0123456789abcdef"

ALLOWED = [("Authorization", f"Bearer {TOKEN}"), ("Content-Type", "application/json")]

SINGLE = ("trip/one.png", "trip/two.png", "web/two small.jpg", "lone.png")
"""Pictures that are files of their own."""

PACKED = ("backup/one copy.png", "backup/two copy.png", "backup/[lone] {too}.png")
"""Pictures in a block."""

ARCHIVE, MEMBER = "old.zip", "old.zip/one.png"

GROUPS = [["trip/one.png", "backup/one copy.png", MEMBER], ["trip/two.png", "backup/two copy.png"]]
"""The exact groups, the files to keep first."""

NEAR = [["trip/two.png", "web/two small.jpg"]]


@dataclass
class CopyWorld:
    """The library. address: of its Pachyderm, with the project. groups: the last ones, exact and near."""

    connection: Connection
    address: PachydermAddress
    scratch: Path
    groups: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]] = ((), ())

    def fill(self) -> None:
        """Puts all pictures, and the groups of all of them."""
        self.put(PACKED, most_single=0)
        self.put(SINGLE)
        zipped = io.BytesIO()
        with zipfile.ZipFile(zipped, "w") as archive:
            archive.writestr("one.png", services.made(1))
        Repository(self.connection, "images").write([PutFile(f"/{ARCHIVE}", zipped.getvalue())])
        self.write_groups(GROUPS, NEAR)

    def put(self, names: Sequence[str], **options: Any) -> None:
        """Adds pictures under these names."""
        content = services.made(1)
        path = self.scratch / "one.png"
        path.write_bytes(content)
        ingest.add(self.connection, [PictureSource(name, path, len(content)) for name in names], **options)

    def write_groups(self, exact: Sequence[Sequence[str]], near: Sequence[Sequence[str]] = ()) -> None:
        """Has the pipeline write these groups, and waits until it has."""
        self.groups = exact, near
        lines = {"groups.jsonl": _lines(exact, near=False), "near.jsonl": _lines(near, near=True)}
        Repository(self.connection, "groups").write([PutFile(f"/{name}", text) for name, text in lines.items()])
        self.settle()

    def settle(self) -> None:
        """Waits until the groups of the newest pictures are there."""
        for repo in ("images", "groups"):
            head = self.connection.inspect(self.connection.commit(repo, "")).commit.id
            self.connection.client.wait_commit(head)

    @property
    def head(self) -> str:
        """The newest commit of `images`."""
        return str(self.connection.inspect(self.connection.commit("images", "")).commit.id)

    def names(self) -> set[str]:
        """The pictures of the library, by true name."""
        with tempfile.TemporaryDirectory() as scratch:
            downloads = BlockDownloads(Path(scratch))
            return LibrarySnapshot(self.connection, self.head, downloads).names()

    def commits(self) -> list[pfs_pb2.CommitInfo]:
        """Those of `images`, the newest first."""
        return list(self.connection.client.list_commit("images"))

    def state(self) -> dict[str, list[str]]:
        """The commits of every repo that people write to."""
        repos = [repo for repo in ("images", "masks", "labels") if has_repo(self.connection, repo)]
        return {repo: [each.commit.id for each in self.connection.client.list_commit(repo)] for repo in repos}

    def served(self, snapshot: Snapshot) -> SnapshotState[Snapshot]:
        """The state of a service that shows the groups."""
        listings = CopyListings(PachydermClient(self.address))
        commits = replace(snapshot.commits, library=self.head)
        return SnapshotState("ready", snapshot=replace(snapshot, commits=commits, copies=listings))


def make(server: Localpachd, scratch: Path) -> CopyWorld:
    """A library without pictures."""
    address = PachydermAddress(server.address)
    world = CopyWorld(connections.connect(ServerTarget(server.address)), address, scratch)
    for repo in ("images", "masks", "groups"):
        world.connection.client.create_repo(repo)
    command = 'cp "$groups"/*.jsonl "${LOCALPACHD_PFS:-/pfs}/out"'
    create_pipeline(world.connection.client, "duplicates", command, ["images", "groups"])
    return world


@contextmanager
def serving(world: CopyWorld, snapshot: Snapshot, edit: bool = True, token: str = TOKEN) -> Iterator[Service]:
    """A service for the library; with `edit` it has the token, and its door is open."""
    own: dict[str, Any] = {}
    if edit:
        own["configuration"] = ServiceConfiguration(world.address, port=0, token=token)
        own["editor"] = CommandEditor(world.connection)
    with services.running(world.served(snapshot), **own) as service:
        yield service


def sent(
    service: Service,
    path: str,
    value: object,
    headers: Sequence[tuple[str, str]] | None = None,
    origin: str = "own",
    method: str = "POST",
    host: str = "",
) -> Answer:
    """The answer to a request with these headers, of which one may come twice; by default with those of the service's
    own page. origin: "own", another, or none. host: in place of the service's."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    body = json.dumps(value).encode()
    connection.putrequest(method, path, skip_host=bool(host))
    own = f"http://{host or f'127.0.0.1:{service.port}'}"
    named = [("Host", host)] if host else []
    for name, text in [*named, *(ALLOWED if headers is None else headers), *([("Origin", origin)] if origin else [])]:
        connection.putheader(name, own if text == "own" else text)
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return Answer(response.status, dict(response.getheaders()), content)


def record(name: str) -> UrlRecord:
    """A picture that stays at its URL."""
    return UrlRecord(name, f"https://example.org/{name}", "", pairings.id_of(name), 1000)


def _lines(groups: Sequence[Sequence[str]], near: bool) -> bytes:
    """The lines of a file of groups, as the stage writes them."""
    sources: list[Sequence[Source]] = []
    pairs = []
    for number, names in enumerate(groups):
        files = [_source(name, number, near and place > 0) for place, name in enumerate(names)]
        pairs += [(len(sources), len(sources) + 1, 0.25)] if near else []
        sources += [[each] for each in files] if near else [files]
    found = pairings.candidates(sources, *pairs)
    listed = copy_groups.near_groups(found) if near else copy_groups.exact_groups(found)
    facts: Mapping[str, object] = {"model": "m" * 64}
    return "".join(f"{line}\n" for line in copy_groups.json_lines(listed, facts)).encode()


def _source(name: str, number: int, small: bool) -> Source:
    pixels = f"{name if small else number}".ljust(64, "0")
    taken = "" if "/" in name and name.startswith(("backup", "old", "web")) else "2019-08-04T16:30:12"
    size = (20, 15) if small else (40, 30)
    return pairings.source(name, *size, taken=taken, pixels=pixels)
