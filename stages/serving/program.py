"""The running service: it listens, follows the index, answers over HTTP, and ends when it is told to.

Knows neither where its configuration comes from nor who started it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import FrameType

import uvicorn

from stages.contract import StageError
from stages.filecache import FileCache
from stages.serving import allocator
from stages.serving.app import application
from stages.serving.configuration import Configuration
from stages.serving.connections import Connection
from stages.serving.fetching import Limits
from stages.serving.following import Following
from stages.serving.listening import opened
from stages.serving.loglines import errors_as_lines
from stages.serving.opening import Opening
from stages.serving.pachyderm import Pachyderm, PachydermError
from stages.serving.tracing import Tracer

Say = Callable[[str], None]

INTERRUPTED = signal.SIGINT
"""What `run` returns after Ctrl-C."""

_CONNECTIONS = 900
"""Most connections at once; a process may usually open 1,024 files."""

_KEPT = 75
"""Seconds for which a connection without a request stays open: longer than proxies keep theirs, which would otherwise
send a request into one that is just being closed."""

_HEADERS = 64 << 10
"""Most bytes of a request's headers."""

_FINISHING = 5
"""Seconds within which requests may be finished once the service is told to end."""

_LONGEST_END = 9.0
"""Seconds after which it ends in any case."""


def run(
    configuration: Configuration,
    cache: FileCache,
    environment: Mapping[str, str],
    announce: Say,
    report: Say = print,
    tracer: Tracer | None = None,
    mounted: Path | None = None,
) -> int:
    """Serves until SIGINT or SIGTERM, and returns which of them it was. Belongs to the main thread.

    announce: takes the URL once it can be asked. report: takes lines for the log, from any thread. mounted: see
    Opening. Raises StageError if the address cannot be listened on.
    """
    allocator.settle()
    try:
        server = Pachyderm(configuration.server)
    except PachydermError as error:
        raise StageError(str(error)) from error
    with opened(configuration.host, configuration.port) as listening:
        bound = replace(configuration, port=listening.getsockname()[1])
        opening = Opening(server, cache, bound.settings, environment, report, mounted)
        following = Following(server, opening, bound.at, report)
        app = application(bound, following.state, tracer, Limits(allowed=bound.fetched))
        running = _Server(_settings(app, bound))
        with _ended_by_signals(running) as heard, errors_as_lines(report):
            following.start()
            announce(bound.url)
            running.run(sockets=[listening])
            following.close(within=1.0)
    return heard[0] if heard else 0


class _Server(uvicorn.Server):
    """uvicorn's server, which leaves the signals to this program."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures none."""
        yield


def _settings(app: Callable[..., object], configuration: Configuration) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        loop="asyncio",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=_KEPT,
        timeout_graceful_shutdown=_FINISHING,
        h11_max_incomplete_event_size=_HEADERS,
        ssl_certfile=configuration.certificate,
        ssl_keyfile=configuration.key,
    )


@contextlib.contextmanager
def _ended_by_signals(server: uvicorn.Server) -> Iterator[list[int]]:
    """Gives the list of the signals that were heard; the second one ends requests, too. A signal that the process was
    started to ignore stays ignored."""
    heard: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        if not heard:
            late = threading.Timer(_LONGEST_END, os._exit, (128 + number,))
            late.daemon = True
            late.start()
        heard.append(number)
        server.force_exit = server.should_exit
        server.should_exit = True

    heeded = [each for each in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, end) for each in heeded}
    try:
        yield heard
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
