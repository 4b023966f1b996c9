"""A library of pictures in Pachyderm, for notebooks and programs."""

import io
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from lookalike.changes import Changes
from lookalike.facets import Facets
from lookalike.labels import Labels
from lookalike.neighbours import Neighbour, Neighbours
from lookalike.own_service import OwnService
from lookalike.pictures import Box, PictureInput, asked
from pipelines.analysis.changes.library_history import LibraryHistory as History
from pipelines.analysis.time_travel import past_library
from pipelines.client import server_choice
from pipelines.client.commit_sets import commit_at
from pipelines.client.commit_writer import CommitWriter
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.server.connection import Connection, connect
from pipelines.client.server.grpc_errors import explained
from pipelines.client.services import service_discovery
from pipelines.client.services.search_client import SearchClient, SearchError
from pipelines.client.services.service_discovery import ServiceEndpoint
from pipelines.client.services.service_roles import CLASSIFY
from pipelines.cluster import pipeline_status
from pipelines.errors import LookalikeError
from pipelines.library import ingest, picture_sources
from pipelines.library.content_cache import ContentCache, default_path
from pipelines.library.snapshots import REPO
from stages.files.question import DEFAULT_K, Question, QuestionError, validated

_TOP = 5
_CATCHES_UP_WITHIN = 30.0
_LOOK_EVERY = 0.1

_Answer = TypeVar("_Answer")


class Library:
    """A library that can be searched. Made by `Library.open`; may be used from several threads, and in a `with` block,
    at whose end a service that it started ends."""

    def __init__(
        self,
        connection: Connection | None,
        service: ServiceEndpoint | None,
        report: Callable[[str], None],
        found: tuple[str, Path] = ("", Path()),
        commit: str = "",
    ) -> None:
        """connection: to Pachyderm, None for a library that is known by its service alone. service: None to start one
        with the first search. found: the address that Pachyderm was found by, and the directory. commit: the one whose
        answers to give, "" for the newest."""
        self._connection = connection
        self._found = found
        self._commit = commit
        self._report = report
        self._lock = threading.Lock()
        self._own: OwnService | None = None
        self._searches = None if service is None else SearchClient(service)
        self._name = connection.address if connection is not None else service.url if service is not None else ""

    @classmethod
    def open(
        cls,
        address: str = "",
        *,
        token: str = "",
        token_file: "str | PathLike[str] | None" = None,
        certificate: "str | PathLike[str] | None" = None,
        report: Callable[[str], None] = print,
    ) -> "Library":
        """Opens a library.

        address: that of Pachyderm, grpc://HOST:PORT, by default the one that the command `lookalike` would take in this
        directory; searches are answered by the service that runs for it, or by one that is started with the first
        search. Or that of a service, https://HOST, which is all that a search needs. token, token_file: the token
        of that service, or the file that holds it. certificate: the service's own, in PEM, if it is not one that this
        machine trusts. report: takes lines about what takes long. Raises LookalikeError if it cannot be reached.
        """
        if address.startswith(("http://", "https://")):
            kept = None if token_file is None else Path(token_file)
            trusted = None if certificate is None else Path(certificate)
            return cls(None, _reached(ServiceEndpoint(_plain(address), "", kept, trusted, token=token)), report)
        with explained():
            connection = connect(server_choice.target(address), lambda reason: report(reason) if reason else None)
            return cls(connection, service_discovery.running(connection), report, (address, Path.cwd()))

    def __enter__(self) -> "Library":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection to the service, and the service itself if it was started for this library. A search
        afterwards opens them again."""
        with self._lock:
            self._leave()

    def search(
        self,
        picture: PictureInput | Sequence[PictureInput] | None = None,
        k: int = DEFAULT_K,
        *,
        text: str = "",
        without: str | Sequence[str] = (),
        vector: "Sequence[float] | NDArray[np.floating[Any]] | None" = None,
        metric: Literal["euclidean", "cosine"] | None = None,
        filter: str = "",
        where: str = "",
        max_distance: float | None = None,
        box: Box | None = None,
        combine: Literal["any", "all"] = "any",
        exact: bool = True,
    ) -> Neighbours:
        """The k nearest pictures of the library, by distance, and those of their near-duplicates that lie between them.

        picture: see lookalike.pictures.PictureInput, or several, to any of which the pictures are near (or to all, with
        combine="all"). text: words for what the pictures show, and without: for what they do not; a model needs a text
        tower for them. vector: (d,), of the index's model. These are asked about beside pictures or in their place. The
        others are the fields of a question: see stages.files.question.Question. exact=False is refused if the index
        has no codes. Raises LookalikeError, with the reason.
        """
        options: dict[str, Any] = {"k": k, "metric": metric, "filter": filter, "where": where, "text": text}
        options |= {"max_distance": max_distance, "combine": combine, "exact": exact}
        options |= {"without": without if isinstance(without, str) else list(without)}
        options |= {"vector": None if vector is None else np.asarray(vector, np.float64).tolist()}
        options |= {"box": None if box is None else list(box)}
        try:
            question = validated(Question, options)
        except QuestionError as error:
            raise LookalikeError(str(error)) from error
        none = picture is None and (vector is not None or text or without)
        pictures = [] if none else asked(picture, box)

        def found(searches: SearchClient) -> Neighbours:
            answer = searches.search(pictures, **{name: each for name, each in question.given.items() if name != "box"})
            return Neighbours(answer, searches.thumbnail)

        return self._by_a_service(found)

    def facets(self, *columns: str, where: str = "", filter: str = "") -> Facets:
        """How many pictures have each value of some columns, such as "camera" and "taken", by default of all that are
        worth a look. where, filter: as for a search. Raises LookalikeError, with the reason."""
        return self._by_a_service(lambda searches: Facets(searches.facets(where, filter, columns)))

    def classify(self, picture: PictureInput, top: int = _TOP, *, box: Box | None = None) -> Labels:
        """The likeliest labels of a picture, by the promoted model.

        picture, box: as for a search. Answered by a service that runs for the library, of searches or of the classifier
        alone; none is started for it. Raises LookalikeError, with the reason.
        """
        question = asked(picture, box)
        if self._connection is None:
            return self._by_a_service(lambda searches: Labels(searches.classify(question, top=top)))
        with explained():
            running = service_discovery.running(self._connection, CLASSIFY)
        if running is None:
            raise LookalikeError(
                "no service that classifies runs: start `lookalike classify serve`; it needs a model, which "
                "`lookalike classify promote` promotes"
            )
        with SearchClient(running) as searches:
            return Labels(searches.classify(question, top=top))

    def original(self, picture: "Neighbour | str", to: "str | PathLike[str] | None" = None, source: int = 0) -> bytes:
        """The file that a picture of the library came from, by a neighbour or an id. source: which of its paths. to: a
        path to write the file to. Raises LookalikeError if it is gone."""
        id_, number = (picture.id, picture.number(source)) if isinstance(picture, Neighbour) else (picture, source)

        def read(searches: SearchClient) -> bytes:
            file = io.BytesIO()
            searches.original(id_, file, number)
            return file.getvalue()

        content = self._by_a_service(read)
        if to is not None:
            Path(to).write_bytes(content)
        return content

    def add(self, *paths: "str | PathLike[str]", wait: bool = True) -> str:
        """Puts pictures, directories or archives into the library, as `lookalike add` does; those of the same name are
        replaced, and sidecars are skipped. wait: until they can be found. Returns the id of the commit. Raises
        LookalikeError, after the others were put, for pictures that cannot be read, and for jobs that did not
        succeed."""
        connection = replace(self._pachyderm("add pictures"), doing="lookalike.Library.add")
        found = picture_sources.find([Path(each) for each in paths])
        with explained():
            written = ingest.add(connection, found.sources)
            jobs = ProjectJobs(connection).watch([written.commit], lambda *_: None) if wait and written.commit else []
            rejected = pipeline_status.rejections(connection) if jobs else []
        for job in jobs:
            if job.state != "success":
                raise LookalikeError(f"{job.pipeline} did not succeed: {job.reason or 'see `lookalike status`'}")
        if jobs:
            self._catch_up(connection, written.commit)
        names = set(written.names)
        left_out = {f"cannot read {path}": why for path, why in {**found.unreadable, **written.unreadable}.items()}
        left_out |= {
            f"{each.source} is rejected": each.reason for each in rejected if each.repo == REPO and each.is_in(names)
        }
        for what, reason in left_out.items():
            more = f"; so are {len(left_out) - 1} more of the files left out" if len(left_out) > 1 else ""
            raise LookalikeError(f"{what}: {reason}{more}")
        return written.commit

    def history(self, limit: int = 20, answers: bool = True) -> Changes:
        """The newest changes of the library, the newest first. answers: whether to count the answers that each made
        different."""
        connection = self._pachyderm("read the history")

        def read() -> Changes:
            history = History(connection, ContentCache(default_path()))
            newest = islice(history.newest_first(), limit)
            return Changes([history.with_answers(each) if answers else each for each in newest])

        with explained():
            return connection.retry(read)

    def at(self, moment: str | date) -> "Library":
        """The library at a commit, by its id or as an ancestor such as "master^", or at the end of a date, as in
        docs/explaining.md: "2026-11-01", "yesterday", or a `date` or `datetime`. Its searches are
        answered by a service of its own, which ends with it. Raises LookalikeError if there were no answers then."""
        connection = self._pachyderm("go back in time")
        with explained():
            commit = past_library.answering_commit(connection, connection.retry(commit_at, connection, str(moment)))
        return Library(connection, None, self._report, self._found, commit)

    def __repr__(self) -> str:
        return f"<lookalike.Library {self._name}{f' at {self._commit[:12]}' if self._commit else ''}>"

    def _by_a_service(self, ask: Callable[[SearchClient], _Answer]) -> _Answer:
        """What a service answers. One that has ended is replaced by another, once."""
        searches = self._searching()
        try:
            return ask(searches)
        except SearchError as error:
            if error.answered or self._connection is None:
                raise
            return ask(self._searching(ended=searches))

    def _searching(self, ended: SearchClient | None = None) -> SearchClient:
        """Asks the service that this library knows, unless it has ended, or another."""
        with self._lock:
            if self._searches is None or self._searches is ended:
                self._leave()
                self._searches = SearchClient(self._service())
            return self._searches

    def _catch_up(self, connection: Connection, commit: str) -> None:
        """Waits until the service that this library asks, if there is one, answers from a commit or a later one."""
        until = time.monotonic() + _CATCHES_UP_WITHIN
        index = CommitWriter(connection, "index")
        while self._searches is not None and time.monotonic() < until:
            said = service_discovery.status(self._searches.service)
            if said is None:
                return  # it has ended: another begins with the newest
            with explained():
                newest = connection.retry(index.newest)
            if (said["commits"] or {}).get("index") in (commit, newest):
                return
            time.sleep(_LOOK_EVERY)

    def _service(self) -> ServiceEndpoint:
        """A service that runs for this library, or a new one."""
        connection = self._pachyderm("search")
        with explained():
            running = None if self._commit else service_discovery.running(connection)
        if running is not None:
            return running
        self._report("starting a service for this library; `lookalike serve` in a terminal keeps one running")
        self._own = OwnService(*self._found, self._commit, self._report)
        return self._own.service

    def _leave(self) -> None:
        if self._searches is not None:
            self._searches.close()
        if self._own is not None:
            self._own.close()
        if self._connection is not None:  # otherwise the service is all that is known
            self._own = self._searches = None

    def _pachyderm(self, what: str) -> Connection:
        if self._connection is None:
            raise LookalikeError(
                f"a library that is known by its service alone cannot {what}: name Pachyderm's address"
            )
        return self._connection


def _plain(url: str) -> str:
    """The URL without its path."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _reached(service: ServiceEndpoint) -> ServiceEndpoint:
    """The service with its status. Raises LookalikeError if it does not answer."""
    named = replace(service, words=f"the service at {service.url}")
    with SearchClient(named) as searches:
        return replace(named, status=searches.status())
