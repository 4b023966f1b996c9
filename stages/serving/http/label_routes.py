"""The routes by which people label pictures on the page: the labels there are, what a change would do, the change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request, Response

from stages.record import label_changes
from stages.serving.answer import label_answer
from stages.serving.follow.refusals import Refusal, bad_request, library_moved
from stages.serving.follow.snapshots import Snapshot
from stages.serving.http.edit_door import EditDoor, LabelState


class LabelRoutes:
    """Labels the pictures of the snapshot of the moment. snapshot: gives it, or raises Refusal."""

    def __init__(self, snapshot: Callable[[], Snapshot], door: EditDoor) -> None:
        self._snapshot = snapshot
        self._door = door

    def add_to(self, app: FastAPI) -> None:
        app.get("/labels", tags=["changes"])(self.labels)
        app.post("/labels/review", tags=["changes"])(self.review)
        app.post("/labels", tags=["changes"])(self.put)

    async def labels(self) -> Response:
        """The labels that pictures have, sorted, of a service that can give some."""
        editor = self._door.editor()

        def known() -> Mapping[str, Any]:
            found = label_changes.labels_by_source(editor.labels().files).values()
            return {"labels": sorted({each for some in found for each in some})}

        return await self._door.answered(known)

    async def review(self, request: Request) -> Response:
        """What `/labels` would change, for the same request, and the `head` to send with it; changes nothing."""
        editor, given = await self._door.asked(request)

        def reviewed() -> Mapping[str, Any]:
            now = editor.labels()
            return {**self._reviewed(now, given)[0], "head": _head(now)}

        return await self._door.answered(reviewed)

    async def put(self, request: Request) -> Response:
        """Gives pictures a label by one commit, all of them or none: {"ids": ["9f3c…", …], "label": "cat", "head": …}.
        label: null takes theirs away. head: as the review has it; refused once another commit is the newest. new: true
        for a label that no picture has yet."""
        editor, given = await self._door.asked(request)

        def labelled() -> Mapping[str, Any]:
            now = editor.labels()
            if given.get("head") != _head(now):
                raise library_moved()
            found, files = self._reviewed(now, given)
            if found["new"] and given.get("new") is not True:
                raise Refusal(409, "new-label", "no picture has this label yet: confirm that it is new")
            commit = editor.put_labels(files, now, f"{found['description']} on the page")
            return {"commit": commit, **{name: found[name] for name in ("pictures", "files", "description")}}

        return await self._door.answered(labelled)

    def _reviewed(self, now: LabelState, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], label_changes.Files]:
        """What a request means, on top of the labels as they are now. Raises Refusal."""
        ids, label = given.get("ids"), label_answer.label_text(given.get("label"))
        if not isinstance(ids, list) or not ids or not all(isinstance(each, str) for each in ids):
            raise bad_request('send {"ids": a list of pictures, at least one, "label": a text, or null for none}')
        snapshot = self._snapshot()
        if snapshot.commits.library != now.images:
            raise library_moved()
        return label_answer.review(snapshot, now.files, ids, label)


def _head(now: LabelState) -> dict[str, str]:
    return {"images": now.images, "labels": now.labels}
