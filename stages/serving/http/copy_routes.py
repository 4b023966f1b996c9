"""The routes of the groups of copies: pages of them, and the removal of ticked files as long as the head of `images`
is the commit that the groups were found in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fastapi import FastAPI, Request, Response

from stages.datum.text_format import counted
from stages.serving.answer import copy_answer
from stages.serving.follow.copy_listings import KINDS, CopyListing, CopyListings
from stages.serving.follow.refusals import Refusal, bad_request, library_moved
from stages.serving.follow.snapshots import Snapshot
from stages.serving.http.edit_door import EditDoor, LibraryEditor
from stages.serving.http.json_responses import AsciiJSONResponse

MOST_GROUPS = 100
"""Of one page."""

_READING = 4
"""Threads that ask Pachyderm for groups."""


class CopyRoutes:
    """Answers from the newest groups. snapshot: gives that of the moment, or raises Refusal."""

    def __init__(self, snapshot: Callable[[], Snapshot], door: EditDoor) -> None:
        self._snapshot = snapshot
        self._door = door
        self._reading = ThreadPoolExecutor(_READING, "copies")

    def close(self) -> None:
        """Ends the threads."""
        self._reading.shutdown(wait=False, cancel_futures=True)

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
                "edit": self._door.open,
            }

        return await self._answered(found)

    async def review(self, request: Request) -> Response:
        """What `/copies/remove` would take and leave, for the same request; changes nothing."""
        _, names, head = await self._asked(request)
        return await self._answered(lambda: copy_answer.removal(self._listing(head), names))

    async def remove(self, request: Request) -> Response:
        """Removes ticked copies by one commit, all of them or none: {"head": "…", "remove": ["trip/a.jpg", …]}. head:
        the commit of `images` that the groups were found in, see `/copies`; refused once it is not the newest."""
        editor, names, head = await self._asked(request)

        def removed() -> dict[str, Any]:
            count = copy_answer.removal(self._listing(head), names)["count"]
            commit = editor.remove(names, head, f"Remove {counted(count, 'copy', 'copies')} ticked on the page")
            return {"commit": commit, "removed": count}

        return await self._door.answered(removed)

    async def _asked(self, request: Request) -> tuple[LibraryEditor, list[str], str]:
        """The editor, the names and the head of a request that may come in. Raises Refusal."""
        editor, given = await self._door.asked(request)
        head, names = given.get("head"), given.get("remove")
        if not isinstance(head, str) or not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise bad_request('send {"head": the commit that /copies names, "remove": a list of paths}')
        if not names:
            raise bad_request("no file is ticked")
        return editor, list(dict.fromkeys(names)), head

    def _listings(self) -> CopyListings:
        found = self._snapshot().copies
        if found is None:
            raise Refusal(409, "no-copies", "nobody has looked for copies yet: run `lookalike duplicates`")
        return found

    def _listing(self, head: str) -> CopyListing:
        """The newest groups, if they were found in this commit of `images` and that is the head."""
        listing = self._listings().newest()
        if not head or not head == listing.images == self._listings().head():
            raise library_moved()
        return listing

    async def _answered(self, answer: Callable[[], dict[str, Any]]) -> Response:
        return AsciiJSONResponse(await asyncio.get_running_loop().run_in_executor(self._reading, answer))
