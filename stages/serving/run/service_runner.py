"""The running service: it listens, follows the index and the promoted model, answers over HTTP, and ends when it is
told to, or when nobody has asked it for long enough.

Knows neither where its configuration comes from nor who started it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from stages.datum.contract import StageError
from stages.datum.file_cache import FileCache
from stages.files.url_fetcher import FetchLimits
from stages.serving.follow.backbone_pool import BackbonePool
from stages.serving.follow.commit_follower import CommitFollower
from stages.serving.follow.configuration import ServiceConfiguration
from stages.serving.follow.copy_listings import CopyListings
from stages.serving.follow.index_source import REPO, VECTORS, IndexSource
from stages.serving.follow.pachyderm_client import PachydermClient, PachydermError
from stages.serving.follow.promoted_model import PromotedModel
from stages.serving.follow.promotion_source import PromotionSource
from stages.serving.follow.snapshots import Snapshot
from stages.serving.http.app import ServiceApplication
from stages.serving.http.edit_door import LibraryEditor
from stages.serving.http.trace_renderer import TraceRenderer
from stages.serving.run.connections import ProxiedConnection, ServiceConnection, ServiceLoop, open_socket
from stages.serving.run.idle_shutdown import IdleShutdown
from stages.serving.run.log_lines import errors_as_lines

LineReporter = Callable[[str], None]

INTERRUPTED = signal.SIGINT
"""What `run` returns after Ctrl-C."""

_KEPT = 75
"""Seconds for which a connection without a request stays open: longer than proxies keep theirs, which would otherwise
send a request into one that is just being closed."""

_HEADERS = 64 << 10
"""Most bytes of a request's headers."""

_FINISHING = 5
"""Seconds within which requests may be finished once the service is told to end."""

_LONGEST_END = 9.0
"""Seconds after which it ends in any case."""

# mallopt's parameters, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8

_LARGE = 4 << 20
"""Bytes of a block that goes back to the system as soon as it is freed. By default this grows with the largest block
that was freed, and blocks of some megabytes then stay in the process."""

_FREE_AT_END = 16 << 20
"""Bytes that may stay free at the end of the heap."""

_ARENAS = 2
"""Heaps: by default eight for each core, of which each keeps what its threads have freed."""


@dataclass(frozen=True)
class ServiceRole:
    """What a service does. searches: whether it follows the index, beside the promoted model. idle: the seconds without
    a request after which it ends by itself, None for never. tracer: makes the pages of traces, where there is one.
    editor: changes what is ticked on the page, None for a service that changes nothing."""

    searches: bool = True
    idle: float | None = None
    tracer: TraceRenderer | None = None
    editor: LibraryEditor | None = None


def run(
    configuration: ServiceConfiguration,
    cache: FileCache,
    environment: Mapping[str, str],
    announce: LineReporter,
    report: LineReporter = print,
    role: ServiceRole | None = None,
) -> int:
    """Serves until SIGINT or SIGTERM, and returns which of them it was, or 0 if nobody asked it any more. Belongs to
    the main thread.

    announce: takes the URL once it can be asked. report: takes lines for the log, from any thread. Raises StageError if
    the address cannot be listened on.
    """
    configure_allocator()
    _raise_file_limit()
    role = role or ServiceRole()
    index, promoted = _followed(configuration, cache, environment, report, role)
    with open_socket(configuration.host, configuration.port) as listening:
        bound = replace(configuration, port=listening.getsockname()[1])
        app: ASGIApp = ServiceApplication(
            bound,
            None if index is None else index.state,
            None if promoted is None else promoted.state,
            role.tracer,
            FetchLimits(allowed=bound.fetched),
            editor=role.editor,
        )
        begun = [each for each in (index, promoted) if each is not None]
        idling = None
        if role.idle is not None:
            app = idling = IdleShutdown(app, role.idle, lambda: begun[0].state().kind == "loading")
        running = _Server(_settings(app, bound))
        with _ended_by_signals(running) as heard, errors_as_lines(report):
            announce(bound.url)
            for each in begun:
                each.start()
            if idling is not None:
                idling.watch(lambda: _end(running, report, role.idle))
            running.run(sockets=[listening])
            if idling is not None:
                idling.close()
            for each in begun:
                each.close(within=1.0)
    return heard[0] if heard else 0


def configure_allocator() -> None:
    """Makes freed memory go back to the system early, for a process that runs for weeks; does nothing without
    glibc."""
    if platform.libc_ver()[0] != "glibc":
        return
    mallopt = ctypes.CDLL(None).mallopt
    for parameter, value in ((_ARENA_MAX, _ARENAS), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _FREE_AT_END)):
        mallopt(parameter, value)


def _raise_file_limit() -> None:
    """Lets the process open a file for each connection and each large body; the usual limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1 << 14 if hard == resource.RLIM_INFINITY else min(hard, 1 << 14)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _followed(
    configuration: ServiceConfiguration,
    cache: FileCache,
    environment: Mapping[str, str],
    report: LineReporter,
    role: ServiceRole,
) -> tuple[CommitFollower[Snapshot] | None, CommitFollower[PromotedModel] | None]:
    """The index and the promoted model, as far as they are followed. A fixed library has no promoted model: that of
    today belongs to the library of today. Nor has one of other vectors than the backbone's."""
    backbones = BackbonePool(cache, environment)
    index: CommitFollower[Snapshot] | None = None
    promoted: CommitFollower[PromotedModel] | None = None
    if role.searches:
        server = _connected(configuration)
        copies = None if configuration.at else CopyListings(server)
        repo = VECTORS if configuration.by_vectors else REPO
        source = IndexSource(server, cache, configuration.settings, environment, report, backbones, copies, repo)
        index = CommitFollower(server, source, configuration.at, report)
    if not (role.searches and (configuration.at or configuration.by_vectors)):
        server = _connected(configuration)
        at = "" if role.searches else configuration.at
        promoted = CommitFollower(server, PromotionSource(server, cache, backbones), at, report, optional=role.searches)
    return index, promoted


def _connected(configuration: ServiceConfiguration) -> PachydermClient:
    try:
        return PachydermClient(configuration.server)
    except PachydermError as error:
        raise StageError(str(error)) from error


def _end(server: uvicorn.Server, report: LineReporter, seconds: float | None) -> None:
    report(f"no request for {seconds:g} s: the service ends")
    server.should_exit = True


class _Server(uvicorn.Server):
    """uvicorn's server, which leaves the signals to this program."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures none."""
        yield


def _settings(app: Callable[..., object], configuration: ServiceConfiguration) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=ProxiedConnection if configuration.proxy else ServiceConnection,
        ws="none",
        loop=f"{ServiceLoop.__module__}:{ServiceLoop.__name__}",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
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
