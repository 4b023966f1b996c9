"""Searches for pictures that are named by URL, from small real web servers, through the running service."""

import ipaddress
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from stages.files.url_fetcher import FetchLimits
from stages.serving.follow.snapshots import Snapshot
from tests.stages.serving import services
from tests.stages.serving.services import Service, made
from tests.stages.serving.web_servers import saying, web

LIMITS = FetchLimits(bytes=1 << 20, seconds=20, allowed=(ipaddress.ip_network("127.0.0.0/8"),))


@pytest.fixture(scope="module")
def fetching(ready: Snapshot) -> Iterator[Service]:
    """A service that may fetch from this machine."""
    with services.running(ready, limits=LIMITS) as service:
        yield service


def test_a_picture_by_url_is_searched_as_one_that_is_uploaded(fetching: Service) -> None:
    with web(saying(made(3), "Content-Type: text/html")) as server:
        data = fetching.search({"url": server.url("/a.png"), "k": 3}).data
        assert data["neighbors"] == fetching.search({"k": 3}, [made(3)]).data["neighbors"]
        assert data["pictures"][0]["name"] == server.url("/a.png") and data["pictures"][0]["known"]
        asked = {"pictures": [{"url": server.url("/b.png"), "box": [0, 0, 0.5, 0.5]}, {"upload": 0}], "k": 3}
        uploaded = {"pictures": [{"upload": 1, "box": [0, 0, 0.5, 0.5]}, {"upload": 0}], "k": 3}
        files = [made(5), made(3)]
        assert fetching.search(asked, files[:1]).data["neighbors"] == fetching.search(uploaded, files).data["neighbors"]


def test_what_cannot_be_fetched_or_is_no_picture_is_refused_with_the_reason(fetching: Service) -> None:
    cases = [
        (saying(b"just text"), 422, "not-a-picture"),
        (saying(made(1)[:2000]), 422, "not-a-picture"),
        (saying(bytes(2 << 20)), 413, "too-large"),
        (saying(b"", "Location: http://[::1]/", status="302 Found"), 403, "private-address"),
    ]
    for behave, status, code in cases:
        with web(behave) as server:
            answer = fetching.search({"url": server.url()})
            assert (answer.status, answer.code) == (status, code)


def test_few_files_are_fetched_at_a_time_and_others_are_answered_meanwhile(fetching: Service) -> None:
    """Files that are fetched and not decoded yet are in memory, so there are never more than eight."""
    gate, counting = threading.Event(), threading.Lock()
    under_way, most = 0, 0

    def slow(connection: socket.socket, path: str) -> None:
        nonlocal under_way, most
        with counting:
            under_way += 1
            most = max(most, under_way)
            if most == 8:
                gate.set()
        assert gate.wait(60)
        with counting:
            under_way -= 1
        saying(made(1))(connection, path)

    with web(slow) as server, ThreadPoolExecutor(3) as threads:
        pictures = [{"url": server.url(f"/{at}.png")} for at in range(16)]
        asked = [threads.submit(fetching.search, {"k": 1, "pictures": pictures}) for _ in range(3)]
        assert fetching.search({"k": 1}, [made(2)]).status == 200
        assert {each.result().status for each in asked} == {200}
    assert most == 8


def test_one_picture_that_cannot_be_fetched_ends_its_question_alone(fetching: Service) -> None:
    with web(saying(made(1))) as good, web(saying(b"", status="404 Not Found")) as bad:
        asked = [{"url": good.url(), "k": 1}, {"pictures": [{"url": good.url()}, {"url": bad.url()}]}]
        first, second = fetching.search({"requests": asked}).data["answers"]
        assert first["neighbors"][0]["distance"] == 0
        reason = "127.0.0.1 answers with HTTP 404"
        named = [{"picture": 1, "message": reason}]
        assert second["error"] == {"code": "url-not-fetched", "message": reason, "pictures": named}
