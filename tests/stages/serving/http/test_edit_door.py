"""The door through which the page changes the library: who is let in, for every change there is, and what is taken
back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from stages.datum.contract import StageError
from tests.servers import StartPachd
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
def world(start_shared_pachd: StartPachd, tmp_path_factory: pytest.TempPathFactory) -> CopyWorld:
    made = copies.make(start_shared_pachd(tmp_path_factory.mktemp("pachd")), tmp_path_factory.mktemp("pictures"))
    made.fill()
    return made


@pytest.fixture(scope="module")
def editing(world: CopyWorld, ready: Snapshot) -> Iterator[Service]:
    with copies.serving(world, ready) as service:
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
@pytest.mark.parametrize("path", CHANGES)
def test_only_the_page_of_the_service_with_the_token_may_ask(
    path: str,
    headers: Sequence[tuple[str, str]],
    origin: str,
    status: int,
    code: str,
    world: CopyWorld,
    editing: Service,
) -> None:
    before = world.state()
    refused = sent(editing, path, {"head": world.head, **CHANGES[path]}, headers, origin)
    assert (refused.status, refused.code) == (status, code)
    assert world.state() == before


@pytest.mark.parametrize("path", CHANGES)
def test_a_page_under_another_name_that_leads_here_is_not_let_in(path: str, world: CopyWorld, editing: Service) -> None:
    before = world.state()
    refused = sent(editing, path, CHANGES[path], host=f"evil.example:{editing.port}")
    assert (refused.status, refused.code) == (403, "wrong-host")
    assert world.state() == before


@pytest.mark.parametrize("path", CHANGES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
def test_only_post_changes_anything(path: str, method: str, world: CopyWorld, editing: Service) -> None:
    before = world.state()
    answer = sent(editing, path, CHANGES[path], method=method)
    assert answer.status == (200 if (path, method) == ("/labels", "GET") else 405)
    assert world.state() == before


@pytest.mark.parametrize("path", CHANGES)
def test_without_edit_the_door_is_shut_and_says_why(path: str, world: CopyWorld, ready: Snapshot) -> None:
    before = world.state()
    with services.running(world.served(ready)) as service:
        assert service.ask("/status").data["edit"] is False
        refused = sent(service, path, CHANGES[path])
        assert (refused.status, refused.code) == (403, "read-only")
        assert "lookalike serve --edit" in refused.data["error"]["message"]
    assert world.state() == before


def test_a_door_without_a_token_is_not_opened(world: CopyWorld, ready: Snapshot) -> None:
    with pytest.raises(StageError, match="needs a token"), copies.serving(world, ready, token=""):
        pass


@pytest.mark.parametrize("value", [[], "text", {}, {"commit": 7}, {"commit": ""}])
def test_what_is_no_request_to_take_back_is_refused(value: object, editing: Service) -> None:
    refused = sent(editing, "/undo", value)
    assert (refused.status, refused.code) == (400, "bad-request")


def test_too_much_is_refused(editing: Service) -> None:
    refused = sent(editing, "/labels/review", {"ids": ["0" * 64] * 70_000, "label": "cat"})
    assert (refused.status, refused.code) == (413, "too-large")


def test_a_removal_is_taken_back_and_only_once(world: CopyWorld, ready: Snapshot) -> None:
    before = world.names()
    with copies.serving(world, ready) as service:
        removed = sent(service, "/copies/remove", {"head": world.head, "remove": ["backup/two copy.png"]}).data
        assert "backup/two copy.png" not in world.names()
        undone = sent(service, "/undo", {"commit": removed["commit"]}).data
        assert undone["description"] == "Remove 1 copy ticked on the page"
        assert world.names() == before
        again = sent(service, "/undo", {"commit": removed["commit"]})
        assert (again.status, again.code) == (409, "moved")
        assert "Take back: Remove 1 copy" in again.data["error"]["message"]
        assert world.names() == before
