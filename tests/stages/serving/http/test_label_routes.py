"""Labels for selected pictures over HTTP: what is shown first, one commit with its author, and races with others."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pipelines.client import commit_owner
from pipelines.client.repository import PutFile, Repository
from stages.record import label_changes
from stages.record.label_changes import OWN_FILE
from stages.record.label_files import unite
from stages.record.sources import Source
from tests.servers import StartPachd
from tests.stages.serving import copies, services
from tests.stages.serving.copies import ALLOWED, CopyWorld, sent
from tests.stages.serving.segments import ids, open_library, write_segment
from tests.stages.serving.services import Answer, Service

if TYPE_CHECKING:
    from pathlib import Path

    from stages.backbone.embedder import Embedder
    from stages.serving.follow.snapshots import Snapshot

MANY = 10_000


@pytest.fixture(scope="module")
def world(start_shared_pachd: StartPachd, tmp_path_factory: pytest.TempPathFactory) -> CopyWorld:
    """A library whose pictures are those of `ready` by name."""
    made = copies.make(start_shared_pachd(tmp_path_factory.mktemp("pachd")), tmp_path_factory.mktemp("pictures"))
    made.put(["trip/south/00.png"])
    return made


@pytest.fixture(scope="module")
def editing(world: CopyWorld, ready: Snapshot) -> Iterator[Service]:
    with copies.serving(world, ready) as service:
        yield service


@pytest.fixture(autouse=True)
def _unlabelled(world: CopyWorld) -> None:
    """No labels, but the repo: from the second test on."""
    if "labels" in world.state():
        repo = Repository(world.connection, "labels")
        repo.write([PutFile("/labels.csv", b"source,label,name\n"), *map(_deleted, repo.contents())])


def _deleted(name: str) -> PutFile:
    return PutFile(f"/{name}", b"source,label\n")


def picture(service: Service, path: str) -> str:
    """The id of a picture."""
    listed = service.ask(f"/library?limit=500&folder={path.rpartition('/')[0]}", headers=dict(ALLOWED)).data["pictures"]
    return str(next(each["id"] for each in listed if each["path"] == path))


def labels(world: CopyWorld) -> dict[str, str]:
    """The labels to train on."""
    return unite(Repository(world.connection, "labels").contents().items()).of


def reviewed(service: Service, request: dict[str, Any]) -> Any:
    answer = sent(service, "/labels/review", request)
    assert answer.status == 200, answer.body
    return answer.data


def put(service: Service, request: dict[str, Any], **more: Any) -> Answer:
    """The answer to a request with the head that a review of it has shown."""
    head = reviewed(service, request)["head"]
    return sent(service, "/labels", {"head": head, "new": True, **request, **more})


def test_a_review_changes_nothing_and_the_first_label_makes_the_repo(world: CopyWorld, editing: Service) -> None:
    before = world.state()
    chosen = {"ids": [picture(editing, "trip/south/00.png"), picture(editing, "trip/north/01.png")], "label": " cat "}
    review = reviewed(editing, chosen)
    assert (review["label"], review["pictures"], review["files"], review["new"]) == ("cat", 2, 3, True)
    assert [(each["labels"], each["pictures"]) for each in review["before"]] == [([], 2)]
    assert world.state() == before and "labels" not in before
    unsure = sent(editing, "/labels", {"head": review["head"], **chosen})
    assert (unsure.status, unsure.code) == (409, "new-label")
    assert world.state() == before
    done = sent(editing, "/labels", {"head": review["head"], "new": True, **chosen}).data
    (made, *_) = world.connection.client.list_commit("labels")
    assert (done["commit"], done["pictures"], done["files"]) == (made.commit.id, 2, 3)
    assert commit_owner.read(made.description) == commit_owner.current_process()
    assert commit_owner.without_owner(made.description) == 'Label 2 pictures "cat" on the page'
    # Equal files are one picture, and all of them get its label.
    assert labels(world) == {"trip/south/00.png": "cat", "copies/00 again.png": "cat", "trip/north/01.png": "cat"}
    assert editing.ask("/labels", headers=dict(ALLOWED)).data == {"labels": ["cat"]}
    undone = sent(editing, "/undo", {"commit": done["commit"]})
    assert undone.data["description"] == 'Label 2 pictures "cat" on the page'
    assert labels(world) == {}


def test_other_labels_are_shown_and_replaced_wherever_they_stand(world: CopyWorld, editing: Service) -> None:
    table = b"source,label,by\ntrip/south/00.png,dog,me\ntrip/south/02.png,Cat,me\nelsewhere.png,cow,me\n"
    shown = b"source,label\ntrip/south/04.png,dog\n"
    edits = [PutFile("/mine.csv", table), PutFile("/evaluate/x.csv", shown)]
    Repository(world.connection, "labels").write(edits)
    names = [f"trip/south/{number:02}.png" for number in (0, 2, 4, 6)]
    chosen = {"ids": [picture(editing, each) for each in names], "label": "cat"}
    review = reviewed(editing, chosen)
    assert [(each["labels"], each["pictures"]) for each in review["before"]] == [([], 1), (["Cat"], 1), (["dog"], 2)]
    assert (review["new"], review["similar"], review["pictures"]) == (True, ["Cat"], 4)
    assert put(editing, chosen).status == 200
    expected = {**dict.fromkeys([*names, "copies/00 again.png"], "cat"), "elsewhere.png": "cow"}
    assert labels(world) == expected
    kept = dict(Repository(world.connection, "labels").read_all("/**"))
    assert kept["/mine.csv"] == b"source,label,by\nelsewhere.png,cow,me\n"
    assert kept["/evaluate/x.csv"] == b"source,label\n"
    same = sent(editing, "/labels/review", chosen)
    assert (same.status, same.code) == (409, "unchanged")
    assert put(editing, {**chosen, "label": None}).data["description"] == "Remove the labels of 4 pictures"
    assert labels(world) == {"elsewhere.png": "cow"}


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"ids": [], "label": "cat"}, "at least one"),
        ({"ids": "all", "label": "cat"}, "a list of pictures"),
        ({"ids": [7], "label": "cat"}, "a list of pictures"),
        ({"label": "cat"}, "a list of pictures"),
        ({"ids": ["0" * 64], "label": "  "}, "the label is empty"),
        ({"ids": ["0" * 64], "label": 7}, "the label is empty"),
        ({"ids": ["0" * 64], "label": "a\nb"}, "no line breaks"),
        ({"ids": ["0" * 64], "label": "\ud800"}, "control characters"),
        ({"ids": ["0" * 64], "label": "x" * 201}, "at most 200 characters"),
    ],
)
def test_what_is_no_request_is_refused_in_words(request_: Any, said: str, world: CopyWorld, editing: Service) -> None:
    before = world.state()
    refused = sent(editing, "/labels/review", request_)
    assert (refused.status, refused.code) == (400, "bad-request")
    assert said in refused.data["error"]["message"]
    assert world.state() == before


def test_pictures_that_are_gone_are_counted_and_alone_refused(world: CopyWorld, editing: Service) -> None:
    there = picture(editing, "trip/south/02.png")
    assert reviewed(editing, {"ids": [there, "0" * 64, "no id", there], "label": "cat"})["absent"] == 2
    refused = sent(editing, "/labels/review", {"ids": ["0" * 64], "label": "cat"})
    assert (refused.status, refused.code) == (409, "not-in-library")


@pytest.mark.parametrize("head", [None, {}, "x", {"images": "0" * 32, "labels": "0" * 32}])
def test_another_head_than_the_one_shown_is_refused(head: object, world: CopyWorld, editing: Service) -> None:
    chosen = {"ids": [picture(editing, "trip/south/02.png")], "label": "cat", "new": True}
    before = world.state()
    refused = sent(editing, "/labels", {**chosen, "head": head})
    assert (refused.status, refused.code) == (409, "moved")
    assert world.state() == before


def test_labels_that_others_put_between_review_and_change_are_not_lost(world: CopyWorld, editing: Service) -> None:
    chosen = {"ids": [picture(editing, "trip/south/02.png")], "label": "cat", "new": True}
    head = reviewed(editing, chosen)["head"]
    Repository(world.connection, "labels").write([PutFile("/mine.csv", b"source,label\ntrip/south/02.png,dog\n")])
    refused = sent(editing, "/labels", {**chosen, "head": head})
    assert (refused.status, refused.code) == (409, "moved")
    assert "nothing was changed: look at it again" in refused.data["error"]["message"]
    assert labels(world) == {"trip/south/02.png": "dog"}
    assert put(editing, chosen).status == 200
    assert labels(world) == {"trip/south/02.png": "cat"}


def test_pictures_that_others_changed_are_not_labelled_until_the_index_has_caught_up(
    world: CopyWorld, ready: Snapshot, editing: Service
) -> None:
    chosen = {"ids": [picture(editing, "trip/south/02.png")], "label": "cat", "new": True}
    head = reviewed(editing, chosen)["head"]
    world.put(["new.png"])
    before = world.state()
    for answer in (sent(editing, "/labels/review", chosen), sent(editing, "/labels", {**chosen, "head": head})):
        assert (answer.status, answer.code) == (409, "moved")
    assert world.state() == before
    editing.state = world.served(ready)
    assert put(editing, chosen).status == 200


def test_of_two_browsers_at_once_one_labels(world: CopyWorld, ready: Snapshot) -> None:
    """Two services, as two people have on their machines: one thread of one service would make them take turns."""
    with copies.serving(world, ready) as one, copies.serving(world, ready) as other:
        same = picture(one, "trip/south/02.png")
        head = reviewed(one, {"ids": [same], "label": "cat"})["head"]
        count = len(world.state()["labels"])
        request = {"ids": [same], "head": head, "new": True}
        asked = [(one, {**request, "label": "cat"}), (other, {**request, "label": "dog"})] * 3
        with ThreadPoolExecutor(len(asked)) as threads:
            answers = list(threads.map(lambda each: sent(each[0], "/labels", each[1]), asked))
        assert sorted(each.status for each in answers) == [200, *[409] * 5]
        assert {each.code for each in answers} == {"", "moved"}
        (done,) = (each.data for each in answers if each.status == 200)
        assert len(world.state()["labels"]) == count + 1
        assert labels(world)["trip/south/02.png"] == done["description"].split('"')[1]


def test_a_service_that_was_started_again_makes_the_change_that_was_reviewed(world: CopyWorld, ready: Snapshot) -> None:
    with copies.serving(world, ready) as service:
        chosen = {"ids": [picture(service, "trip/south/02.png")], "label": "cat", "new": True}
        head = reviewed(service, chosen)["head"]
    with copies.serving(world, ready) as service:
        assert sent(service, "/labels", {**chosen, "head": head}).status == 200
    assert labels(world) == {"trip/south/02.png": "cat"}


def test_a_later_change_is_not_taken_back_instead(world: CopyWorld, editing: Service) -> None:
    chosen = {"ids": [picture(editing, "trip/south/02.png")], "label": "cat", "new": True}
    first = put(editing, chosen).data
    second = put(editing, {**chosen, "label": "dog"}).data
    refused = sent(editing, "/undo", {"commit": first["commit"]})
    assert (refused.status, refused.code) == (409, "moved")
    assert 'Label 1 picture "dog" on the page' in refused.data["error"]["message"]
    assert sent(editing, "/undo", {"commit": second["commit"]}).status == 200
    assert labels(world) == {"trip/south/02.png": "cat"}


def test_ten_thousand_pictures_are_labelled_at_once(
    world: CopyWorld, ready: Snapshot, editing: Service, embedder: Embedder, tmp_path: Path
) -> None:
    names = ids("a", MANY)
    sources = {id: [Source(f"many/{row:05}.jpg", id, 64, 48, 900, "")] for row, id in enumerate(names)}
    facts = {"model": embedder.spec.sha256, "image_size": embedder.spec.image_size, "dimension": 16}
    vectors = np.zeros((MANY, 16), np.float32)
    held = open_library([write_segment(tmp_path / "a", names, vectors, sources, facts)])
    snapshot = replace(services.snapshot(held, embedder, tmp_path / "cache"), commits=ready.commits)
    editing.state = world.served(snapshot)
    try:
        chosen = {"ids": names, "label": "cat"}
        review = reviewed(editing, chosen)
        assert review["pictures"] == MANY
        assert len(review["before"][0]["examples"]) < 10  # the page shows some
        done = put(editing, chosen).data
        assert len(labels(world)) == MANY == done["files"]
        assert Repository(world.connection, "labels").read(f"/{OWN_FILE}").count(b"\n") == MANY + 1
        assert label_changes.labels_by_source(Repository(world.connection, "labels").contents())["many/09999.jpg"] == {
            "cat"
        }
        assert sent(editing, "/undo", {"commit": done["commit"]}).status == 200
        assert labels(world) == {}
    finally:
        editing.state = world.served(ready)
