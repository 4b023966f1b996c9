"""Classification over HTTP: every way of asking, what an answer holds, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stages.classify.training.run_records import backbone_data
from stages.quality.entry_answers import shortest
from stages.record.framing import Framing
from stages.serving.answer import upload_decoder
from stages.serving.follow.promotion_source import PromotionSource
from stages.serving.follow.snapshots import SnapshotState
from tests.stages.serving import models, services
from tests.stages.serving.models import LABELS
from tests.stages.serving.services import Answer, Service

if TYPE_CHECKING:
    from stages.backbone.embedder import Embedder
    from stages.serving.follow.promoted_model import PromotedModel
    from stages.serving.follow.snapshots import Snapshot

NONE = SnapshotState["PromotedModel"]("empty", PromotionSource.empty)


@pytest.fixture(scope="module")
def model(embedder: Embedder, tmp_path_factory: pytest.TempPathFactory) -> PromotedModel:
    """A promoted model of the vectors of the library's backbone."""
    return models.promoted(tmp_path_factory.mktemp("vectors"), embedder)


@pytest.fixture(scope="module")
def tuned(embedder: Embedder, tmp_path_factory: pytest.TempPathFactory) -> PromotedModel:
    """A promoted model that takes pictures."""
    return models.promoted(tmp_path_factory.mktemp("pictures"), embedder, "9" * 32, 4, "pictures")


@pytest.fixture(scope="module")
def both(ready: Snapshot, model: PromotedModel) -> Iterator[Service]:
    """A service that searches and classifies."""
    with services.running(ready, promoted=model) as running:
        yield running


@pytest.fixture(scope="module")
def alone(model: PromotedModel) -> Iterator[Service]:
    """A service that classifies alone."""
    with services.running(None, promoted=model) as running:
        yield running


def asked(service: Service, question: Any = None, files: Sequence[bytes] = ()) -> Answer:
    """The answer to a question for labels."""
    if files:
        return service.ask("/classify", *services.form(question, files))
    return service.ask("/classify", json.dumps(question).encode(), {"Content-Type": "application/json"})


def expected(model: PromotedModel, content: bytes, top: int = 5, region: Any = None) -> list[dict[str, Any]]:
    """What the classifier itself says of a picture alone."""
    pixels = upload_decoder.decode_upload("", content, Framing(32, "pad"), region)[1][None]
    values = pixels if model.embedder is None else model.embedder(pixels)
    (row,) = model.classifier(values)
    order = sorted(range(len(LABELS)), key=lambda at: (-row[at], LABELS[at]))
    return [{"label": LABELS[at], "probability": shortest(float(row[at]))} for at in order[:top]]


def test_a_picture_alone_has_its_labels_and_their_origin(alone: Service, model: PromotedModel) -> None:
    answer = alone.ask("/classify?top=3", services.made(70), {"Content-Type": "image/png"}).data
    assert answer["pictures"] == [
        {
            "id": upload_decoder.decode_upload("", services.made(70), Framing(32, "pad"))[0].id,
            "name": "",
            "width": 160,
            "height": 120,
            "known": False,
            "labels": expected(model, services.made(70), 3),
        }
    ]
    assert answer["commits"] == model.commits.as_data()
    assert answer["commits"]["select"] == "5" * 32
    assert answer["model"] == {
        "run": "run-0",
        "sha256": "0" * 64,
        "takes": "vectors",
        "labels": 5,
        "backbone": backbone_data(models.backbone(model.embedder.spec)) if model.embedder else None,
    }
    assert answer["devices"] == {"service": "cpu"}
    assert answer["seconds"].keys() == {"decode", "features", "classify"}


def test_probabilities_are_those_of_the_classifier_whatever_is_asked_beside(
    alone: Service, model: PromotedModel
) -> None:
    contents = [services.made(seed) for seed in range(100, 116)]
    several = asked(alone, None, contents).data["pictures"]
    assert [each["labels"] for each in several] == [expected(model, each) for each in contents]
    assert [each["name"] for each in several] == [f"{at}.png" for at in range(16)]
    for each in several:
        assert sum(label["probability"] for label in each["labels"]) == pytest.approx(1, abs=1e-5)
    with ThreadPoolExecutor(8) as threads:
        one_by_one = list(threads.map(lambda content: asked(alone, None, [content]).data["pictures"][0], contents * 3))
    assert [each["labels"] for each in one_by_one] == [each["labels"] for each in several] * 3


def test_equal_probabilities_are_sorted_by_label(embedder: Embedder, tmp_path: Path) -> None:
    promoted = models.promoted(tmp_path, embedder)
    weights = promoted.classifier._model.get_layer("probabilities")
    weights.set_weights([np.zeros((16, 5)), np.zeros(5)])
    with services.running(None, promoted=promoted) as service:
        labels = asked(service, None, [services.made(1)]).data["pictures"][0]["labels"]
    assert labels == [{"label": label, "probability": shortest(0.2)} for label in LABELS]


def test_several_questions_and_regions(alone: Service, model: PromotedModel) -> None:
    contents = [services.made(1), services.made(2)]
    question = {
        "requests": [
            {"pictures": [{"upload": 1}, {"upload": 0}], "top": 1},
            {"pictures": [{"upload": 0, "box": [0.1, 0.1, 0.6, 0.7]}], "top": 2},
            {"url": "http://127.0.0.1/a.png"},
        ]
    }
    first, second, third = asked(alone, question, contents).data["answers"]
    assert [each["labels"] for each in first["pictures"]] == [expected(model, each, 1) for each in contents[::-1]]
    assert second["pictures"][0]["labels"] == expected(model, contents[0], 2, (0.1, 0.1, 0.6, 0.7))
    assert third["error"]["code"] == "private-address"


def test_pictures_of_the_library_are_asked_about_by_id(
    both: Service, model: PromotedModel, stock: dict[str, bytes]
) -> None:
    path = "trip/north/03.png"
    answer = asked(both, {"id": both.id_of(path)}).data
    assert answer["pictures"][0] | {"labels": None} == {
        "id": both.id_of(path), "name": path, "width": 160, "height": 120, "known": True, "labels": None
    }  # fmt: skip
    assert answer["pictures"][0]["labels"] == expected(model, stock[path])
    uploaded = asked(both, None, [stock[path]]).data["pictures"][0]
    assert (uploaded["known"], uploaded["labels"]) == (True, expected(model, stock[path]))


def test_a_service_without_a_library_says_so(alone: Service) -> None:
    answer = asked(alone, {"id": "0" * 64})
    assert (answer.status, answer.code) == (404, "not-in-library")
    assert "has no library" in answer.data["error"]["message"]
    assert alone.search({"id": "0" * 64}).status == 404
    assert alone.ask("/library").status == 404


def test_a_model_of_pictures_takes_their_pixels(ready: Snapshot, tuned: PromotedModel, stock: dict[str, bytes]) -> None:
    with services.running(ready, promoted=tuned) as service:
        answer = asked(service, None, [stock["trip/south/04.png"]]).data
        assert answer["pictures"][0]["labels"] == expected(tuned, stock["trip/south/04.png"])
        assert answer["model"]["takes"] == "pictures"
        # Its original cannot be had from a server that does not answer: nothing else is taken in its place.
        gone = asked(service, {"id": service.id_of("trip/south/04.png")})
        assert (gone.status, gone.code) == (503, "no-pachyderm")


def test_its_labels_are_listed(alone: Service, model: PromotedModel) -> None:
    card = alone.ask("/classes").data
    assert card["labels"] == list(LABELS)
    assert card["cross_validation"]["accuracy"] == 0.9
    assert card["held_out"]["of"] == 20
    assert card["model"]["run"] == "run-0"
    assert card["commits"] == model.commits.as_data()


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({}, "there is no picture to ask about"),
        ({"id": "0" * 64, "k": 3}, "k is not a field of a question"),
        ({"id": "0" * 64, "top": 0}, "top: input should be greater than or equal to 1"),
        ({"id": "0" * 64, "top": 1001}, "top: input should be less than or equal to 1000"),
        ({"requests": [{"id": "0" * 64, "top": 1000}] * 11}, "11,000 labels in all"),
    ],
)
def test_questions_that_are_not_valid_are_refused(alone: Service, question: Any, message: str) -> None:
    answer = asked(alone, question)
    assert (answer.status, answer.code) == (400, "bad-request")
    assert message in answer.data["error"]["message"]


def test_parameters_that_are_not_valid_are_refused(alone: Service) -> None:
    answer = alone.ask("/classify?k=3", services.made(1), {"Content-Type": "image/png"})
    assert answer.data["error"]["message"] == "k is not a parameter of a classification: they are box, top"
    assert alone.ask("/classify?top=x", services.made(1), {"Content-Type": "image/png"}).status == 400
    assert alone.ask("/classify", b"no picture", {"Content-Type": "image/png"}).code == "not-a-picture"


def test_without_a_promoted_model_it_says_what_to_do(ready: Snapshot, model: PromotedModel) -> None:
    with services.running(ready, promoted=NONE) as service:
        for answer in (asked(service, None, [services.made(1)]), service.ask("/classes")):
            assert (answer.status, answer.code) == (409, "no-model")
            assert "`lookalike classify promote`" in answer.data["error"]["message"]
        assert service.ask("/status").data["classify"] is None
        assert service.search(None, [services.made(1)]).status == 200
        service.promoted = SnapshotState("ready", snapshot=model)
        assert asked(service, None, [services.made(1)]).status == 200
        service.promoted = SnapshotState("loading", "loading the classifier")
        starting = asked(service, None, [services.made(1)])
        assert (starting.status, starting.headers["retry-after"]) == (503, "2")


def test_the_status_and_the_metrics_tell_the_model(alone: Service, both: Service, model: PromotedModel) -> None:
    status = alone.ask("/status").data
    assert (status["state"], status["search"], status["pictures"]) == ("ready", False, 0)
    assert status["commits"]["select"] == "5" * 32
    assert status["classify"]["model"]["run"] == "run-0"
    assert status["classify"]["top"] == {"default": 5, "most": 1000}
    assert both.ask("/status").data["search"] is True
    assert both.ask("/status").data["commits"].keys() == {"project", "index", "library", "model"}
    assert alone.ask("/ready").status == 200
    asked(alone, None, [services.made(1)])
    info = f'labelled="{"6" * 32}",model="{"3" * 32}",select="{"5" * 32}"'
    for name, least in (
        ("lookalike_serve_classifies", 1),
        ("lookalike_serve_labels", 5),
        ("lookalike_serve_promotions_total", 1),
        (f"lookalike_serve_promotion_info{{{info}}}", 1),
        ('lookalike_serve_requests_total{route="/classify",status="200"}', 1),
        ('lookalike_serve_step_seconds_count{step="classify"}', 1),
    ):
        assert alone.metric(name) >= least, name


def test_a_service_alone_documents_what_it_has(alone: Service, both: Service) -> None:
    document = alone.ask("/openapi.json").data
    assert "/classify" in document["paths"]
    assert "/search" not in document["paths"]
    asked = document["paths"]["/classify"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    one = {"$ref": "#/components/schemas/ClassifyRequest"}
    several = {"type": "array", "items": one, "minItems": 1, "maxItems": 64}
    assert asked["oneOf"][0] == one
    assert asked["oneOf"][1]["properties"] == {"requests": several}
    assert "ClassifyRequest" in document["components"]["schemas"]
    assert "SearchRequest" not in document["components"]["schemas"]
    assert {"SearchRequest", "ClassifyRequest"} <= both.ask("/openapi.json").data["components"]["schemas"].keys()
    assert "<code>top</code>" in alone.ask("/docs").body.decode()
    assert "<title>lookalike</title>" in alone.ask("/").body.decode()
