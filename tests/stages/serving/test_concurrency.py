"""Many clients at once: shared passes, equal answers, a bounded queue, a new index, and clients that go away."""

from __future__ import annotations

import contextlib
import gc
import json
import socket
import struct
import threading
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from pipelines.client.services import search_client
from pipelines.client.services.search_client import QueryPicture, SearchClient, SearchError
from pipelines.client.services.service_discovery import ServiceEndpoint
from stages.datum.contract import StageError
from stages.serving.answer.load_limiter import ServiceLimits
from stages.serving.follow.snapshots import Snapshot, SnapshotState
from stages.serving.run import connections
from stages.serving.run.log_lines import errors_as_lines
from tests.conditions import until
from tests.stages.serving import services
from tests.stages.serving.services import Answer, Service, made

if TYPE_CHECKING:
    from stages.backbone.embedder import Embedder

CLIENTS = 32

ANSWERED = 'lookalike_serve_requests_total{route="/search",status="200"}'


class Gated:
    """An embedder that computes once it may. passes: the number of pictures that each call was given."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.passes: list[int] = []
        self.begun = threading.Semaphore(0)
        self.gate = threading.Event()

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        self.passes.append(len(pictures))
        self.begun.release()
        assert self.gate.wait(60)
        return self._embedder(pictures)


@pytest.fixture
def gated(ready: Snapshot, embedder: Embedder) -> Gated:
    return Gated(embedder)


@pytest.fixture(scope="module")
def bounded() -> Iterator[Service]:
    """A service with room for 20 requests."""
    bounds = ServiceLimits(requests=20, bytes=3_000_000)
    with services.running(SnapshotState("loading"), bounds=bounds) as service:
        yield service


@pytest.fixture
def held(bounded: Service, ready: Snapshot, gated: Gated) -> Iterator[Service]:
    """The same with an embedder that waits."""
    given: Any = gated
    bounded.state = SnapshotState("ready", snapshot=replace(ready, embedder=given))
    yield bounded
    gated.gate.set()


def question(seed: int) -> tuple[Any, list[bytes]]:
    """One of several kinds of questions."""
    kinds = [
        ({"k": 1 + seed % 40}, [made(seed % 60)]),
        ({"k": 3, "metric": "cosine"}, [made(seed % 60)]),
        ({"k": 5, "filter": "trip/north/"}, [made(seed % 60)]),
        ({"k": 4, "combine": "all"}, [made(seed % 60), made(seed % 7)]),
        ({"requests": [{"k": 2, "pictures": [{"upload": at}]} for at in range(2)]}, [made(seed % 60), made(seed % 9)]),
    ]
    return kinds[seed % len(kinds)]


def without_times(answer: Answer) -> Any:
    data = answer.data
    for each in data.get("answers", [data]):
        each.pop("seconds", None)
    return data


def test_answers_of_many_clients_are_those_asked_alone(service: Service) -> None:
    alone = [without_times(service.search(*question(seed))) for seed in range(CLIENTS)]
    together = threading.Barrier(CLIENTS)

    def ask(seed: int) -> Answer:
        client = service.client()
        together.wait(60)
        answer = client.search(*question(seed))
        client.close()
        return answer

    with ThreadPoolExecutor(CLIENTS) as threads:
        answers = list(threads.map(ask, range(CLIENTS)))
    for expected, answer in zip(alone, answers, strict=True):
        assert answer.status == 200
        assert without_times(answer) == expected


def test_pictures_that_wait_share_a_pass_and_a_product(held: Service, gated: Gated) -> None:
    batches = 'lookalike_serve_batch_size_%s{work="search"}'
    before = [held.metric(batches % each) for each in ("sum", "count")]
    with ThreadPoolExecutor(12) as threads:
        first = threads.submit(held.search, {"k": 3}, [made(1)])
        gated.begun.acquire()
        others = [threads.submit(held.search, {"k": 3}, [made(seed)]) for seed in range(2, 12)]
        until(lambda: held.metric('lookalike_serve_waiting{work="features"}') == 10)
        gated.gate.set()
        answers = [each.result() for each in (first, *others)]
    assert gated.passes == [1, 10]
    for seed, answer in enumerate(answers, 1):
        assert answer.data["neighbors"][0]["sources"][0]["path"].endswith(f"/{seed:02}.png")
        assert answer.data["neighbors"][0]["distance"] == 0
    assert held.metric(batches % "sum") == before[0] + 11
    assert held.metric(batches % "count") < before[1] + 11


def test_searches_with_one_filter_share_a_product(held: Service, gated: Gated) -> None:
    gated.gate.set()
    asked = {"requests": [{"pictures": [{"upload": seed}], "filter": "trip/", "k": seed + 1} for seed in range(16)]}
    files = [made(seed) for seed in range(16)]
    products = 'lookalike_serve_batch_size_count{work="search"}'
    before = held.metric(products)
    answers = held.search(asked, files).data["answers"]
    alone = [held.search({"filter": "trip/", "k": seed + 1}, [files[seed]]).data for seed in range(16)]
    assert [each["neighbors"] for each in answers] == [each["neighbors"] for each in alone]
    assert held.metric(products) < before + 16 + 16


def test_more_requests_than_there_is_room_for_are_told_to_come_again(held: Service, gated: Gated) -> None:
    with ThreadPoolExecutor(40) as threads:
        asked = [threads.submit(held.search, {"k": 3}, [made(seed)]) for seed in range(40)]
        until(lambda: sum(each.done() for each in asked) == 20)
        refused = [each.result() for each in asked if each.done()]
        assert {(each.status, each.code, each.headers["retry-after"]) for each in refused} == {(429, "busy", "1")}
        assert held.ask("/library").status == held.ask("/health").status == held.ask("/status").status == 200
        gated.gate.set()
        statuses = sorted(each.result().status for each in asked)
    assert statuses == [200] * 20 + [429] * 20
    assert held.search({"k": 3}, [made(1)]).status == 200


def test_bytes_under_way_are_bounded(held: Service, gated: Gated) -> None:
    padded = made(1) + bytes(1_400_000)
    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(held.search, {"k": 3}, [padded]) for _ in range(3)]
        until(lambda: any(each.done() for each in asked))
        assert held.search({"id": "0" * 64}).status == 404  # small ones have room
        gated.gate.set()
        assert sorted(each.result().status for each in asked) == [200, 200, 429]


def request(body: bytes, headers: Mapping[str, str]) -> bytes:
    """A search as its bytes."""
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = ["POST /search HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *lines, "", ""]
    return "\r\n".join(head).encode() + body


def test_the_senders_of_large_uploads_read_why_they_are_refused(
    held: Service, gated: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many at once, and late ones, whose rest would otherwise come into a closed connection."""
    large = bytes(24_000_000)
    monkeypatch.setattr(search_client, "_PATIENCE", 0)

    def refused(_: int) -> tuple[int, str]:
        with SearchClient(ServiceEndpoint(f"http://127.0.0.1:{held.port}", "the service", None)) as client:
            with pytest.raises(SearchError) as error:
                client.search([QueryPicture(large)])
            return error.value.status, error.value.code

    with ThreadPoolExecutor(8) as threads, socket.create_connection(("127.0.0.1", held.port), 60) as late:
        first = threads.submit(held.search, {"k": 1}, [made(1)])
        assert gated.begun.acquire(timeout=60)
        assert set(threads.map(refused, range(6))) == {(429, "busy")}
        begun = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/png\r\nContent-Length: %d\r\n\r\n"
        late.sendall(begun % len(large) + large[:1000])
        late.recv(1, socket.MSG_PEEK)
        monkeypatch.setattr(connections, "WITHIN", 0.01)
        late.sendall(large[1000:])
        said = b""
        while piece := late.recv(1 << 16):
            said += piece
        assert said.startswith(b"HTTP/1.1 429 ") and b"retry-after: 1" in said and b"connection: close" in said
        gated.gate.set()
        assert first.result().status == 200


def test_the_work_of_clients_that_go_away_is_dropped(held: Service, gated: Gated) -> None:
    gone = 'lookalike_serve_requests_total{route="/search",status="499"}'
    before = held.metric(gone)
    asked = request(*services.form({"k": 3}, [made(1)]))
    with socket.create_connection(("127.0.0.1", held.port), timeout=60) as connection:
        connection.sendall(asked)
        gated.begun.acquire()  # it is in a pass
    for _ in range(3):
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", held.port), timeout=60) as connection:
                connection.sendall(asked)
        until(lambda: held.metric('lookalike_serve_waiting{work="features"}') == 0)
    until(lambda: held.metric(gone) == before + 31)
    gated.gate.set()
    assert held.search({"k": 3}, [made(2)]).status == 200
    assert gated.passes == [1, 1]


@pytest.mark.parametrize("reset", [False, True])
def test_an_aborted_request_is_counted_and_no_fault(ready: Snapshot, reset: bool) -> None:
    """Cut off within its body and while it is answered, by the page that is left or by a cable."""
    lines: list[str] = []
    cut = b"\0" * 100_000
    bodies = [services.form({"k": 3}, [made(1) + cut]), (made(1) + cut, {"Content-Type": "image/png"})]
    counted = 'lookalike_serve_requests_total{route="/search",status="499"}'
    with errors_as_lines(lines.append), services.running(ready) as service:
        before = service.metric(counted)
        for within in (True, False):
            for body, headers in bodies:
                with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
                    connection.sendall(request(body, headers)[: -len(cut) if within else None])
                    if reset:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        until(lambda: service.metric(counted) == before + 4)
        gc.collect()  # asyncio logs errors that nobody took once they are collected
    assert lines and set(lines) == {"POST /search: the client closed the connection during its upload"}


def test_an_answer_that_takes_too_long_is_given_up(ready: Snapshot, gated: Gated) -> None:
    given: Any = gated
    with services.running(replace(ready, embedder=given), bounds=ServiceLimits(answer=0.3, requests=3)) as service:
        for _ in range(4):
            answer = service.search({"k": 3}, [made(1)])
            assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "too-slow", "5")
        several = {"requests": [{"pictures": [{"upload": 0}]}, {"id": ready.library.id(0), "k": 1}]}
        first, second = service.search(several, [made(1)]).data["answers"]
        assert first["error"]["code"] == "too-slow" and second["neighbors"][0]["distance"] == 0
        gated.gate.set()
        until(lambda: service.metric('lookalike_serve_waiting{work="features"}') == 0)
        assert service.search({"k": 3}, [made(2)]).status == 200


class Choosy:
    """An embedder that cannot compute the vectors of white pictures."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        if (pictures == 255).all(axis=(1, 2, 3)).any():
            raise StageError("the model gives values that are not finite")
        return self._embedder(pictures)


def test_a_picture_that_the_model_cannot_use_fails_alone(ready: Snapshot, embedder: Embedder) -> None:
    given: Any = Choosy(embedder)
    white = services.file(Image.new("RGB", (50, 50), "white"))
    with services.running(replace(ready, embedder=given)) as service:
        with ThreadPoolExecutor(20) as threads:
            files = [white if seed % 4 == 0 else made(seed) for seed in range(20)]
            answers = list(threads.map(lambda each: service.search({"k": 1}, [each]), files))
        for seed, answer in enumerate(answers):
            assert (answer.status, answer.code) == ((422, "not-searchable") if seed % 4 == 0 else (200, ""))


def other_library(embedder: Embedder, root: Path) -> Snapshot:
    """A library of other pictures with other paths, of which a few are the same."""
    files = {f"later/{seed:03}.png": made(seed) for seed in range(20, 50)}
    library = services.library(root / "other", embedder, files, segments=3)
    return services.snapshot(library, embedder, root / "cache", index="9" * 32)


def test_a_new_index_under_load_drops_no_request_and_mixes_no_answer(
    ready: Snapshot, embedder: Embedder, tmp_path: Path
) -> None:
    snapshots = {"1" * 32: ready, "9" * 32: other_library(embedder, tmp_path)}
    over = threading.Event()
    expected: dict[tuple[str, int], Any] = {}
    for index, snapshot in snapshots.items():
        with services.running(snapshot) as alone:
            for seed in range(10):
                expected[index, seed] = without_times(alone.search(*question(seed)))
    with services.running(ready) as service:

        def ask(number: int) -> list[tuple[int, Answer]]:
            client = service.client()
            found: list[tuple[int, Answer]] = []
            while not over.is_set():
                seed = (number + len(found)) % 10
                found.append((seed, client.search(*question(seed))))
            client.close()
            return found

        with ThreadPoolExecutor(4) as threads:
            asked = [threads.submit(ask, number) for number in range(4)]
            for change in range(6):
                service.state = SnapshotState("ready", snapshot=list(snapshots.values())[change % 2])
                enough = service.metric(ANSWERED) + 10
                until(partial(lambda enough: service.metric(ANSWERED) > enough, enough))
            over.set()
            answers = [each for one in asked for each in one.result()]
    assert {answer.status for _, answer in answers} == {200}
    seen = set()
    for seed, answer in answers:
        data = without_times(answer)
        parts = data.get("answers", [data])
        for place, part in enumerate(parts):
            index = part["commits"]["index"]
            whole = expected[index, seed]
            assert part == (whole["answers"][place] if "answers" in whole else whole)
            seen.add(index)
    assert seen == set(snapshots)


@pytest.mark.only_in_all
def test_a_large_request_does_not_keep_small_ones_waiting(ready: Snapshot) -> None:
    decoded = 'lookalike_serve_step_seconds_count{step="decode"}'
    noise = np.random.default_rng(1).integers(0, 256, (600, 800, 3), np.uint8)
    boxes = [{"upload": 0, "box": [0, 0, 0.5, 0.5 + at / 32]} for at in range(16)]
    large = {"requests": [{"pictures": boxes, "k": 1}] * 24}
    with services.running(ready, bounds=ServiceLimits()) as service, ThreadPoolExecutor(1) as threads:
        asked = threads.submit(service.search, large, [services.file(Image.fromarray(noise), "JPEG")])
        until(lambda: service.metric('lookalike_serve_waiting{work="features"}') > 0 or service.metric(decoded) > 0)
        before = service.metric(decoded)
        assert service.search({"k": 1}, [made(1)]).status == 200
        assert service.metric(decoded) < before + 32
        assert asked.result().status == 200


@pytest.mark.only_in_all
def test_an_index_that_was_replaced_leaves_the_memory(ready: Snapshot, embedder: Embedder, tmp_path: Path) -> None:
    with services.running(SnapshotState("loading")) as service:
        service.state = SnapshotState("ready", snapshot=other_library(embedder, tmp_path))
        assert service.state.snapshot is not None
        old = weakref.ref(service.state.snapshot.library)
        with ThreadPoolExecutor(8) as threads:
            asked = [threads.submit(service.search, *question(seed)) for seed in range(16)]
            service.state = SnapshotState("ready", snapshot=ready)
            assert {each.result().status for each in asked} == {200}
        assert service.search(*question(1)).status == 200
        until(lambda: gc.collect() >= 0 and old() is None)


@pytest.fixture(scope="module")
def copied(embedder: Embedder, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A library of one picture with so many sources that 64 answers are 12 MB, more than a socket holds."""
    root = tmp_path_factory.mktemp("copied")
    library = services.library(root / "index", embedder, {f"{'long/' * 40}{at:03}.png": made(1) for at in range(500)})
    return services.snapshot(library, embedder, root / "cache")


def large(held: Snapshot) -> tuple[bytes, Mapping[str, str]]:
    """A request with a large answer."""
    asked = {"requests": [{"id": held.library.id(0)}] * 64}
    return json.dumps(asked).encode(), {"Content-Type": "application/json"}


@contextlib.contextmanager
def unread(service: Service, held: Snapshot) -> Iterator[None]:
    """Asks for a large answer, and does not read it until the end of the block."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", service.port))
        connection.sendall(request(*large(held)))
        yield


@pytest.mark.only_in_all
def test_clients_that_do_not_read_their_answers_are_given_up(copied: Snapshot) -> None:
    lines: list[str] = []
    with services.running(copied, bounds=ServiceLimits(requests=2, idle=0.5)) as service, errors_as_lines(lines.append):
        with unread(service, copied), unread(service, copied):
            until(lambda: service.metric(ANSWERED) == 2)
        assert service.search({"k": 1}, [made(1)]).status == 200
        assert len(service.ask("/search", *large(copied)).data["answers"]) == 64
    assert lines == []


def test_answers_that_are_not_read_yet_take_room(copied: Snapshot) -> None:
    with services.running(copied, bounds=ServiceLimits(bytes=20_000_000)) as service:
        with unread(service, copied):
            until(lambda: service.ask("/search", *large(copied)).status == 429)
            assert service.search({"k": 1}, [made(1)]).status == 200
        until(lambda: service.ask("/search", *large(copied)).status == 200)


def test_the_threads_of_a_service_end_with_it(ready: Snapshot) -> None:
    def threads() -> set[threading.Thread]:
        names = ("decode", "fetch", "features", "search_0", "answer", "service")
        return {each for each in threading.enumerate() if each.name.startswith(names)}

    before = threads()
    with services.running(ready, bounds=ServiceLimits()) as service:
        assert service.search({"k": 3, "filter": "trip/"}, [made(1)]).status == 200
        assert service.search({"url": "http://127.0.0.1:1/"}).code == "private-address"
        assert threads() > before
    until(lambda: not threads() - before)
