"""A service that ends for lack of requests: what keeps it running, and what does not."""

from __future__ import annotations

import asyncio
import threading

from starlette.types import Message, Receive, Scope, Send

from stages.serving.run.idle_shutdown import IdleShutdown
from tests.event_loops import run_coroutine


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def _sent(_: Message) -> None:
    """Nothing."""


async def answering(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers at once."""


def asked(idling: IdleShutdown, path: str) -> None:
    run_coroutine(idling({"type": "http", "path": path}, _nothing, _sent))


def test_it_ends_after_its_time_without_a_request() -> None:
    ended = threading.Event()
    IdleShutdown(answering, 0.2, lambda: False).watch(ended.set)
    assert ended.wait(60)


def test_a_request_that_is_under_way_and_a_start_keep_it_running() -> None:
    begun, release, ended = threading.Event(), threading.Event(), threading.Event()
    starting = [True]

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await asyncio.to_thread(release.wait)

    idling = IdleShutdown(inner, 0.1, lambda: starting[0])
    idling.watch(ended.set)
    assert not ended.wait(1.0)
    thread = threading.Thread(target=asked, args=(idling, "/classify"))
    thread.start()
    assert begun.wait(60)
    starting[0] = False
    assert not ended.wait(1.5)
    release.set()
    thread.join()
    assert ended.wait(60)


def test_probes_do_not_keep_it_running() -> None:
    idling, ended = IdleShutdown(answering, 1.0, lambda: False), threading.Event()
    idling.watch(ended.set)
    while not ended.wait(0.05):
        for path in ("/health", "/ready", "/metrics"):
            asked(idling, path)


def test_one_that_is_closed_does_not_end_again() -> None:
    idling, ended = IdleShutdown(answering, 0.2, lambda: False), threading.Event()
    idling.close()
    idling.watch(ended.set)
    assert not ended.wait(1.0)
