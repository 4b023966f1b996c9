"""The door through which the page changes the library: who is let in, for every change there is, and what is taken
back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from stages.datum.contract import StageError
from tests.stages.serving import copies, services
from tests.stages.serving.copies import ALLOWED, CopyWorld, sent
from tests.stages.serving.services import Service

if TYPE_CHECKING:
    from stages.serving.follow.snapshots import Snapshot

BEARER, TYPE = ALLOWED

CHANGES: Mapping[str, Any] = {
    "/copies/review": {"remove": ["backup/two copy.png"]},
    "/copies/remove": {"remove": ["backup/two copy.png"]},
    "/labels/review": {"ids": ["0" * 64], "label": "cat"},
    "/labels": {"ids": ["0" * 64], "label": "cat"},
    "/undo": {"commit": "0" * 32},
}


@pytest.fixture(scope="module")
def editing(filled: CopyWorld, ready: Snapshot) -> Iterator[Service]:
    with copies.serving(filled, ready) as service:
        yield service


@pytest.mark.parametrize(
    ("headers", "origin", "status", "code"),
    [
        ([TYPE], "own", 401, "token-needed"),
        ([("Authorization", "Bearer fedcba9876543210"), TYPE], "own", 401, "token-needed"),
        (ALLOWED, "", 403, "wrong-origin"),
        (ALLOWED, "http://127.0.0.1:1", 403, "wrong-origin"),
        (ALLOWED, "https://example.org", 403, "wrong-origin"),
        (ALLOWED, "null", 403, "wrong-origin"),
        ([*ALLOWED, ("Origin", "own")], "own", 400, "bad-request"),
        ([*ALLOWED, ("Origin", "own")], "https://example.org", 400, "bad-request"),
        ([*ALLOWED, ("Sec-Fetch-Site", "cross-site")], "own", 403, "wrong-origin"),
        ([BEARER], "own", 415, "wrong-type"),
        ([BEARER, ("Content-Type", "text/plain")], "own", 415, "wrong-type"),
        ([*ALLOWED, ("Content-Type", "text/plain")], "own", 400, "bad-request"),
    ],
)
def test_only_the_page_of_the_service_with_the_token_may_ask(
    headers: Sequence[tuple[str, str]],
    origin: str,
    status: int,
    code: str,
    full: CopyWorld,
    editing: Service,
) -> None:
    before, head = full.state(), full.head
    for path, change in CHANGES.items():
        refused = sent(editing, path, {"head": head, **change}, headers, origin)
        assert (refused.status, refused.code) == (status, code), path
    assert full.state() == before


def test_a_page_under_another_name_that_leads_here_is_not_let_in(full: CopyWorld, editing: Service) -> None:
    before = full.state()
    for path, change in CHANGES.items():
        refused = sent(editing, path, change, host=f"evil.example:{editing.port}")
        assert (refused.status, refused.code) == (403, "wrong-host"), path
    assert full.state() == before


def test_only_post_changes_anything(full: CopyWorld, editing: Service) -> None:
    before = full.state()
    for path, method in product(CHANGES, ("GET", "HEAD", "PUT", "DELETE")):
        answer = sent(editing, path, CHANGES[path], method=method)
        assert answer.status == (200 if (path, method) == ("/labels", "GET") else 405), (path, method)
    assert full.state() == before


def test_without_edit_the_door_is_shut_and_says_why(full: CopyWorld, ready: Snapshot) -> None:
    before = full.state()
    with services.running(full.served(ready)) as service:
        assert service.ask("/status").data["edit"] is False
        for path, change in CHANGES.items():
            refused = sent(service, path, change)
            assert (refused.status, refused.code) == (403, "read-only"), path
            assert "lookalike serve --edit" in refused.data["error"]["message"]
    assert full.state() == before


def test_a_door_without_a_token_is_not_opened(full: CopyWorld, ready: Snapshot) -> None:
    with pytest.raises(StageError, match="needs a token"), copies.serving(full, ready, token=""):
        pass


@pytest.mark.parametrize("value", [[], "text", {}, {"commit": 7}, {"commit": ""}])
def test_what_is_no_request_to_take_back_is_refused(value: object, editing: Service) -> None:
    refused = sent(editing, "/undo", value)
    assert (refused.status, refused.code) == (400, "bad-request")


def test_too_much_is_refused(editing: Service) -> None:
    refused = sent(editing, "/labels/review", {"ids": ["0" * 64] * 70_000, "label": "cat"})
    assert (refused.status, refused.code) == (413, "too-large")


def test_a_removal_is_taken_back_and_only_once(full: CopyWorld, editing: Service) -> None:
    before = full.names()
    removed = sent(editing, "/copies/remove", {"head": full.head, "remove": ["backup/two copy.png"]}).data
    assert "backup/two copy.png" not in full.names()
    undone = sent(editing, "/undo", {"commit": removed["commit"]}).data
    assert undone["description"] == "Remove 1 copy ticked on the page"
    assert full.names() == before
    again = sent(editing, "/undo", {"commit": removed["commit"]})
    assert (again.status, again.code) == (409, "moved")
    assert "Take back: Remove 1 copy" in again.data["error"]["message"]
    assert full.names() == before
