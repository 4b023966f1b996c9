"""The one door of the service that changes the library, and the route that takes a change of its own back.

The door is shut unless the program around the service gives what changes the library. It lets in what a page of this
very service sends: one Origin, its own; JSON; with the commits that the page has shown, as long as they are the newest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from fastapi import FastAPI, Request, Response

from stages.datum.contract import StageError
from stages.files.question import parse_json
from stages.serving.follow.configuration import ServiceConfiguration
from stages.serving.follow.refusals import Refusal, bad_request
from stages.serving.http import request_body
from stages.serving.http.json_responses import AsciiJSONResponse

_MOST_BYTES = 4 << 20
"""Of a request, which names what is ticked."""


@dataclass(frozen=True)
class LabelState:
    """The labels of a moment: the files of `labels` by name, and the newest commits of `images` and `labels`, "" for
    none."""

    images: str
    labels: str
    files: Mapping[str, bytes]


class LibraryEditor(Protocol):
    """Changes the library. All methods raise Refusal, and change nothing, `library_moved` where another commit is the
    newest than the one to change."""

    def remove(self, names: Sequence[str], head: str, description: str) -> str:
        """Removes the pictures with these true names, all of them or none, by one commit on top of `head`; returns its
        id."""
        ...

    def labels(self) -> LabelState:
        """Those of now."""
        ...

    def put_labels(self, files: Mapping[str, bytes], onto: LabelState, description: str) -> str:
        """Writes files of labels, all of them or none, by one commit on top of `onto`; returns its id. Makes the repo
        if there is none."""
        ...

    def take_back(self, commit: str) -> tuple[str, str]:
        """Takes a change back if it is the last one; returns the commit that does, and the change in words."""
        ...


class EditDoor:
    """Checks who changes the library, and makes one change at a time. editor: None for a service that changes nothing.
    Raises StageError for an editor without a token."""

    def __init__(self, configuration: ServiceConfiguration, editor: LibraryEditor | None) -> None:
        if editor is not None and not configuration.token:
            raise StageError("a service that may change the library needs a token")
        self._configuration = configuration
        self._editor = editor
        self._editing = ThreadPoolExecutor(1, "edits")

    @property
    def open(self) -> bool:
        """Whether anything can be changed here."""
        return self._editor is not None

    def close(self) -> None:
        """Ends the thread; a change that has begun is finished."""
        self._editing.shutdown(wait=False, cancel_futures=True)

    def add_to(self, app: FastAPI) -> None:
        app.post("/undo", tags=["changes"])(self.undo)

    def editor(self) -> LibraryEditor:
        """What changes the library. Raises Refusal if the door is shut."""
        if self._editor is None:
            raise Refusal(
                403,
                "read-only",
                "this service changes nothing, as one on a cluster never does: start one of your own with "
                "`lookalike serve --edit`",
            )
        return self._editor

    async def asked(self, request: Request) -> tuple[LibraryEditor, Mapping[str, Any]]:
        """The editor, and the object in the body of a request that may come in. Raises Refusal."""
        editor = self.editor()
        self._check_sender(request)
        given = parse_json(await request_body.read_small(request, _MOST_BYTES))
        if not isinstance(given, dict):
            raise bad_request("send an object in JSON")
        return editor, given

    async def answered(self, change: Callable[[], Mapping[str, Any]]) -> Response:
        """The response of what reads or changes the library, one at a time."""
        return AsciiJSONResponse(await asyncio.get_running_loop().run_in_executor(self._editing, change))

    async def undo(self, request: Request) -> Response:
        """Takes back a change that was made on the page, if nothing has changed since: {"commit": "…"}, the one that
        the change was answered with. A change of its own, which `lookalike undo` takes back in turn."""
        editor, given = await self.asked(request)
        commit = given.get("commit")
        if not isinstance(commit, str) or not commit:
            raise bad_request('send {"commit": the one to take back}')

        def undone() -> Mapping[str, Any]:
            made, words = editor.take_back(commit)
            return {"commit": made, "undone": commit, "description": words}

        return await self.answered(undone)

    def _check_sender(self, request: Request) -> None:
        """Lets in pages of this service alone, whatever cookie or token comes with the request. AccessControl has seen
        to it that each of these headers is there once at most."""
        scheme = "https" if self._configuration.certificate or self._configuration.proxy else "http"
        headers = request.headers
        if headers.get("origin", "").lower() != f"{scheme}://{headers['host']}".lower():
            raise Refusal(403, "wrong-origin", "only the page of this service may change the library: send its Origin")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refusal(415, "wrong-type", "send application/json")
