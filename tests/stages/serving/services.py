"""A running service for tests: the real application on uvicorn, a small library with a real backbone, and a client."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import uvicorn
from PIL import Image

from stages.datum.file_cache import FileCache
from stages.files.tables import annotation_table
from stages.files.tables.parquet import stored_text
from stages.knn.search_settings import SearchSettings
from stages.quality.distance_scale import DistanceScale
from stages.quality.similarity import SimilarityCalibration
from stages.record.framing import Framing, Pixels
from stages.record.sources import Source
from stages.serving.answer import upload_decoder
from stages.serving.answer.search_answer import QueryPicture
from stages.serving.follow.configuration import ServiceConfiguration
from stages.serving.follow.original_files import OriginalFiles
from stages.serving.follow.pachyderm_client import PachydermAddress, PachydermClient
from stages.serving.follow.promoted_model import PromotedModel
from stages.serving.follow.snapshots import Snapshot, SnapshotCommits, SnapshotState
from stages.serving.http.app import ServiceApplication
from stages.serving.run.connections import ServiceConnection
from stages.serving.search.mapped_library import MappedLibrary
from stages.serving.search.search_engine import SearchEngine
from tests.stages.serving.segments import open_library, write_segment

if TYPE_CHECKING:  # TensorFlow takes seconds
    from stages.backbone.embedder import Embedder

Value = TypeVar("Value")

NOWHERE = PachydermAddress("grpc://127.0.0.1:1")
"""A Pachyderm that does not answer."""


def drawn(seed: int, size: tuple[int, int] = (160, 120)) -> Image.Image:
    """A smooth picture, unlike those of other seeds."""
    few = np.random.default_rng(seed).integers(0, 256, (4, 5, 3), np.uint8)
    return Image.fromarray(few).resize(size, Image.Resampling.BICUBIC)


def file(picture: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """The picture's file."""
    to = io.BytesIO()
    picture.save(to, kind, **options)
    return to.getvalue()


def made(seed: int) -> bytes:
    """The PNG file of `drawn(seed)`."""
    return file(drawn(seed))


def library(
    root: Path,
    embedder: Embedder,
    files: Mapping[str, bytes],
    segments: int = 2,
    facts: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> MappedLibrary:
    """A library of these files, by true paths, in some segments; equal pictures have several sources. facts: of
    files, by path: fields of their sources, and what people say."""
    framing = Framing(embedder.spec.image_size, "pad")
    decoded: dict[bytes, tuple[QueryPicture, Pixels]] = {}
    seen: dict[str, tuple[QueryPicture, Pixels]] = {}
    sources: dict[str, list[Source]] = {}
    for path, content in sorted(files.items()):
        if content not in decoded:
            decoded[content] = upload_decoder.decode_upload(path, content, framing)
        picture, _ = seen[decoded[content][0].id] = decoded[content]
        size = picture.width, picture.height, len(content)
        own = {name: value for name, value in facts.get(path, {}).items() if name in Source._fields}
        held = Source(path, hashlib.sha256(content).hexdigest(), *size, **own)
        sources.setdefault(picture.id, []).append(held)
    names = sorted(seen)
    parts = [part.tolist() for part in np.array_split(np.array(names), segments) if len(part)]
    return open_library(
        [_segment(root / f"{at:02x}", part, seen, sources, embedder, facts) for at, part in enumerate(parts)],
        [f"{root.name}-{at}" for at in range(len(parts))],
    )


def _segment(
    directory: Path,
    names: list[str],
    seen: Mapping[str, tuple[QueryPicture, Pixels]],
    sources: Mapping[str, Sequence[Source]],
    embedder: Embedder,
    told: Mapping[str, Mapping[str, Any]],
) -> Path:
    spec = embedder.spec
    facts = {"model": spec.sha256, "image_size": spec.image_size, "backbone": spec.described}
    pictures, pixels = zip(*(seen[id] for id in names), strict=True)
    vectors = embedder(np.stack(pixels))
    written = write_segment(
        directory,
        names,
        vectors,
        sources,
        facts | {"dimension": spec.dimension},
        [file(Image.fromarray(each), "JPEG") for each in pixels],
        [each.hash for each in pictures],
    )
    paths = sorted(each.path for id in names for each in sources[id])
    said = sorted({name for path in paths for name in told.get(path, {})} - set(Source._fields))
    if said:
        columns = {name: [told.get(path, {}).get(name) for path in paths] for name in said}
        table = pa.table({"path": [stored_text(path) for path in paths], **columns})
        annotation_table.write_annotations(table, written / annotation_table.FILE)
    return written


def snapshot(
    held: MappedLibrary,
    embedder: Embedder | None,
    cache: Path,
    index: str = "1" * 32,
    similarity: SimilarityCalibration | None = None,
    server: PachydermAddress = NOWHERE,
    images: str = "2" * 32,
    scale: DistanceScale | None = None,
) -> Snapshot:
    """A snapshot of a library."""
    assert embedder is not None
    return Snapshot(
        SnapshotCommits(server.project, index, images, "3" * 32),
        held,
        SearchEngine(held, SearchSettings(backend="numpy"), {}),
        embedder,
        embedder.spec,
        scale,
        similarity,
        OriginalFiles(PachydermClient(server), images, FileCache(cache)),
        "cpu",
    )


@dataclass(frozen=True)
class Answer:
    """A response. Its names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """The JSON in it."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error, "" for another response."""
        return str(self.data["error"]["code"]) if self.status >= 400 else ""


class Client:
    """A kept connection to a service."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(
        self, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None, method: str = ""
    ) -> Answer:
        """The answer to a GET request, or to a POST request if there is a body."""
        self._connection.request(method or ("GET" if body is None else "POST"), path, body, dict(headers or {}))
        response = self._connection.getresponse()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())

    def search(self, question: Any = None, files: Sequence[bytes] = ()) -> Answer:
        """The answer to a search: a question in JSON, files, or both in a form."""
        if not files:
            return self.ask("/search", json.dumps(question).encode(), {"Content-Type": "application/json"})
        return self.ask("/search", *form(question, files))

    def close(self) -> None:
        self._connection.close()


def form(question: Any, files: Sequence[bytes]) -> tuple[bytes, Mapping[str, str]]:
    """A body of multipart/form-data, and its headers."""
    parts = [] if question is None else [(b'name="request"', json.dumps(question).encode())]
    parts += [(f'name="picture"; filename="{at}.png"'.encode(), content) for at, content in enumerate(files)]
    body = b"".join(
        b"--line\r\nContent-Disposition: form-data; " + about + b"\r\n\r\n" + content + b"\r\n"
        for about, content in parts
    )
    return body + b"--line--\r\n", {"Content-Type": "multipart/form-data; boundary=line"}


@dataclass
class Service:
    """A running service, whose state tests replace."""

    state: SnapshotState[Snapshot] | None
    port: int = 0
    promoted: SnapshotState[PromotedModel] | None = None
    lines: list[str] = field(default_factory=list)

    def client(self) -> Client:
        """A new connection."""
        return Client(self.port)

    def ask(self, path: str, *arguments: Any, **named: Any) -> Answer:
        """See Client.ask; on a connection of its own."""
        with closing(self.client()) as client:
            return client.ask(path, *arguments, **named)

    def search(self, *arguments: Any, **named: Any) -> Answer:
        """See Client.search; on a connection of its own."""
        with closing(self.client()) as client:
            return client.search(*arguments, **named)

    def id_of(self, path: str) -> str:
        """The id of a library picture by the path of a source."""
        listed = self.ask(f"/library?limit=500&folder={path.rpartition('/')[0]}").data["pictures"]
        return str(next(each["id"] for each in listed if each["path"] == path))

    def metric(self, name: str) -> float:
        """The value of a metric, with its labels as in the text; 0 if it is not there."""
        for line in self.ask("/metrics").body.decode().splitlines():
            if line.startswith(f"{name} "):
                return float(line.rpartition(" ")[2])
        return 0.0


def _given(state: Value | None) -> Value:
    assert state is not None
    return state


@contextmanager
def running(
    state: Snapshot | SnapshotState[Snapshot] | None,
    configuration: ServiceConfiguration | None = None,
    promoted: PromotedModel | SnapshotState[PromotedModel] | Callable[[], SnapshotState[PromotedModel]] | None = None,
    **options: Any,
) -> Iterator[Service]:
    """A service on a free port until the end of the block. state: a snapshot is one that is ready; None for a service
    that does not search. promoted: None for one that does not classify, or what gives the state of the moment. options:
    further ones of ServiceApplication. Without these and a configuration it may be one that another test has left, see
    `sharing`."""
    if isinstance(state, Snapshot):
        state = SnapshotState("ready", snapshot=state)
    if isinstance(promoted, PromotedModel):
        promoted = SnapshotState("ready", snapshot=promoted)
    if _kept is None or configuration or options or callable(promoted):
        with _started(state, configuration, promoted, **options) as service:
            yield service
        return
    idle = _idle[state is None, promoted is None]
    service = idle.pop() if idle else _kept.enter_context(_started(state, None, promoted))
    service.state, service.promoted = state, promoted
    try:
        yield service
    finally:
        service.state = None if state is None else SnapshotState("loading")  # lets go of the library
        idle.append(service)


_idle: defaultdict[tuple[bool, bool], list[Service]] = defaultdict(list)
"""The services that tests have left, by what they do not do: search, classify."""

_kept: ExitStack | None = None
"""Ends them."""


@contextmanager
def sharing() -> Iterator[None]:
    """Lets tests share services until the end of the block: each start takes most of a second of a processor, for the
    routes and a process that decodes."""
    global _kept
    with ExitStack() as _kept:
        yield
    _kept = None
    _idle.clear()


@contextmanager
def _started(
    state: SnapshotState[Snapshot] | None,
    configuration: ServiceConfiguration | None,
    promoted: SnapshotState[PromotedModel] | Callable[[], SnapshotState[PromotedModel]] | None,
    **options: Any,
) -> Iterator[Service]:
    service = Service(state, promoted=promoted if isinstance(promoted, SnapshotState) else None)
    app = ServiceApplication(
        configuration or ServiceConfiguration(NOWHERE, port=0),
        None if state is None else lambda: _given(service.state),
        promoted if not isinstance(promoted, SnapshotState) else lambda: _given(service.promoted),
        **options,
    )
    known = uvicorn.Config(
        app, port=0, http=ServiceConnection, ws="none", log_level="error", timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(known)
    started = threading.Event()
    bare = server.startup

    async def startup(sockets: Any = None) -> None:
        await bare(sockets)
        service.port = server.servers[0].sockets[0].getsockname()[1]
        started.set()

    server.startup = startup  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, name="service", daemon=True)
    thread.start()
    assert started.wait(60)
    try:
        yield service
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()
