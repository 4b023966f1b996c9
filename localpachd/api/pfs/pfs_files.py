"""The calls that read files, each from the layers of one moment. None holds a snapshot while its client reads."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import chain, islice

from localpachd.api.calls import cancellation
from localpachd.api.calls.cancellation import CallContext
from localpachd.api.messages import pages, pfs_messages as messages
from localpachd.api.messages.pfs_messages import FileInfos
from localpachd.api.schema.schema import BytesValue, pfs_pb2
from localpachd.errors import NotFound, PachError
from localpachd.pfs import commits, contents
from localpachd.pfs.files import temporary_filesets
from localpachd.pfs.pfs_entities import CommitInfo
from localpachd.pfs.pfs_service import PfsService
from localpachd.sqlite import snapshot
from localpachd.storage import object_urls, paths, trees
from localpachd.storage.filesets import FileContent, FileSet
from localpachd.storage.trees import TreeNode

_PAGE_LIMIT = 100_000
_MESSAGE = 256 << 10
"""Bytes in one message of a download: large enough to be fast, and small, since a client that reads slowly or not at
all makes the server hold a few of them."""

NodeLister = Callable[[str | None, str | None], Iterator[TreeNode]]
"""The nodes between two bounds, lower bound included, in path order."""


class FileCalls:
    """Reading files of `pfs_v2.API`."""

    _pfs: PfsService

    def GetFile(self, request: pfs_pb2.GetFileRequest, context: CallContext) -> Iterator[BytesValue]:
        if request.URL:
            self._export(request, context)
            return
        with self._pfs.chunks.uses.one():  # nor is the connection held for as long as the client reads
            with self._opened(request.file, context) as (info, files):
                node = _only_file(trees.glob(files, request.file.path, *_bounds(request)))
                if node is None or node.content is None:
                    raise _missing(request.file.path, info)
            name = f"{info.commit}:{node.path}"
            data = self._pfs.chunks.read(node.content, max(request.offset, 0), name)
            # The Python client fails on an empty file if the stream has no message.
            yield from _in_messages(chain((next(data, b""),), data))

    def GetFileTAR(self, request: pfs_pb2.GetFileRequest, context: CallContext) -> Iterator[BytesValue]:
        if request.URL:
            self._export(request, context)
            return
        with self._opened(request.file, context) as (info, files):
            yield from _in_messages(trees.tar(_archived(request, info, files), self._pfs.chunks))

    def _export(self, request: pfs_pb2.GetFileRequest, context: CallContext) -> None:
        """Uploads the files that GetFileTAR would send to the request's URL."""
        object_urls.check_target(request.URL)
        object_urls.check_reach(request.URL, self._pfs.reach)
        with self._opened(request.file, context) as (info, files):
            whole = ((node.path, node.content) for node in _archived(request, info, files))

            def read(path: str, content: FileContent) -> Iterator[bytes]:
                return cancellation.while_active(context, self._pfs.chunks.read(content, name=path))

            contents = ((path, read(path, content)) for path, content in whole if content is not None)
            object_urls.upload(request.URL, contents, self._pfs.reach)

    def InspectFile(self, request: pfs_pb2.InspectFileRequest, context: CallContext) -> pfs_pb2.FileInfo:
        with self._opened(request.file, context) as (info, files):
            node = trees.inspect(files, request.file.path)
            if node is None:
                raise _missing(request.file.path, info)
            return FileInfos(info).message(node)

    def ListFile(self, request: pfs_pb2.ListFileRequest, context: CallContext) -> Iterator[pfs_pb2.FileInfo]:
        _check_page(request)
        with self._opened(request.file, context) as (info, files):

            def listing(lower: str | None, upper: str | None) -> Iterator[TreeNode]:
                return trees.children(files, request.file.path, lower, upper)

            yield from map(FileInfos(info).encoded, _page(listing, request))

    def WalkFile(self, request: pfs_pb2.WalkFileRequest, context: CallContext) -> Iterator[pfs_pb2.FileInfo]:
        _check_page(request)
        base = paths.clean(request.file.path)
        with self._opened(request.file, context) as (info, files):

            def listing(lower: str | None, upper: str | None) -> Iterator[TreeNode]:
                nodes = trees.walk(files, base, lower, upper)
                first = next(nodes, None)
                if first is None and base != "/":
                    raise NotFound(f"commit/{info.commit.id} does not contain item: ({base})")
                return chain((first,), nodes) if first is not None else iter(())

            yield from map(FileInfos(info).encoded, _page(listing, request))

    def GlobFile(self, request: pfs_pb2.GlobFileRequest, context: CallContext) -> Iterator[pfs_pb2.FileInfo]:
        with self._snapshot(request.commit, "", context) as (info, files):
            yield from map(FileInfos(info).encoded, trees.glob(files, request.pattern, *_bounds(request)))

    def DiffFile(self, request: pfs_pb2.DiffFileRequest, context: CallContext) -> Iterator[pfs_pb2.DiffFileResponse]:
        with self._compared(request.new_file, "new", context) as (info, files):
            if request.HasField("old_file"):
                with self._compared(request.old_file, "old", context) as (old_info, old_files):
                    yield from _diff(info, files, request.new_file.path, old_info, old_files, request.old_file.path)
                return
            with self._before(info, context) as (old_info, old_files):
                yield from _diff(info, files, request.new_file.path, old_info, old_files, request.new_file.path)

    def _compared(
        self, file: pfs_pb2.File, which: str, context: CallContext
    ) -> AbstractContextManager[tuple[CommitInfo, FileSet]]:
        opened = self._opened(file, context)
        messages.checked(file.commit, which)
        return opened

    def _opened(self, file: pfs_pb2.File, context: CallContext) -> AbstractContextManager[tuple[CommitInfo, FileSet]]:
        if not file.ByteSize():
            raise PachError("file cannot be nil")
        return self._snapshot(file.commit, file.datum, context)

    @contextmanager
    def _snapshot(self, commit: pfs_pb2.Commit, tag: str, context: CallContext) -> Iterator[tuple[CommitInfo, FileSet]]:
        """A commit and its files, once it is open or finished."""
        asked = messages.to_commit(commit)
        with self._pfs.chunks.uses.one(), ExitStack() as held:

            def opened() -> tuple[CommitInfo, FileSet]:
                with ExitStack() as attempt:
                    conn = attempt.enter_context(self._pfs.db.connection())
                    attempt.enter_context(cancellation.interrupting(context, conn))
                    with snapshot(conn):
                        found = temporary_filesets.opened(conn, asked, time.time_ns())
                    held.push(attempt.pop_all())
                    return found

            info, files = self._pfs.patiently(opened, cancellation.watch(context, self._pfs.changes))
            yield info, files.tagged(tag) if tag else files

    @contextmanager
    def _before(self, info: CommitInfo, context: CallContext) -> Iterator[tuple[CommitInfo, FileSet]]:
        """The parent of a commit and its files; no files if there is no parent."""
        with self._pfs.db.connection() as conn, cancellation.interrupting(context, conn):
            if info.parent is None:
                yield info, FileSet(conn, ())
                return
            with snapshot(conn):
                parent = commits.resolve(conn, info.parent)
                files = contents.fileset(conn, parent)
            yield parent, files


def _diff(
    info: CommitInfo, files: FileSet, path: str, old_info: CommitInfo, old_files: FileSet, old_path: str
) -> Iterator[pfs_pb2.DiffFileResponse]:
    new_message, old_message = FileInfos(info).message, FileInfos(old_info).message
    for new, old in trees.diff(files, old_files, path, old_path):
        yield pfs_pb2.DiffFileResponse(
            new_file=new_message(new) if new else None, old_file=old_message(old) if old else None
        )


def _in_messages(pieces: Iterator[bytes]) -> Iterator[BytesValue]:
    """Joins and splits pieces of bytes into messages of a suitable size."""
    gathered = bytearray()
    sent = False
    for piece in pieces:
        whole = 0 if gathered else len(piece) // _MESSAGE * _MESSAGE
        for start in range(0, whole, _MESSAGE):
            yield BytesValue(value=piece[start : start + _MESSAGE])
            sent = True
        gathered += piece[whole:]
        while len(gathered) >= _MESSAGE:
            yield BytesValue(value=bytes(gathered[:_MESSAGE]))
            del gathered[:_MESSAGE]
            sent = True
    if gathered or not sent:
        yield BytesValue(value=bytes(gathered))


def _archived(request: pfs_pb2.GetFileRequest, info: CommitInfo, files: FileSet) -> Iterator[TreeNode]:
    nodes = trees.archive(files, request.file.path, *_bounds(request))
    first = next(nodes, None)
    if first is None:
        raise _missing(request.file.path, info)
    return chain((first,), nodes)


def _missing(path: str, info: CommitInfo) -> NotFound:
    return NotFound(f"file {path} not found in repo {info.commit.repo} at commit {info.commit.id}")


def _only_file(found: Iterator[TreeNode]) -> TreeNode | None:
    """The only node found; it must be a file."""
    only = None
    for node in islice(found, 2):
        if node.is_dir:
            raise PachError("cannot get directory or non-regular file. Use GetFileTAR instead")
        if only is not None:
            raise PachError("matched multiple files. Use GetFileTAR instead")
        only = node
    return only


def _bounds(request: pfs_pb2.GetFileRequest | pfs_pb2.GlobFileRequest) -> tuple[str | None, str | None]:
    """The path range of a request: its first path and the path before which it ends."""
    return request.path_range.lower or None, request.path_range.upper or None


def _check_page(request: pfs_pb2.ListFileRequest | pfs_pb2.WalkFileRequest) -> None:
    if request.reverse and request.number <= 0:
        raise PachError("number must be > 0 when reverse is true")
    if request.number > _PAGE_LIMIT:
        raise PachError(f"cannot return more than {_PAGE_LIMIT} files at a time")


def _page(listing: NodeLister, request: pfs_pb2.ListFileRequest | pfs_pb2.WalkFileRequest) -> Iterator[TreeNode]:
    """The part of a listing that a request selects by marker, number and direction; the marker itself is excluded."""
    marker, number = request.paginationMarker.path, request.number
    bounds = (None, marker or None) if request.reverse else (marker or None, None)
    nodes = listing(*bounds)
    if marker:
        shown = paths.clean(marker)
        nodes = (node for node in nodes if paths.bare(node.path) != shown)
    if request.reverse:
        return reversed(deque(nodes, maxlen=number))
    return iter(pages.first_items(nodes, number))
