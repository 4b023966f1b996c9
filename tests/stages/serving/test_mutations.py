"""Thousands of mutated requests: each is answered, or refused with a reason; none is a fault, and memory stays
bounded."""

from __future__ import annotations

import json
import random
import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.example_counts import examples
from tests.stages.serving import models, services
from tests.stages.serving.memory import MemoryPeak
from tests.stages.serving.mutations import Request, mutated
from tests.stages.serving.services import Answer, Client, Service, made

if TYPE_CHECKING:
    from stages.backbone.embedder import Embedder
    from stages.serving.follow.snapshots import Snapshot

REQUESTS = examples(2_000)
CLIENTS = 4

GROWTH = 100 << 20
"""Bytes that the service and its clients may take more than before, at any moment."""


@pytest.fixture(scope="module")
def service(ready: Snapshot, embedder: Embedder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that searches and classifies."""
    promoted = models.promoted(tmp_path_factory.mktemp("model"), embedder)
    with services.running(ready, promoted=promoted) as running:
        yield running


def written(request: Request) -> Request:
    """The request with the body of its fields and files."""
    if not request.files:
        return replace(request, body=json.dumps(request.fields).encode())
    body, headers = services.form(request.fields, request.files)
    return replace(request, body=body, headers=headers)


def valid(service: Service) -> list[Request]:
    """Requests of every route, most of them questions."""
    json_type, png = {"Content-Type": "application/json"}, {"Content-Type": "image/png"}
    ids = [service.id_of(f"trip/south/{seed:02}.png") for seed in (0, 2)]
    small = services.file(services.drawn(1, (40, 30)), "JPEG")
    questions = [
        {"id": ids[0], "k": 5, "metric": "cosine", "filter": "trip/*.png", "max_distance": 0.5, "exact": True},
        {"pictures": [{"id": ids[0]}, {"id": ids[1]}], "combine": "all", "k": 20},
        {"requests": [{"id": ids[0]}, {"id": ids[1], "k": 2}, {"pictures": [{"id": ids[0]}], "filter": "{a,b}/**"}]},
        {"url": "http://127.0.0.1:1/a.png", "box": [0.1, 0.2, 0.5, 0.6]},
    ]
    asked = [written(Request("POST", "/search", json_type, fields=each)) for each in questions]
    forms = [
        ({"k": 3, "box": [0, 0, 0.5, 0.5]}, [small]),
        ({"pictures": [{"upload": 0}, {"upload": 1, "box": [0, 0, 1, 0.5]}], "combine": "any"}, [small, made(2)]),
        ({"requests": [{"pictures": [{"upload": 0}]}, {"id": ids[0]}]}, [small]),
    ]
    asked += [written(Request("POST", "/search", {}, fields=fields, files=files)) for fields, files in forms]
    asked += [
        Request("POST", "/search?k=3&filter=trip/&metric=cosine&box=0,0,0.5,0.5", png, content)
        for content in (small, made(3), services.file(services.drawn(4, (50, 50)), "GIF"))
    ]
    labels = [{"id": ids[0], "top": 2}, {"requests": [{"id": ids[1]}, {"pictures": [{"id": ids[0]}], "top": 3}]}]
    asked += [written(Request("POST", "/classify", json_type, fields=each)) for each in labels]
    box = {"pictures": [{"upload": 0, "box": [0, 0, 1, 0.5]}, {"upload": 1}], "top": 4}
    asked += [
        written(Request("POST", "/classify", {}, fields=box, files=[small, made(2)])),
        Request("POST", "/classify?top=3&box=0,0,0.5,0.5", png, small),
        Request("POST", "/previews", png, small),
    ]
    others = ["classes", "library?folder=trip&limit=3&after=d:north", "library", "status", "ready", "metrics", "docs"]
    others += ["", "health", "assets/main.js", "openapi.json", f"trace/{ids[0]}?path=a", f"images/{ids[0]}"]
    others += [f"originals/{ids[0]}?source=0&download=true", f"previews/{ids[0]}?source=0"]
    return [*asked * 3, *(Request("GET", f"/{path}", {}) for path in others), Request("DELETE", "/session", {})]


def good(request: Request, answer: Answer) -> bool:
    """Whether a request was answered, or refused with a reason."""
    if request.method == "HEAD":
        return answer.status < 500
    if 200 <= answer.status < 300 or answer.status == 304:
        return True
    return (
        (400 <= answer.status < 500 or answer.status == 503)
        and answer.code not in ("", "fault")
        and len(answer.data["error"]["message"]) > 10
    )


@pytest.mark.timeout(600)
def test_mutated_requests_are_answered_or_refused_with_a_reason(service: Service) -> None:
    assert settings.default is not None
    seed = 0 if settings.default.derandomize else secrets.randbelow(1 << 30)
    started = valid(service)
    assert all(good(each, send(service.client(), each)) for each in started)
    usual = service.search({"k": 12}, [made(5)]).data["neighbors"]
    found: Counter[int] = Counter()
    counting = threading.Lock()

    def ask(number: int) -> None:
        chance, client = random.Random(seed + number), service.client()
        for _ in range(REQUESTS // CLIENTS):
            request = mutated(chance.choice(started), chance, written)
            answer = send(client, request)
            assert good(request, answer), (seed, request, answer)
            with counting:
                found[answer.status] += 1
        client.close()

    with MemoryPeak() as peak, ThreadPoolExecutor(CLIENTS) as threads:
        list(threads.map(ask, range(CLIENTS)))
    assert sum(found.values()) == REQUESTS
    assert found[200] > REQUESTS / 20 and found[400] > REQUESTS / 20
    assert service.search({"k": 12}, [made(5)]).data["neighbors"] == usual
    assert peak.growth < GROWTH


def send(client: Client, request: Request) -> Answer:
    return client.ask(request.path, request.body, request.headers, request.method)
