"""Words as a question over HTTP and from Python: by a real text tower of random weights."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookalike import Library, LookalikeError
from pipelines.client.services import service_discovery
from pipelines.client.services.service_discovery import ServiceEndpoint
from pipelines.commands.ask import service_query
from pipelines.library import queries, result_sheets
from stages.backbone.text_tower import TextTower
from stages.files import query_texts
from stages.files.question import Question
from stages.knn.vector_set import VectorSet
from stages.record.sources import Source
from stages.serving.follow.snapshots import Snapshot
from tests.stages.serving import services
from tests.stages.serving.services import Service


def _nearest(snapshot: Snapshot, point: Any, metric: str = "euclidean") -> list[tuple[str, float]]:
    """All pictures by their distances from a point, computed for every pair."""
    library, rows = snapshot.library, np.arange(len(snapshot.library))
    asked = VectorSet(np.asarray(point, np.float32)[None], metric)
    distances = asked.distances(np.zeros_like(rows), VectorSet(library.vectors(rows), metric), rows)
    found = sorted((float(distance), library.id(row)) for row, distance in enumerate(distances))
    return [(id, distance) for distance, id in found]


def _found(answer: dict[str, Any]) -> list[tuple[str, float]]:
    return [(each["id"], float(np.float32(each["distance"]))) for each in answer["neighbors"]]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_words_find_the_nearest_of_all_pictures(
    metric: str, worded: Snapshot, tower: TextTower, texts: Service
) -> None:
    answer = texts.search({"text": "red bicycle in snow", "metric": metric, "k": 41}).data
    assert _found(answer) == _nearest(worded, tower.embed(["red bicycle in snow"])[0], metric)
    assert (answer["text"], answer["without"], answer["unread"], answer["pictures"]) == (
        "red bicycle in snow",
        [],
        "",
        [],
    )
    assert answer["exact"] and answer["scale"] is None
    for each in answer["neighbors"]:
        assert (each["likeness"], each["similarity"], each["same"], each["near"]) == (None, None, False, False)


def test_what_pictures_are_to_be_without_is_taken_away(worded: Snapshot, tower: TextTower, texts: Service) -> None:
    answer = texts.search({"text": "a cat", "without": ["a dog", "snow"], "k": 41}).data
    cat, *others = tower.embed(["a cat", "a dog", "snow"]).astype(np.float64)
    point = cat - np.mean(others, axis=0) / 2
    point /= np.linalg.norm(point)
    assert [id for id, _ in _found(answer)] == [id for id, _ in _nearest(worded, point)]
    assert answer["without"] == ["a dog", "snow"]
    mine = texts.id_of("trip/south/06.png")
    picture = texts.search({"id": mine, "without": "snow", "k": 41}).data
    row = worded.library.row(mine)
    own = worded.library.vectors(np.array([row]))[0].astype(np.float64)
    point = own / np.linalg.norm(own) - others[1] / 2
    assert [id for id, _ in _found(picture)] == [id for id, _ in _nearest(worded, point / np.linalg.norm(point))]
    assert {each["likeness"] for each in picture["neighbors"]} == {None}


@pytest.mark.parametrize("options", [{"filter": "trip/north/"}, {"where": "anywhere ILIKE '%NORTH%'"}])
def test_every_filter_holds_for_words(
    options: dict[str, Any], worded: Snapshot, tower: TextTower, texts: Service
) -> None:
    answer = texts.search({"text": "a cat", "k": 41, **options}).data
    whole = _nearest(worded, tower.embed(["a cat"])[0])
    north = {each["id"] for each in texts.ask("/library?limit=500&folder=trip/north").data["pictures"]}
    assert _found(answer) == [each for each in whole if each[0] in north] != []


def test_the_largest_distance_holds_for_words(worded: Snapshot, tower: TextTower, texts: Service) -> None:
    whole = _nearest(worded, tower.embed(["a cat"])[0])
    limit = (whole[19][1] + whole[20][1]) / 2
    answer = texts.search({"text": "a cat", "k": 41, "max_distance": limit}).data
    assert _found(answer) == [each for each in whole if each[1] <= limit] != []


@pytest.mark.parametrize("combine", ["any", "all"])
def test_words_and_pictures_count_together(combine: str, worded: Snapshot, tower: TextTower, texts: Service) -> None:
    mine = texts.id_of("trip/south/06.png")
    vector = tower.embed(["a cat"])[0].tolist()
    ours = texts.search({"id": mine, "text": "a cat", "combine": combine}).data
    same = texts.search({"id": mine, "vector": vector, "combine": combine}).data
    assert _found(ours) == _found(same)
    assert {each["likeness"] for each in ours["neighbors"]} == {None}  # also of the picture itself
    upload = texts.search({"text": "a cat", "combine": combine}, [services.made(6)]).data
    assert _found(upload) == _found(ours)


def test_words_come_in_parameters_beside_a_picture_and_several_in_one_call(texts: Service) -> None:
    answer = texts.ask(
        "/search?text=a%20cat&without=snow,ice&k=3", services.made(6), {"Content-Type": "image/png"}
    ).data
    assert (answer["text"], answer["without"], len(answer["pictures"])) == ("a cat", ["snow", "ice"], 1)
    answers = texts.search({"requests": [{"text": each} for each in ("a cat", "a dog", "a cat")]}).data["answers"]
    assert _found(answers[0]) == _found(answers[2]) != _found(answers[1])


@pytest.mark.parametrize("text", ["雪の中の自転車", "دراجة حمراء", "🚲❄️", "red\nbicycle", "word " * 1000])
def test_any_text_is_answered_and_what_the_model_does_not_read_is_said(text: str, texts: Service) -> None:
    answer = texts.search({"text": text}).data
    assert len(answer["neighbors"]) >= 12
    assert answer["text"] == " ".join(text.split())
    assert answer["text"].endswith(answer["unread"]) and bool(answer["unread"]) == (len(text) > 100)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ({"text": ""}, "there is nothing to ask about: upload a picture, name its url or id, or give words as text"),
        ({"text": " \n"}, "there is nothing to ask about"),
        ({"without": ["snow"]}, "without takes something away from words or pictures: add text or a picture"),
        ({"text": "word " * 10_000}, "text: string should have at most 8000 characters"),
        ({"text": "red\0"}, "text: it holds a character that is no text (U+0000): leave it out"),
        ({"text": "\x1b[2J"}, "text: it holds a character that is no text (U+001B)"),
        ({"text": ["red"]}, "text: input should be a valid string"),
        ({"text": "red", "without": ["a"] * 17}, "without: tuple should have at most 16 items"),
    ],
)
def test_bad_words_are_refused_with_the_reason(question: dict[str, Any], says: str, texts: Service) -> None:
    refused = texts.search(question)
    assert (refused.status, refused.code) == (400, "bad-request")
    assert says in refused.data["error"]["message"]


def test_a_model_without_words_says_how_to_get_one(service: Service, texts: Service) -> None:
    for question in ({"text": "snow"}, {"id": service.id_of("trip/south/06.png"), "without": ["snow"]}):
        refused = service.search(question)
        assert (refused.status, refused.code) == (422, "no-text-tower")
        assert "lookalike model push" in refused.data["error"]["message"]
        assert "anywhere ILIKE" in refused.data["error"]["message"]
    assert [each.ask("/status").data["text"] for each in (service, texts)] == [False, True]
    assert len(service.ask("/pictures?where=anywhere%20ILIKE%20%27%25SOUTH%25%27").data["pictures"]) == 20


def test_from_python(texts: Service) -> None:
    with Library.open(f"http://127.0.0.1:{texts.port}") as library:
        found = library.search(text="a cat", without=["snow"], k=3)
        assert [each.id for each in found] == [
            id for id, _ in _found(texts.search({"text": "a cat", "without": ["snow"], "k": 3}).data)
        ]
        assert found[0].likeness is None
        assert library.search(services.made(6), text="a cat", combine="all")
        with pytest.raises(LookalikeError, match="there is nothing to ask about"):
            library.search(text=" ")
        with pytest.raises(LookalikeError, match="without takes something away"):
            library.search(without="snow")


def test_the_command_asks_a_service_with_words(
    texts: Service, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a cat.txt").write_text("a cat")
    (tmp_path / "mine.png").write_bytes(services.made(6))
    found = queries.find([tmp_path / "a cat.txt", tmp_path / "mine.png"])
    connection: Any = None  # a service that is known needs none

    def asks(running: Service) -> None:
        endpoint = ServiceEndpoint(f"http://127.0.0.1:{running.port}", "the service", status={"state": "ready"})
        monkeypatch.setattr(service_discovery, "running", lambda _: endpoint)

    asks(texts)
    monkeypatch.setattr(result_sheets, "neighbours_kept", lambda _: None)
    served = service_query.ask(connection, found, 3, Question(without=("snow",)))
    assert served is not None
    lines = dict(served.answers)
    assert [each["path"] for each in served.rows if each["query"] == "a cat.txt"]
    answer = texts.search({"text": "a cat", "without": "snow", "k": 3}).data
    told = lines["a cat.txt"]
    assert [each["id"] for each in told["neighbors"]] == [id for id, _ in _found(answer)][:3]
    assert (told["text"], told["without"], {each["likeness"] for each in told["neighbors"]}) == (
        "a cat",
        ["snow"],
        {None},
    )
    assert told["query"] == query_texts.make("a cat", ["snow"], Source("", "")).id
    assert {each["likeness"] for each in lines["mine.png"]["neighbors"]} == {None}  # less words, it is no picture's
    together = service_query.ask(connection, found, 3, Question(combine="all"))
    assert together is not None and [name for name, _ in together.answers] == ["a cat.txt, mine.png"]
    with pytest.raises(LookalikeError, match="combines pictures with one text"):
        service_query.ask(connection, found, 3, Question(combine="all", text="a dog"))
    asks(service)
    with pytest.raises(LookalikeError, match="the model has no text tower"):
        service_query.ask(connection, found, 3, Question())
