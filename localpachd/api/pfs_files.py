"""The calls about files: one stream to write, streams to read."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

from localpachd.api import pfs_messages as messages
from localpachd.api.schema import BytesValue, Empty, pfs_pb2
from localpachd.errors import NotFound, PachError, Unimplemented
from localpachd.pfs import commits, contents, modify
from localpachd.pfs.service import Pfs
from localpachd.pfs.values import Commit, CommitInfo
from localpachd.storage import paths, tars, trees
from localpachd.storage.filesets import FileSet
from localpachd.storage.trees import Node

_PAGE_LIMIT = 100_000


class FileCalls:
    """Files of `pfs_v2.API`."""

    _pfs: Pfs

    def ModifyFile(self, requests: Iterator[Any], context: Any) -> Any:
        first = next(requests, None)
        if first is None or first.WhichOneof("body") != "set_commit":
            raise PachError("first message must be a commit")
        target = messages.to_commit(first.set_commit)
        changes = list(self._changes(requests))
        # gRPC ends the stream of a caller who went away like that of one who is done: a second look raises for the one.
        next(requests, None)
        modify.modify(self._pfs, target, changes)
        return Empty()

    def _changes(self, requests: Iterator[Any]) -> Iterator[modify.Change]:
        """The changes of a stream; neighbouring pieces of one file become one addition."""
        pending = next(requests, None)
        while pending is not None:
            kind = pending.WhichOneof("body")
            if kind == "add_file":
                pieces = _Pieces(pending.add_file, requests)
                content = self._pfs.chunks.store(pieces)
                yield modify.Addition(pieces.path, pieces.tag, content)
                pending = pieces.following
                continue
            if kind == "delete_file":
                yield modify.Removal(_stored(pending.delete_file.path), pending.delete_file.datum or modify.DEFAULT_TAG)
            elif kind == "copy_file":
                yield _copy(pending.copy_file)
            elif kind == "set_commit":
                raise PachError("cannot set commit")
            pending = next(requests, None)

    def GetFile(self, request: Any, context: Any) -> Iterator[Any]:
        _refuse_egress(request)
        with self._opened(request.file) as (info, files):
            found = list(islice(_matching(files, request), 2))
            if not found:
                raise _missing(request.file.path, info)
            if len(found) > 1:
                raise PachError("matched multiple files. Use GetFileTAR instead")
            node = found[0]
            if node.content is None:
                raise PachError("cannot get directory or non-regular file. Use GetFileTAR instead")
            data = self._pfs.chunks.read(node.content, request.offset)
            # A stream without any message makes the Python client fail on an empty file.
            first = next(data, b"")
            for piece in chain((first,), data):
                for start in range(0, len(piece) or 1, _MESSAGE):
                    yield BytesValue(value=piece[start : start + _MESSAGE])

    def GetFileTAR(self, request: Any, context: Any) -> Iterator[Any]:
        _refuse_egress(request)
        with self._opened(request.file) as (info, files):
            nodes = _with_descendants(files, _matching(files, request))
            first = next(nodes, None)
            if first is None:
                raise _missing(request.file.path, info)
            for piece in tars.stream(chain((first,), nodes), self._pfs.chunks):
                yield BytesValue(value=piece)

    def InspectFile(self, request: Any, context: Any) -> Any:
        with self._opened(request.file) as (info, files):
            node = trees.inspect(files, request.file.path)
            if node is None:
                raise _missing(request.file.path, info)
            return messages.FileInfos(info)(node)

    def ListFile(self, request: Any, context: Any) -> Iterator[Any]:
        with self._opened(request.file) as (info, files):
            yield from map(messages.FileInfos(info), _page(trees.children(files, request.file.path), request))

    def WalkFile(self, request: Any, context: Any) -> Iterator[Any]:
        with self._opened(request.file) as (info, files):
            nodes = trees.walk(files, request.file.path)
            first = next(nodes, None)
            if first is None and paths.clean(request.file.path) != "/":
                raise NotFound(f"commit/{info.commit.id} does not contain item: ({paths.clean(request.file.path)})")
            found = chain((first,), nodes) if first is not None else iter(())
            yield from map(messages.FileInfos(info), _page(found, request))

    def GlobFile(self, request: Any, context: Any) -> Iterator[Any]:
        with self._snapshot(messages.to_commit(request.commit), "") as (info, files):
            yield from map(messages.FileInfos(info), _in_range(trees.glob(files, request.pattern), request))

    def DiffFile(self, request: Any, context: Any) -> Iterator[Any]:
        with self._opened(request.new_file) as (new_info, new_files):
            old = self._old_side(request, new_info)
            with self._pfs.db.read() as conn:
                old_files = contents.fileset(conn, old) if old else FileSet(conn, ())
                old_path = request.old_file.path if request.HasField("old_file") else request.new_file.path
                new_message, old_message = messages.FileInfos(new_info), messages.FileInfos(old or new_info)
                for new, before in trees.diff(new_files, old_files, request.new_file.path, old_path):
                    yield pfs_pb2.DiffFileResponse(
                        new_file=new_message(new) if new else None, old_file=old_message(before) if before else None
                    )

    def _old_side(self, request: Any, new: CommitInfo) -> CommitInfo | None:
        with self._pfs.db.read() as conn:
            if request.HasField("old_file") and request.old_file.HasField("commit"):
                return commits.resolve(conn, messages.to_commit(request.old_file.commit))
            return commits.resolve(conn, new.parent) if new.parent else None

    def _opened(self, file: Any) -> Any:
        return self._snapshot(messages.to_commit(file.commit), file.datum)

    @contextmanager
    def _snapshot(self, commit: Commit, tag: str) -> Iterator[tuple[CommitInfo, FileSet]]:
        with self._pfs.db.read() as conn:
            info = commits.resolve(conn, commit)
            files = contents.fileset(conn, info)
            yield info, files.tagged(tag) if tag else files


_MESSAGE = 2 << 20
"""Bytes in one message of a download: far below the limit, big enough to be quick."""


class _Pieces:
    """The data of one file out of a stream of additions: iterates until another path or kind comes, which it keeps."""

    def __init__(self, first: Any, requests: Iterator[Any]) -> None:
        self.path = _stored(first.path)
        self.tag = first.datum or modify.DEFAULT_TAG
        self.following: Any = None
        self._first = first
        self._requests = requests

    def __iter__(self) -> Iterator[bytes]:
        yield _data(self._first)
        for request in self._requests:
            added = request.add_file
            same = request.WhichOneof("body") == "add_file" and added.path == self._first.path
            if not same or (added.datum or modify.DEFAULT_TAG) != self.tag:
                self.following = request
                return
            yield _data(added)


def _data(added: Any) -> bytes:
    if added.WhichOneof("source") == "url":
        raise Unimplemented("localpachd does not fetch URLs yet: download the file and put it")
    data: bytes = added.raw.value
    return data


def _stored(path: str) -> str:
    paths.validate(path)
    cleaned = paths.clean(path)
    return paths.directory(cleaned) if path.endswith("/") else cleaned


def _copy(message: Any) -> modify.Copy:
    return modify.Copy(
        source=messages.to_commit(message.src.commit),
        source_path=message.src.path,
        path=_stored(message.dst),
        tag=message.datum or modify.DEFAULT_TAG,
        append=message.append,
    )


def _refuse_egress(request: Any) -> None:
    if request.URL:
        raise Unimplemented("localpachd does not export to URLs yet: get the file and copy it")


def _missing(path: str, info: CommitInfo) -> NotFound:
    return NotFound(f"file {path} not found in repo {info.commit.repo} at commit {info.commit.id}")


def _matching(files: FileSet, request: Any) -> Iterator[Node]:
    return _in_range(trees.glob(files, request.file.path), request)


def _in_range(nodes: Iterator[Node], request: Any) -> Iterator[Node]:
    if not request.HasField("path_range"):
        return nodes
    lower, upper = request.path_range.lower, request.path_range.upper
    return (node for node in nodes if node.path >= lower and (not upper or node.path < upper))


def _with_descendants(files: FileSet, matched: Iterator[Node]) -> Iterator[Node]:
    """Every matched node with all below it, each once."""
    inside = ""
    for node in matched:
        if inside and node.path.startswith(inside):
            continue
        if node.is_dir:
            inside = node.path
            yield from trees.walk(files, node.path)
        else:
            yield node


def _page(nodes: Iterable[Node], request: Any) -> Iterator[Node]:
    """The part of a listing that a request asks for by marker, number and direction."""
    number, marker = request.number, request.paginationMarker.path
    if number > _PAGE_LIMIT:
        raise PachError(f"cannot return more than {_PAGE_LIMIT} files at a time")
    if request.reverse:
        if number <= 0:
            raise PachError("number must be > 0 when reverse is true")
        before = [node for node in nodes if not marker or node.path < marker]
        return iter(before[::-1][:number])
    after = (node for node in nodes if not marker or node.path > marker)
    return islice(after, number) if number else after
