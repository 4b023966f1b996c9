"""The calls that write files and make file sets: they turn streams of messages into the pfs room's changes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from localpachd.api.calls import cancellation
from localpachd.api.calls.cancellation import CallContext
from localpachd.api.messages import pfs_messages as messages
from localpachd.api.schema.schema import pfs_pb2
from localpachd.errors import PachError
from localpachd.pfs import commits, contents
from localpachd.pfs.files import file_modification, temporary_filesets
from localpachd.pfs.files.file_modification import FileAddition, FileChange, FileCopy, FileRemoval
from localpachd.pfs.files.temporary_filesets import FileSetLayers
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.storage import object_urls, paths
from localpachd.storage.filesets import DEFAULT_TAG, FileSet

_DRAIN_LIMIT = 1 << 30
"""Bytes that are still read of a refused stream; a message counts as `_LEAST` bytes at least."""
_LEAST = 16 << 10


_DIFF = 1
"""GetFileSetRequest.FileSetType since 2.11: only the files written in the commit; 0 means all its files."""
_SHARD_FILES = 1_000_000
_SHARD_BYTES = 1_000_000_000


class ModifyCalls:
    """ModifyFile of `pfs_v2.API`, and the calls about file sets that clients hold by id."""

    _pfs: PfsService

    def ModifyFile(self, requests: Iterator[pfs_pb2.ModifyFileRequest], context: CallContext) -> None:
        with _drained_on_refusal(requests):
            first = next(requests, None)
            if first is None or first.WhichOneof("body") != "set_commit":
                raise PachError("first message must be a commit")
            file_modification.modify(self._pfs, messages.to_commit(first.set_commit), self._changes(requests, context))

    def CreateFileSet(
        self, requests: Iterator[pfs_pb2.ModifyFileRequest], context: CallContext
    ) -> pfs_pb2.CreateFileSetResponse:
        with _drained_on_refusal(requests):
            made = file_modification.create_file_set(self._pfs, self._changes(requests, context))
        return pfs_pb2.CreateFileSetResponse(file_set_id=made)

    def _changes(self, requests: Iterator[pfs_pb2.ModifyFileRequest], context: CallContext) -> Iterator[FileChange]:
        """The changes in a stream; consecutive pieces of one file become one addition."""
        request = next(requests, None)
        while request is not None:
            kind = request.WhichOneof("body")
            if kind == "add_file" and request.add_file.HasField("url"):
                yield from self._fetched(request.add_file, context)
                request = next(requests, None)
                continue
            if kind == "add_file":
                pieces = _Pieces(request.add_file, requests)
                content = self._pfs.chunks.store(pieces)
                yield FileAddition(pieces.path, pieces.tag, content)
                request = pieces.following
                continue
            yield _change(kind, request)
            request = next(requests, None)
        # gRPC ends the stream of a client that has gone like a complete one; only another `next` raises.
        next(requests, None)

    def _fetched(self, added: pfs_pb2.AddFile, context: CallContext) -> Iterator[FileChange]:
        """The content of a URL as additions: of one file or, if recursive, of each file below the URL. It is fetched
        for as long as the client waits for it."""
        paths.validate(added.path)
        for name, pieces in object_urls.download(added.url.URL, self._pfs.reach, added.url.recursive):
            path = paths.clean(f"{added.path}/{name}") if name else paths.clean(added.path)
            paths.validate(path)
            yield FileAddition(
                path, added.datum or DEFAULT_TAG, self._pfs.chunks.store(cancellation.while_active(context, pieces))
            )

    def GetFileSet(self, request: pfs_pb2.GetFileSetRequest) -> pfs_pb2.CreateFileSetResponse:
        commit = messages.to_commit(request.commit)

        def step(txn: Transaction) -> FileSetLayers:
            info = commits.resolve(txn.conn, commit)
            found = contents.diff_layers if request.type == _DIFF else contents.layers
            return FileSetLayers(found(txn.conn, info))

        return self._kept(step, temporary_filesets.DEFAULT_TTL)

    def ComposeFileSet(self, request: pfs_pb2.ComposeFileSetRequest) -> pfs_pb2.CreateFileSetResponse:
        def step(txn: Transaction) -> FileSetLayers:
            parts = [temporary_filesets.find(txn.conn, each, txn.now) for each in request.file_set_ids]
            composed = temporary_filesets.compose_all(txn.conn, self._pfs.chunks, parts)
            self._pfs.chunks.flush()
            return composed

        return self._kept(step, request.ttl_seconds * temporary_filesets.SECOND or temporary_filesets.DEFAULT_TTL)

    def AddFileSet(self, request: pfs_pb2.AddFileSetRequest, context: CallContext) -> None:
        commit = messages.to_commit(request.commit)

        def step(txn: Transaction) -> None:
            temporary_filesets.add_to_commit(txn, self._pfs.chunks, commit, request.file_set_id)
            self._pfs.chunks.flush()

        with self._pfs.chunks.uses.one():
            self._pfs.patiently(lambda: self._pfs.transact(step), cancellation.watch(context, self._pfs.changes))

    def RenewFileSet(self, request: pfs_pb2.RenewFileSetRequest) -> None:
        ttl = request.ttl_seconds * temporary_filesets.SECOND
        self._pfs.transact(lambda txn: temporary_filesets.renew(txn, request.file_set_id, ttl))

    def ShardFileSet(self, request: pfs_pb2.ShardFileSetRequest) -> pfs_pb2.ShardFileSetResponse:
        limits = (
            request.num_files if request.num_files > 0 else _SHARD_FILES,
            request.size_bytes if request.size_bytes > 0 else _SHARD_BYTES,
        )
        with self._pfs.db.read() as conn:
            files = FileSet(conn, temporary_filesets.find(conn, request.file_set_id, time.time_ns()).tree)
            ranges = [
                pfs_pb2.PathRange(lower=lower, upper=upper)
                for lower, upper in temporary_filesets.shards(files, *limits)
            ]
        return pfs_pb2.ShardFileSetResponse(shards=ranges)

    def _kept(self, step: Callable[[Transaction], FileSetLayers], ttl: int) -> pfs_pb2.CreateFileSetResponse:
        """Keeps the file set that a step returns; replies with its id."""
        with self._pfs.chunks.uses.one():
            made = self._pfs.transact(lambda txn: temporary_filesets.keep(txn, step(txn), ttl))
        return pfs_pb2.CreateFileSetResponse(file_set_id=made)


@contextmanager
def _drained_on_refusal(requests: Iterator[pfs_pb2.ModifyFileRequest]) -> Iterator[None]:
    """Delays a refusal until the client has sent the rest of its stream, within limits. A client that is still sending,
    as pachctl is, would learn that the stream has ended, but not why."""
    try:
        yield
    except PachError:
        left = _DRAIN_LIMIT
        with suppress(Exception):  # the end of the stream, or the client has gone
            while left > 0:
                left -= max(_LEAST, next(requests).ByteSize())
        raise


class _Pieces:
    """The data of one file out of a stream of additions: iterates until another path or kind comes, which it keeps."""

    def __init__(self, first: pfs_pb2.AddFile, requests: Iterator[pfs_pb2.ModifyFileRequest]) -> None:
        paths.validate(first.path)
        self.path = paths.clean(first.path)
        self.tag = first.datum or DEFAULT_TAG
        self.following: pfs_pb2.ModifyFileRequest | None = None
        self._first = first
        self._requests = requests

    def __iter__(self) -> Iterator[bytes]:
        yield self._first.raw.value
        path, datum = self._first.path, self._first.datum
        for request in self._requests:
            if request.WhichOneof("body") != "add_file" or request.add_file.HasField("url"):
                self.following = request
                return
            added = request.add_file
            if added.path != path or added.datum != datum:
                self.following = request
                return
            yield added.raw.value


def _change(kind: str | None, request: pfs_pb2.ModifyFileRequest) -> FileChange:
    if kind == "delete_file":
        return FileRemoval(_stored(request.delete_file.path), request.delete_file.datum or DEFAULT_TAG)
    if kind == "copy_file":
        return _copy(request.copy_file)
    raise PachError("cannot set commit" if kind == "set_commit" else "unrecognized message type")


def _copy(message: pfs_pb2.CopyFile) -> FileCopy:
    return FileCopy(
        source=messages.to_commit(message.src.commit),
        source_path=message.src.path,
        source_tag=message.src.datum,
        path=paths.bare(_stored(message.dst)),
        tag=message.datum or DEFAULT_TAG,
        append=message.append,
    )


def _stored(path: str) -> str:
    paths.validate(path)
    cleaned = paths.clean(path)
    return paths.directory(cleaned) if path.endswith("/") else cleaned
