"""Groups of copies over HTTP, and the door that removes ticked ones: a real service on a real Pachyderm."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.client import commit_owner
from pipelines.client.repository import PutFile, Repository
from pipelines.library import ingest
from stages.files.blocks import RecordBlock
from tests.stages.serving import copies, services
from tests.stages.serving.copies import ALLOWED, GROUPS, MEMBER, PACKED, SINGLE, CopyWorld, sent
from tests.stages.serving.services import Service

if TYPE_CHECKING:
    from stages.serving.follow.snapshots import Snapshot


@pytest.fixture(scope="module")
def editing(filled: CopyWorld, ready: Snapshot) -> Iterator[Service]:
    """A service whose door is open."""
    with copies.serving(filled, ready) as service:
        yield service


def listed(service: Service, query: str = "") -> Any:
    """A page of groups."""
    answer = service.ask(f"/copies{query}", headers=dict(ALLOWED))
    assert answer.status == 200, answer.body
    return answer.data


def test_a_page_has_the_groups_with_what_makes_the_files_copies(full: CopyWorld, editing: Service) -> None:
    found = listed(editing)
    assert [[each["path"] for each in group["files"]] for group in found["groups"]] == [
        [GROUPS[0][0], *sorted(GROUPS[0][1:])],
        GROUPS[1],
    ]
    assert [each["copy"] for each in found["groups"][1]["files"]] == ["", "same pixels"]
    assert found["groups"][1]["why"] == "date of the camera"
    assert (found["totals"], found["copies"], found["frees"]) == ({"exact": 2, "near": 1}, 3, 3000)
    assert (found["after"], found["edit"], found["commits"]["images"]) == (None, True, full.head)
    one = listed(editing, "?limit=1")
    assert (one["after"], [each["number"] for each in one["groups"]]) == (1, [1])
    assert [each["number"] for each in listed(editing, "?limit=1&after=1")["groups"]] == [2]
    (near,) = listed(editing, "?kind=near")["groups"]
    assert [(each["path"], each["copy"]) for each in near["files"]] == [
        ("trip/two.png", ""),
        ("web/two small.jpg", "another size"),
    ]


@pytest.mark.parametrize("query", ["?kind=all", "?after=-1", "?limit=0", "?limit=101"])
def test_a_page_that_there_cannot_be_is_refused(query: str, full: CopyWorld, editing: Service) -> None:
    assert editing.ask(f"/copies{query}", headers=dict(ALLOWED)).code == "bad-request"


def test_a_service_without_edit_shows_the_groups_and_changes_nothing(full: CopyWorld, ready: Snapshot) -> None:
    before = full.head
    with copies.serving(full, ready, edit=False) as service:
        found = listed(service)
        assert (found["edit"], len(found["groups"])) == (False, 2)
        assert service.ask("/status").data["copies"] is True
        for path in ("/copies/review", "/copies/remove"):
            refused = sent(service, path, {"head": before, "remove": ["backup/two copy.png"]})
            assert (refused.status, refused.code) == (403, "read-only")
            assert "lookalike serve --edit" in refused.data["error"]["message"]
            assert service.ask(path).status == 405
    assert full.head == before


def test_a_library_that_nobody_looked_through_says_how(ready: Snapshot) -> None:
    with services.running(ready) as service:
        assert service.ask("/status").data["copies"] is False
        refused = service.ask("/copies")
        assert refused.code == "no-copies"
        assert "lookalike duplicates" in refused.data["error"]["message"]


GOOD = ["backup/two copy.png"]


@pytest.mark.parametrize(
    ("names", "status", "code", "said"),
    [
        ([], 400, "bad-request", "no file is ticked"),
        (["lone.png"], 400, "bad-request", "lone.png is in no group of copies"),
        ([*GOOD, "../two.png"], 400, "bad-request", "../two.png is in no group"),
        ([*GOOD, 7], 400, "bad-request", "a list of paths"),
        ("backup/two copy.png", 400, "bad-request", "a list of paths"),
        (GROUPS[1], 409, "nothing-left", "all files of the group of trip/two.png would go"),
        (GROUPS[0], 409, "nothing-left", "trip/one.png"),
        (["trip/two.png", "web/two small.jpg"], 409, "nothing-left", "trip/two.png"),  # of a near group
    ],
)
@pytest.mark.parametrize("path", ["/copies/review", "/copies/remove"])
def test_what_cannot_go_is_refused_in_words_and_nothing_goes(
    path: str, names: Any, status: int, code: str, said: str, full: CopyWorld, editing: Service
) -> None:
    before = full.head
    refused = sent(editing, path, {"head": before, "remove": names})
    assert (refused.status, refused.code) == (status, code)
    assert said in refused.data["error"]["message"]
    assert full.head == before


def test_a_picture_of_an_archive_keeps_all_others(full: CopyWorld, editing: Service) -> None:
    before = full.head
    refused = sent(editing, "/copies/remove", {"head": before, "remove": [*GOOD, MEMBER]})
    assert (refused.status, refused.code) == (409, "not-removable")
    assert "inside old.zip, which can only be removed as a whole" in refused.data["error"]["message"]
    assert full.head == before


@pytest.mark.parametrize("head", ["", "0" * 32, None, 7])
def test_a_head_that_is_not_that_of_the_groups_is_refused(head: object, full: CopyWorld, editing: Service) -> None:
    refused = sent(editing, "/copies/remove", {"head": head, "remove": GOOD})
    assert refused.code == ("moved" if isinstance(head, str) else "bad-request")


def test_ticked_copies_go_by_one_commit(full: CopyWorld, editing: Service) -> None:
    before, commits, gone = full.head, len(full.commits()), {"backup/two copy.png", "trip/one.png"}
    request = {"head": before, "remove": sorted(gone)}
    review = sent(editing, "/copies/review", request).data
    assert (review["count"], review["bytes"]) == (2, 2000)
    assert [[each["path"] for each in group["stay"]] for group in review["groups"]] == [
        sorted(GROUPS[0][1:]),
        ["trip/two.png"],
    ]
    assert full.head == before
    removed = sent(editing, "/copies/remove", request).data
    assert removed == {"commit": full.head, "removed": 2}
    newest = full.commits()[0]
    assert len(full.commits()) == commits + 1
    assert commit_owner.without_owner(newest.description) == "Remove 2 copies ticked on the page"
    assert commit_owner.read(newest.description) == commit_owner.current_process()
    assert newest.parent_commit.id == before and newest.HasField("finished")
    assert full.names() == {*SINGLE, *PACKED, copies.ARCHIVE} - gone  # of a block, and a file of its own

    again = sent(editing, "/copies/remove", {"head": before, "remove": ["web/two small.jpg"]})
    assert (again.status, again.code) == (409, "moved")
    full.settle()
    caught_up = listed(editing)["commits"]
    assert caught_up["images"] == caught_up["head"] == removed["commit"]
    absent = sent(editing, "/copies/remove", {"head": removed["commit"], "remove": ["backup/two copy.png"]})
    assert (absent.code, absent.status) == ("not-removable", 409)


def test_groups_of_an_older_library_are_told_and_cannot_be_ticked(full: CopyWorld, editing: Service) -> None:
    assert listed(editing)["index"] in ("same", "older")
    full.put(["new.png"])
    found = listed(editing)
    if found["commits"]["images"] != found["commits"]["head"]:  # the pipeline may be quick
        refused = sent(editing, "/copies/remove", {"head": found["commits"]["images"], "remove": GOOD})
        assert (refused.status, refused.code) == (409, "moved")
    full.settle()
    assert listed(editing)["index"] == "older"
    ingest.remove(full.connection, ["new.png"])


def test_the_last_stored_copy_is_not_offered_and_does_not_go(full: CopyWorld, editing: Service) -> None:
    """Of pixel-equal files, of byte-equal ones, of two stored ones, and of two at URLs."""
    block = RecordBlock(tuple(copies.record(each) for each in ("url/1.png", "url/2.png", "url/3.png", "url/gone.png")))
    repo = Repository(full.connection, "images")
    repo.write([PutFile(f"/{block.name}", block.pieces())])
    ingest.remove(full.connection, ["url/gone.png"])  # the mask hides it
    alone = PACKED[2]
    pixel_equal = ["url/1.png", "trip/one.png", "backup/one copy.png"]
    try:
        full.write_groups([pixel_equal, ["url/2.png", alone], GROUPS[1], ["url/2.png", "url/3.png"]])
        found = listed(editing)
        kept = [[each["path"] for each in group["files"] if each["keep"]] for group in found["groups"]]
        assert kept == [["url/1.png", "trip/one.png"], ["trip/two.png"], ["url/2.png"]]
        assert found["groups"][0]["files"][2]["copy"] == "same pixels, the last one stored"
        assert (found["copies"], found["frees"]) == (3, 3000)
        before = full.head
        refused = sent(editing, "/copies/remove", {"head": before, "remove": pixel_equal[1:]})
        assert (refused.status, refused.code) == (409, "nothing-stored")
        assert "backup/one copy.png cannot go" in refused.data["error"]["message"]
        assert sent(editing, "/copies/review", {"head": before, "remove": pixel_equal}).code == "nothing-left"
        for names in (["trip/one.png"], ["url/1.png"], ["backup/two copy.png"], ["url/3.png"]):
            assert sent(editing, "/copies/review", {"head": before, "remove": names}).status == 200
        full.write_groups([[alone, "url/gone.png"], [alone, "url/2.png"]])  # the name of one that is stored since then
        assert [group["files"][0]["path"] for group in listed(editing)["groups"]] == ["url/gone.png"]
    finally:
        ingest.remove(full.connection, ["url/1.png", "url/2.png", "url/3.png"])
        full.write_groups(GROUPS, copies.NEAR)


def test_of_two_removals_at_once_one_is_made(full: CopyWorld, editing: Service) -> None:
    head, commits = full.head, len(full.commits())
    with ThreadPoolExecutor(2) as threads:
        answers = list(
            threads.map(
                lambda name: sent(editing, "/copies/remove", {"head": head, "remove": [name]}),
                ("backup/one copy.png", "backup/two copy.png"),
            )
        )
    assert sorted(each.status for each in answers) == [200, 409]
    assert len(full.commits()) == commits + 1
    assert len({"backup/one copy.png", "backup/two copy.png"} & full.names()) == 1
