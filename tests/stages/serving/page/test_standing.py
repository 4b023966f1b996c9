"""The page while the service starts, fails, is away or busy, asks for a token, or has a newer library."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import expect

from stages.serving.follow.configuration import ServiceConfiguration
from stages.serving.follow.snapshots import Snapshot, SnapshotState
from tests.stages.serving import services
from tests.stages.serving.page.conftest import Open
from tests.stages.serving.page.tabs import WAIT, Tab
from tests.stages.serving.services import NOWHERE, Service

NEW = services.made(77)
LOADING = SnapshotState[Snapshot]("loading", "loading the model small at 32 px")


@pytest.fixture
def alone(ready: Snapshot) -> Iterator[Service]:
    """A service whose state the test changes."""
    with services.running(ready) as service:
        yield service


def test_the_start_is_told_and_the_question_goes_on_by_itself(alone: Service, ready: Snapshot, opened: Open) -> None:
    alone.state = LOADING
    tab = opened(alone).open()
    tab.notice("The service is starting")
    tab.notice("loading the model small at 32 px")
    expect(tab.find("#notice progress")).to_be_visible()
    tab.choose(("new.png", NEW))
    tab.notice("loading the model")
    alone.state = SnapshotState("ready", snapshot=ready)
    tab.answered("new.png", tiles=12)


def test_a_service_without_the_model_of_its_vectors_offers_no_uploads(
    alone: Service, ready: Snapshot, opened: Open
) -> None:
    offered = "#choose", "#hero .fine"
    tab = opened(alone).open()
    for each in offered:
        expect(tab.find(each)).to_be_visible()
    alone.state = SnapshotState("ready", snapshot=replace(ready, embedder=None))
    tab = opened(alone).open()
    expect(tab.find("#hero-more")).to_have_text("Pick any picture in the library below.", timeout=WAIT)
    expect(tab.find("#address")).to_have_attribute("placeholder", "Type a name or value")
    for each in offered:
        expect(tab.find(each)).to_be_hidden()


def test_an_empty_library_says_what_to_do_and_pictures_appear(alone: Service, ready: Snapshot, opened: Open) -> None:
    alone.state = SnapshotState("empty", "the library is empty: add pictures with `lookalike add DIRECTORY`")
    tab = opened(alone).open()
    tab.notice("The library is empty")
    expect(tab.find("#notice code")).to_have_text("lookalike add FOLDER")
    alone.state = SnapshotState("ready", snapshot=ready)
    expect(tab.find("#browse .folders li")).to_have_count(2, timeout=WAIT)
    expect(tab.find("#notice")).to_be_hidden()


def test_a_failure_is_told_with_its_reason(alone: Service, opened: Open) -> None:
    alone.state = SnapshotState("failed", "the index could not be computed: see `lookalike status`")
    tab = opened(alone).open()
    tab.notice("The service cannot answer")
    tab.notice("the index could not be computed")


def test_a_service_that_is_away_is_waited_for(tab: Tab) -> None:
    expect(tab.find("#browse .folders li")).to_have_count(2, timeout=WAIT)
    tab.context.set_offline(True)
    tab.choose(("new.png", NEW))
    tab.notice("No connection")
    tab.context.set_offline(False)
    tab.answered("new.png", tiles=12)
    tab.faults.clear()  # the browser's own lines about the network


def test_a_newer_library_is_offered_and_not_forced(alone: Service, ready: Snapshot, opened: Open) -> None:
    tab = opened(alone).open()
    tab.choose(("new.png", NEW))
    tab.answered("new.png")
    alone.state = SnapshotState("ready", snapshot=replace(ready, commits=replace(ready.commits, index="9" * 32)))
    tab.page.evaluate("dispatchEvent(new Event('online'))")
    expect(tab.find("#newer")).to_be_visible(timeout=WAIT)
    tab.button("Refresh").click()
    tab.answered("new.png")
    expect(tab.find("#newer")).to_be_hidden()
    tab.page.keyboard.press("d")
    expect(tab.find("#provenance")).to_contain_text("9" * 32)


def test_the_token_is_asked_for_once(ready: Snapshot, opened: Open) -> None:
    guarded = ServiceConfiguration(NOWHERE, port=0, token="correct horse battery")
    with services.running(ready, guarded) as service:
        tab = opened(service).open()
        tab.notice("Sign in")
        tab.page.get_by_label("Token").fill("a wrong token, surely")
        tab.button("Sign in").click()
        expect(tab.find("#notice [role=alert]")).to_contain_text("not the token", timeout=WAIT)
        tab.page.get_by_label("Token").fill("correct horse battery")
        tab.button("Sign in").click()
        expect(tab.find("#browse .folders li")).to_have_count(2, timeout=WAIT)
        (cookie,) = tab.context.cookies()
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        tab.page.reload()
        expect(tab.find("#browse .folders li")).to_have_count(2, timeout=WAIT)
        tab.button("Sign out").click()
        tab.notice("Sign in")


@contextmanager
def busy_proxy(service: Service, times: int) -> Iterator[int]:
    """The port of a proxy that answers the first searches with 429, as a service with a full queue does."""
    left = [times]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass()

        def do_POST(self) -> None:
            if left[0]:
                left[0] -= 1
                self.rfile.read(int(self.headers["Content-Length"]))
                body = json.dumps({"error": {"code": "busy", "message": "too many questions are waiting"}}).encode()
                self._answer(429, {"Retry-After": "1", "Content-Type": "application/json"}, body)
            else:
                self._pass()

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])) if self.command == "POST" else None
            kept = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "origin")}
            found = service.ask(self.path, body, kept)
            self._answer(found.status, found.headers, found.body)

        def _answer(self, status: int, headers: Any, body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "transfer-encoding", "date", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing."""

    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    try:
        yield proxy.server_address[1]
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()


def test_a_busy_service_is_asked_again_after_its_pause(alone: Service, opened: Open) -> None:
    with busy_proxy(alone, times=2) as port:
        tab = opened(Service(alone.state, port)).open()
        expect(tab.find("#browse .folders li")).to_have_count(2, timeout=WAIT)
        tab.choose(("new.png", NEW))
        tab.notice("The service is busy")
        tab.notice("too many questions are waiting")
        tab.answered("new.png", tiles=12)
