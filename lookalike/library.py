"""A library of pictures in Pachyderm, for notebooks and programs."""

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Literal
from urllib.parse import urlsplit

import grpc

from lookalike.changes import Changes
from lookalike.neighbours import Neighbour, Neighbours
from lookalike.ownservice import OwnService
from lookalike.pictures import Box, Given, asked
from pipelines.client import choosing, services
from pipelines.client.connection import Connection, connect
from pipelines.client.failures import cause, explain
from pipelines.client.jobs import Jobs
from pipelines.client.moments import commit_at
from pipelines.client.outages import outlasting
from pipelines.client.searches import Searches
from pipelines.client.services import Service
from pipelines.errors import LookalikeError
from pipelines.explaining.changes.history import Changes as History
from pipelines.explaining.timetravel import past
from pipelines.library import ingest, pictures
from pipelines.library.kept import Kept, default_place

_K = 5


class Library:
    """A library that can be searched. Made by `Library.open`; may be used from several threads, and in a `with` block,
    at whose end a service that it started ends."""

    def __init__(
        self, connection: Connection | None, service: Service | None, commit: str, report: Callable[[str], None]
    ) -> None:
        """connection: to Pachyderm, None for a library that is known by its service alone. service: None to start one
        with the first search."""
        self._connection = connection
        self._commit = commit
        self._report = report
        self._own: OwnService | None = None
        self._searches = None if service is None else Searches(service)

    @classmethod
    def open(
        cls,
        address: str = "",
        *,
        token_file: "str | PathLike[str] | None" = None,
        certificate: "str | PathLike[str] | None" = None,
        report: Callable[[str], None] = print,
    ) -> "Library":
        """Opens a library.

        address: that of Pachyderm, grpc://HOST:PORT, by default the one that the command `lookalike` would take in this
        directory; searches are answered by the service that runs for it, or by one that is started with the first
        search. Or that of a service, https://HOST, which is all that a search needs. token_file, certificate: those of
        that service, the certificate in PEM if it is its own. report: takes lines about what takes long. Raises
        LookalikeError if it cannot be reached.
        """
        token = None if token_file is None else Path(token_file)
        trusted = None if certificate is None else Path(certificate)
        if address.startswith(("http://", "https://")):
            return cls(None, _reached(address, token, trusted), "", report)
        with _explained():
            connection = connect(choosing.target(address), lambda reason: report(reason) if reason else None)
            return cls(connection, services.running(connection), "", report)

    def __enter__(self) -> "Library":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection to the service, and the service itself if it was started for this library."""
        if self._searches is not None:
            self._searches.close()
        if self._own is not None:
            self._own.close()
            self._own = self._searches = None

    def search(
        self,
        picture: Given | Sequence[Given],
        k: int = _K,
        *,
        metric: Literal["euclidean", "cosine"] | None = None,
        filter: str = "",
        max_distance: float | None = None,
        box: Box | None = None,
        combine: Literal["any", "all"] = "any",
        exact: bool | None = None,
    ) -> Neighbours:
        """The k nearest pictures of the library, by distance.

        picture: see lookalike.pictures.Given, or several, to any of which the pictures are near (or to all, with
        combine="all"). metric: by default that of the index. filter: a folder of the library, or a glob, that paths
        must match. box: the region of the picture to search for. exact: False for approximate answers where the index
        has codes, None for what is fast enough. Raises LookalikeError, with the reason.
        """
        searches = self._searching()
        answer = searches.search(
            asked(picture, box),
            k=k,
            metric=metric,
            filter=filter or None,
            max_distance=max_distance,
            combine=combine,
            exact=exact,
        )
        return Neighbours(answer, searches.thumbnail)

    def original(self, picture: "Neighbour | str", to: "str | PathLike[str] | None" = None, source: int = 0) -> bytes:
        """The file that a picture of the library came from, by a neighbour or an id. source: which of its paths. to: a
        path to write the file to. Raises LookalikeError if it is gone."""
        id_ = picture.id if isinstance(picture, Neighbour) else picture
        file = io.BytesIO()
        self._searching().original(id_, file, source)
        content = file.getvalue()
        if to is not None:
            Path(to).write_bytes(content)
        return content

    def add(self, *paths: "str | PathLike[str]", wait: bool = True) -> str:
        """Puts pictures, directories or archives into the library, as `lookalike add` does; those of the same name are
        replaced. wait: until they can be found. Returns the id of the commit. Raises LookalikeError for files that
        cannot be read, after the others were put, and for jobs that did not succeed."""
        connection = replace(self._pachyderm("add pictures"), doing="lookalike.Library.add")
        found = pictures.find([Path(each) for each in paths])
        with _explained():
            written = ingest.add(connection, found.sources)
            jobs = Jobs(connection).watch([written.commit], lambda *_: None) if wait and written.commit else []
        for job in jobs:
            if job.state != "success":
                raise LookalikeError(f"{job.pipeline} did not succeed: {job.reason or 'see `lookalike status`'}")
        unreadable = {**found.unreadable, **written.unreadable}
        for path, reason in unreadable.items():
            raise LookalikeError(f"cannot read {path}: {reason}; {len(unreadable)} of the files were left out")
        return written.commit

    def history(self, limit: int = 20, answers: bool = True) -> Changes:
        """The newest changes of the library, the newest first. answers: whether to count the answers that each made
        different."""
        connection = self._pachyderm("read the history")

        def read() -> Changes:
            history = History(connection, Kept(default_place()))
            newest = islice(history.newest_first(), limit)
            return Changes([history.with_answers(each) if answers else each for each in newest])

        with _explained():
            return outlasting(connection, read)

    def at(self, moment: str) -> "Library":
        """The library at a commit, by its id or as an ancestor such as "master^", or at a date. Its searches are
        answered by a service of its own, which ends with it. Raises LookalikeError if there were no answers then."""
        connection = self._pachyderm("go back in time")
        with _explained():
            commit = past.answering(connection, outlasting(connection, partial(commit_at, connection, moment)))
        return Library(connection, None, commit, self._report)

    def __repr__(self) -> str:
        where = self._connection.address if self._connection is not None else self._searching().service.url
        return f"<lookalike.Library {where}{f' at {self._commit[:12]}' if self._commit else ''}>"

    def _searching(self) -> Searches:
        if self._searches is None:
            connection = self._pachyderm("search")
            self._report("starting a service for this library; `lookalike serve` in a terminal keeps one running")
            self._own = OwnService(connection, self._commit, self._report)
            self._searches = Searches(self._own.service)
        return self._searches

    def _pachyderm(self, what: str) -> Connection:
        if self._connection is None:
            raise LookalikeError(
                f"a library that is known by its service alone cannot {what}: name Pachyderm's address"
            )
        return self._connection


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Failures of Pachyderm in words."""
    try:
        yield
    except grpc.RpcError as error:
        failed = cause(error)
        raise LookalikeError(str(error) if failed is None else explain(failed)) from error


def _reached(url: str, token: Path | None, certificate: Path | None) -> Service:
    """The service at a URL. Raises LookalikeError if it does not answer."""
    parts = urlsplit(url)
    plain = f"{parts.scheme}://{parts.netloc}"
    found = Service(plain, f"the service at {plain}", token, certificate)
    with Searches(found) as searches:
        return replace(found, status=searches.status())
