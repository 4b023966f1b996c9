"""The level of the server's log, which clients can set for a while, and the log of calls."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.calls.handlers import AnyHandler, CallInterceptor, enclosed, is_parked, watched
from localpachd.api.messages.times import seconds
from localpachd.api.schema.schema import debug_pb2
from localpachd.errors import InvalidArgument

_SERVER = logging.getLogger("localpachd")
_CALLS = logging.getLogger("localpachd.calls")
_NAMES = {
    debug_pb2.SetLogLevelRequest.DEBUG: logging.DEBUG,
    debug_pb2.SetLogLevelRequest.INFO: logging.INFO,
    debug_pb2.SetLogLevelRequest.ERROR: logging.ERROR,
}
_OFF = logging.CRITICAL + 1

_log = logging.getLogger(__name__)


class LogLevels:
    """Sets levels for as long as requests ask for, and then the usual ones again. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._timers: dict[str, threading.Timer] = {}
        self._usual = {_SERVER.name: _SERVER.level, _CALLS.name: logging.INFO}
        _CALLS.setLevel(logging.INFO)

    def set(self, request: debug_pb2.SetLogLevelRequest) -> None:
        """Sets the level that a request names. Raises InvalidArgument for an invalid one."""
        kind = request.WhichOneof("level")
        if kind is None:
            raise InvalidArgument("no level provided")
        number = getattr(request, kind)
        name = debug_pb2.SetLogLevelRequest.LogLevel.Name(number) if number in range(5) else str(number)
        levels = {**_NAMES, debug_pb2.SetLogLevelRequest.OFF: _OFF} if kind == "grpc" else _NAMES
        if number not in levels:
            raise InvalidArgument(f"cannot set {'grpc ' if kind == 'grpc' else ''}log level to {name}")
        self._set(_CALLS if kind == "grpc" else _SERVER, levels[number], seconds(request.duration))
        _log.log(max(_SERVER.getEffectiveLevel(), logging.INFO), "the level of the %s log is %s", kind, name)

    def _set(self, logger: logging.Logger, level: int, length: float) -> None:
        with self._lock:
            old = self._timers.pop(logger.name, None)
            if old is not None:
                old.cancel()
            timer = threading.Timer(length, self._reset, (logger,))
            timer.daemon = True
            self._timers[logger.name] = timer
            logger.setLevel(level)
            timer.start()

    def _reset(self, logger: logging.Logger) -> None:
        with self._lock:
            logger.setLevel(self._usual[logger.name])
        _log.info("the level of %s is the usual one again", logger.name)

    def close(self) -> None:
        """Sets the usual levels now."""
        with self._lock:
            for timer in self._timers.values():
                timer.cancel()
            for name, level in self._usual.items():
                logging.getLogger(name).setLevel(level)


class CallLog(CallInterceptor):
    """Logs every call with its time while the level of `localpachd.calls` is DEBUG."""

    def around(self, handler: AnyHandler, method: str) -> AnyHandler:
        if not _CALLS.isEnabledFor(logging.DEBUG):
            return handler
        if is_parked(handler):
            return watched(handler, lambda context: _note_end(context, method))
        return enclosed(handler, lambda context: _timed(method))


def _note_end(context: CallContext, name: str) -> None:
    begun = time.monotonic()
    context.add_callback(lambda: _CALLS.debug("%s ended after %.3f s", name, time.monotonic() - begun))


@contextmanager
def _timed(name: str) -> Iterator[None]:
    begun, end = time.monotonic(), "failed"
    try:
        yield
        end = "ended"
    finally:
        _CALLS.debug("%s %s after %.3f s", name, end, time.monotonic() - begun)
