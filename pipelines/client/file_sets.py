"""File sets: content that is on the server, and in no commit yet. They expire, so they are renewed while they are
needed, however long the next upload takes."""

import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.client.server.connection import Connection

_LIFETIME = 600
"""Seconds for which the server keeps a file set."""

_RENEW_EVERY = 120.0

_AT_ONCE = 2
"""Uploads at the same time: the server makes one durable while it receives the other."""

ModifyRequests = Generator[pfs_pb2.ModifyFileRequest, None, None]
"""The messages of changes, which hold files open while they are taken."""


class FileSets:
    """The file sets of one write, kept until the end of a `with` statement."""

    def __init__(self, connection: Connection, renew_every: float = _RENEW_EVERY) -> None:
        self._stub = connection.pfs
        self._renew_every = renew_every
        self._made: list[str] = []
        self._over = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="renewing file sets", daemon=True)

    def __enter__(self) -> "FileSets":
        self._renewing.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Not joined: a call to a server that does not answer must not keep an interrupted command.
        self._over.set()

    def make(self, requests: Iterable[pfs_pb2.ModifyFileRequest]) -> str:
        """Uploads changes as one file set and returns its id. What the requests raise is raised here."""
        failure: list[BaseException] = []

        def passed() -> Iterator[pfs_pb2.ModifyFileRequest]:
            # gRPC would swallow an exception of this generator and report only that the stream was cancelled.
            try:
                yield from requests
            except BaseException as error:
                failure.append(error)
                raise

        try:
            reply: Any = self._stub.CreateFileSet(passed())
        except grpc.RpcError:
            if failure:
                raise failure[0] from None
            raise
        return self._kept(reply)

    def make_all(self, uploads: Iterable[ModifyRequests]) -> Generator[str, None, None]:
        """Uploads each of these changes as a file set, two at a time, and yields their ids in order. What any requests
        raise is raised here. The other uploads are given up then, and when this is closed."""
        given_up = threading.Event()
        under_way: deque[Future[str]] = deque()
        try:
            for requests in uploads:
                under_way.append(self._begin(_until(given_up, requests)))
                if len(under_way) == _AT_ONCE:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            given_up.set()

    def compose(self, parts: Sequence[str]) -> str:
        """One file set with the effect of these, in order."""
        if len(parts) == 1:
            return parts[0]
        return self._kept(
            self._stub.ComposeFileSet(pfs_pb2.ComposeFileSetRequest(file_set_ids=parts, ttl_seconds=_LIFETIME))
        )

    def _begin(self, requests: ModifyRequests) -> "Future[str]":
        """Starts an upload in a thread. Not joined, either."""
        made: Future[str] = Future()

        def run() -> None:
            try:
                made.set_result(self.make(requests))
            except BaseException as error:
                made.set_exception(error)

        threading.Thread(target=run, name="uploading a file set", daemon=True).start()
        return made

    def _kept(self, reply: Any) -> str:
        self._made.append(reply.file_set_id)
        return str(reply.file_set_id)

    def _renew(self) -> None:
        while not self._over.wait(self._renew_every):
            for each in list(self._made):
                try:
                    self._stub.RenewFileSet(
                        pfs_pb2.RenewFileSetRequest(file_set_id=each, ttl_seconds=_LIFETIME), timeout=self._renew_every
                    )
                except (grpc.RpcError, ValueError):  # a closed channel is a ValueError
                    if self._over.is_set():
                        return


class _GivenUp(Exception):
    """Ends an upload that nobody waits for any more."""


def _until(given_up: threading.Event, requests: ModifyRequests) -> ModifyRequests:
    with closing(requests):
        for request in requests:
            if given_up.is_set():
                raise _GivenUp
            yield request


CHUNK_SIZE = 512 << 10
"""Bytes. Larger messages cost both sides more: the system makes new memory for each."""


def chunks_of(content: bytes | Path | Iterable[bytes]) -> Iterator[bytes]:
    """The content in pieces of at least `CHUNK_SIZE` bytes, and less than twice as many; the last one may be
    shorter."""
    gathered: list[bytes] = []
    size = 0
    for part in _short(content):
        gathered.append(part)
        size += len(part)
        if size >= CHUNK_SIZE:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)


def _short(content: bytes | Path | Iterable[bytes]) -> Iterator[bytes]:
    """The content in parts of at most `CHUNK_SIZE` bytes, none of them empty."""
    if isinstance(content, Path):
        with content.open("rb", buffering=0) as file:
            while part := file.read(CHUNK_SIZE):
                yield part
        return
    for whole in (content,) if isinstance(content, bytes) else content:
        if len(whole) <= CHUNK_SIZE:
            if whole:
                yield whole
        else:
            yield from (whole[start : start + CHUNK_SIZE] for start in range(0, len(whole), CHUNK_SIZE))
