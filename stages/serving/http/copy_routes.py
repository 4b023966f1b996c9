"""The routes of the groups of copies: pages of them, and the one door of the service that changes the library.

The door is shut unless the program around the service gives what removes pictures. It lets in what a page of this very
service sends: one Origin, its own; JSON; the head of `images` that the groups were found in, as long as it is the head.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from fastapi import FastAPI, Request, Response

from stages.datum.contract import StageError
from stages.datum.text_format import counted
from stages.files.question import parse_json
from stages.serving.answer import copy_answer
from stages.serving.follow.configuration import ServiceConfiguration
from stages.serving.follow.copy_listings import KINDS, CopyListing, CopyListings
from stages.serving.follow.refusals import Refusal, bad_request
from stages.serving.follow.snapshots import Snapshot
from stages.serving.http import request_body
from stages.serving.http.json_responses import AsciiJSONResponse

MOST_GROUPS = 100
"""Of one page."""

_MOST_BYTES = 4 << 20
"""Of a request with ticked names."""

_READING = 4
"""Threads that ask Pachyderm for groups; one more removes."""


class PictureRemover(Protocol):
    """Removes pictures from `images`. Raises Refusal."""

    def remove(self, names: Sequence[str], head: str, description: str) -> str | None:
        """Removes the pictures with these true names, all of them or none, by one commit on top of `head`; returns its
        id, None if another commit is the head."""
        ...


class CopyRoutes:
    """Answers from the newest groups. snapshot: gives that of the moment, or raises Refusal. remover: None for a
    service that only shows the groups. Raises StageError for a remover without a token."""

    def __init__(
        self, snapshot: Callable[[], Snapshot], configuration: ServiceConfiguration, remover: PictureRemover | None
    ) -> None:
        if remover is not None and not configuration.token:
            raise StageError("a service that may change the library needs a token")
        self._snapshot = snapshot
        self._configuration = configuration
        self._remover = remover
        self._reading = ThreadPoolExecutor(_READING, "copies")
        self._removing = ThreadPoolExecutor(1, "removal")

    def close(self) -> None:
        """Ends the threads; a removal that has begun is finished."""
        for threads in (self._reading, self._removing):
            threads.shutdown(wait=False, cancel_futures=True)

    def add_to(self, app: FastAPI) -> None:
        app.get("/copies", tags=["copies"])(self.copies)
        app.post("/copies/review", tags=["copies"])(self.review)
        app.post("/copies/remove", tags=["copies"])(self.remove)

    async def copies(self, kind: str = "exact", after: int = 0, limit: int = 20) -> Response:
        """A page of the groups of copies, the largest first: exact ones, or near ones (kind=near). Each has its files,
        first the one to keep, and what makes the others copies of it."""
        snapshot, listings = self._snapshot(), self._listings()
        if kind not in KINDS:
            raise bad_request(f"kind is {' or '.join(KINDS)}")
        if after < 0 or not 1 <= limit <= MOST_GROUPS:
            raise bad_request(f"after counts from 0, and limit must be 1 to {MOST_GROUPS}")

        def found() -> dict[str, Any]:
            listing, index = listings.newest(), snapshot.commits.library
            commits = {"copies": listing.commit, "images": listing.images, "library": index}
            return {
                **copy_answer.page(listing, snapshot, kind, after, limit),
                "commits": {**commits, "head": listings.head()},
                "index": listings.age(index, listing),
                "edit": self._remover is not None,
            }

        return await self._answered(self._reading, found)

    async def review(self, request: Request) -> Response:
        """What `/copies/remove` would take and leave, for the same request; changes nothing."""
        _, names, head = await self._asked(request)
        return await self._answered(self._reading, lambda: copy_answer.removal(self._listing(head), names))

    async def remove(self, request: Request) -> Response:
        """Removes ticked copies by one commit, all of them or none: {"head": "…", "remove": ["trip/a.jpg", …]}. head:
        the commit of `images` that the groups were found in, see `/copies`; refused once it is not the newest."""
        remover, names, head = await self._asked(request)

        def removed() -> dict[str, Any]:
            count = copy_answer.removal(self._listing(head), names)["count"]
            commit = remover.remove(names, head, f"Remove {counted(count, 'copy', 'copies')} ticked on the page")
            if commit is None:
                raise _library_moved()
            return {"commit": commit, "removed": count}

        return await self._answered(self._removing, removed)

    async def _asked(self, request: Request) -> tuple[PictureRemover, list[str], str]:
        """The remover, the names and the head of a request that may come in. Raises Refusal."""
        if self._remover is None:
            raise Refusal(403, "read-only", "this service changes nothing: start one with `lookalike serve --edit`")
        self._check_sender(request)
        given = parse_json(await request_body.read_small(request, _MOST_BYTES))
        head, names = (given.get("head"), given.get("remove")) if isinstance(given, dict) else (None, None)
        if not isinstance(head, str) or not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise bad_request('send {"head": the commit that /copies names, "remove": a list of paths}')
        if not names:
            raise bad_request("no file is ticked")
        return self._remover, list(dict.fromkeys(names)), head

    def _check_sender(self, request: Request) -> None:
        """Lets in pages of this service alone, whatever cookie or token comes with the request. AccessControl has seen
        to it that each of these headers is there once at most."""
        scheme = "https" if self._configuration.certificate or self._configuration.proxy else "http"
        headers = request.headers
        if headers.get("origin", "").lower() != f"{scheme}://{headers['host']}".lower():
            raise Refusal(403, "wrong-origin", "only the page of this service may change the library: send its Origin")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refusal(415, "wrong-type", "send application/json")

    def _listings(self) -> CopyListings:
        found = self._snapshot().copies
        if found is None:
            raise Refusal(409, "no-copies", "nobody has looked for copies yet: run `lookalike duplicates`")
        return found

    def _listing(self, head: str) -> CopyListing:
        """The newest groups, if they were found in this commit of `images` and that is the head."""
        listing = self._listings().newest()
        if not head or not head == listing.images == self._listings().head():
            raise _library_moved()
        return listing

    async def _answered(self, threads: ThreadPoolExecutor, answer: Callable[[], dict[str, Any]]) -> Response:
        return AsciiJSONResponse(await asyncio.get_running_loop().run_in_executor(threads, answer))


def _library_moved() -> Refusal:
    return Refusal(
        409,
        "moved",
        "the library has changed since these copies were found, so nothing was removed: look at them again as soon as "
        "the pipelines have caught up",
    )
