"""Pictures at URLs put into the library, some thousands at a time, each lot in one commit.

A lot lies on disk until it is put; nothing else grows with the number of pictures but the journal. What was put is
found there by the next run, which fetches what is missing or has changed.
"""

import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pipelines.client.commit_writer import CommitWriter
from pipelines.client.server.connection import Connection
from pipelines.library import ingest
from pipelines.library.library_commit import UploadProgress
from pipelines.library.picture_sources import PictureSource
from pipelines.library.remote.fetch_journal import FetchedPicture, FetchJournal
from pipelines.library.remote.host_queue import HostQueue
from pipelines.library.remote.picture_fetcher import PictureFetcher
from pipelines.library.remote.picture_lists import ListProblem
from pipelines.library.remote.picture_urls import FileVersion, PictureUrl
from pipelines.library.snapshots import REPO, open_library
from stages.record.file_kinds import HEAD, kind_of, why_unreadable
from stages.record.url_records import UrlRecord

LOT = 4000
"""Pictures in a commit."""

LOT_BYTES = 1 << 30
"""Bytes on disk after which a commit is made."""

Agreement = Callable[[Mapping[str, bool]], UploadProgress]
"""See pipelines.library.ingest.add."""


@dataclass
class RemoteResult:
    """What became of pictures at URLs. commits: with the number of pictures put in each. put, replaced, unchanged:
    numbers of pictures. names: of those put. failures: numbers by reason. stated: what lists state of pictures that the
    library has, by name, and labels: the labels that they give."""

    commits: dict[str, int] = field(default_factory=dict)
    put: int = 0
    replaced: int = 0
    unchanged: int = 0
    names: set[str] = field(default_factory=set)
    failures: Counter[str] = field(default_factory=Counter)
    stated: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


class _Fetched(NamedTuple):
    picture: FetchedPicture
    source: PictureSource


class RemoteIngest:
    """Puts pictures at URLs into a library.

    failed: is called with the URL, or the line of a list, and the reason of each that is not there. progress: with the
    number of pictures dealt with since the last call. agree: see ingest.add, for each lot. by_reference: whether
    pictures stay where they are, and the library gets records of them (see stages.record.url_records).
    """

    def __init__(
        self,
        connection: Connection,
        journal: FetchJournal,
        fetcher: PictureFetcher,
        agree: Agreement,
        failed: Callable[[str, str], None],
        progress: UploadProgress = lambda _: None,
        lot: int = LOT,
        by_reference: bool = False,
    ) -> None:
        self._connection = connection
        self._journal = journal
        self._fetcher = fetcher
        self._agree = agree
        self._failed = failed
        self._progress = progress
        self._most = lot
        self._by_reference = by_reference
        self._lot: list[_Fetched] = []
        self._size = 0
        self._number = 0
        self._scratch = Path()
        self._result = RemoteResult()

    def run(self, pictures: Iterable[PictureUrl | ListProblem]) -> RemoteResult:
        """Fetches and puts them. What was put stays when it is interrupted. Raises LookalikeError as ingest.add."""
        self._journal.hold(held_names(self._connection))
        work: HostQueue[tuple[PictureUrl, FetchedPicture | None], Any] = HostQueue(self._fetch, _host)
        with ExitStack() as opened:
            outcomes = work.run(self._needed(pictures))
            opened.callback(outcomes.close)  # type: ignore[attr-defined]
            self._scratch = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="lookalike-")))
            for outcome in outcomes:
                (picture, held), found = outcome.item, outcome.result
                if outcome.error:
                    self._fail(picture.url, outcome.error)
                elif found is None:
                    self._keep(picture)
                else:
                    self._take(picture, held, *found)
            self._put()
        return self._result

    def _needed(
        self, pictures: Iterable[PictureUrl | ListProblem]
    ) -> Iterator[tuple[PictureUrl, FetchedPicture | None]]:
        """Those to ask for, with what the library has of them."""
        for each in pictures:
            if isinstance(each, ListProblem):
                self._fail(each.line, each.reason)
                continue
            other = self._journal.take(each.name, each.url)
            if other:
                if other != each.url:
                    self._fail(each.url, f"{other} has the same name, {each.name}")
                continue
            held = self._journal.find(each.name, each.url)
            if each.content is not None:
                self._take(each, held, each.content, FileVersion())
            elif held is not None and is_same(held, each.version):
                self._keep(each)
            else:
                yield each, held

    def _fetch(self, asked: tuple[PictureUrl, FetchedPicture | None]) -> tuple[bytes, FileVersion] | None:
        picture, held = asked
        return self._fetcher.get(
            picture.url, None if held is None else FileVersion(held.etag, held.modified, held.size)
        )

    def _take(self, picture: PictureUrl, held: FetchedPicture | None, content: bytes, version: FileVersion) -> None:
        """Puts a fetched file into the lot, unless the library has it. A full lot is put into the library."""
        digest = hashlib.sha256(content).hexdigest()
        if held is not None and held.sha256 == digest:
            self._keep(picture)
            return
        if self._by_reference and (reason := _unfit(picture, content)):
            self._fail(picture.url, reason)
            return
        self._state(picture)
        self._number += 1
        path = self._scratch / str(self._number)
        source = PictureSource(picture.name, path, len(content))
        if self._by_reference:
            record = UrlRecord(picture.name, picture.url, version.etag, digest, len(content))
            source = replace(source, record=record)
        else:
            path.write_bytes(content)
            self._size += len(content)
        self._lot.append(_Fetched(FetchedPicture(picture.name, picture.url, *version, digest), source))
        if len(self._lot) >= self._most or self._size >= LOT_BYTES:
            self._put()

    def _put(self) -> None:
        lot, self._lot, self._size = self._lot, [], 0
        if not lot:
            return
        written = ingest.add(self._connection, [each.source for each in lot], agree=self._agree)
        by_path = {str(each.source.path): each.picture for each in lot}
        for path, reason in written.unreadable.items():
            self._fail(by_path[path].url, reason)
        names = {*written.names, *(name for name, equal in written.held.items() if equal)}
        self._journal.put(each.picture for each in lot if each.picture.name in names)
        if written.commit:
            self._result.commits[written.commit] = written.files
        self._result.put += written.files
        self._result.names.update(written.names)
        self._result.replaced += sum(name in written.held for name in written.names)
        self._result.unchanged += sum(written.held.values())
        for each in lot:
            each.source.path.unlink(missing_ok=True)
        self._progress(len(lot))

    def _keep(self, picture: PictureUrl) -> None:
        self._state(picture)
        self._result.unchanged += 1
        self._progress(1)

    def _state(self, picture: PictureUrl) -> None:
        if picture.attributes:
            self._result.stated[picture.name] = picture.attributes
        if picture.label:
            self._result.labels[picture.name] = picture.label

    def _fail(self, what: str, reason: str) -> None:
        self._result.failures[reason] += 1
        self._failed(what, reason)
        self._progress(1)


def held_names(connection: Connection) -> set[str]:
    """The names of the pictures that the library has now."""
    with open_library(connection, connection.retry(CommitWriter(connection, REPO).newest)) as library:
        return connection.retry(library.names)


def _unfit(picture: PictureUrl, content: bytes) -> str:
    """Why a picture cannot stay where it is, "" if it can."""
    if picture.content is not None:
        return "the list holds it itself: add the list without --by-reference"
    if kind_of(content[:HEAD]).is_archive:
        return "it is an archive, not a picture: add it without --by-reference"
    return "" if kind_of(content[:HEAD]).is_picture else why_unreadable(content[:HEAD])


def _host(asked: tuple[PictureUrl, FetchedPicture | None]) -> str:
    return urlsplit(asked[0].url).netloc.lower()


def is_same(held: FetchedPicture, version: FileVersion | None) -> bool:
    """Whether a version is certainly the one held; None for one that is not known."""
    if version is None:
        return False
    if version.etag and held.etag:
        return version.etag == held.etag
    return bool(version.modified) and (version.modified, version.size) == (held.modified, held.size)
