"""Errors of the server, and aborted uploads, as lines of the service's log, never as tracebacks."""

import asyncio
import contextlib
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

_LOGGERS = ("lookalike", "uvicorn.error", "asyncio", "python_multipart")

_STALLED = "ASGI callable returned without completing response"
"""What uvicorn says of a client that did not take its response, see stages.serving.http.body_streams."""

_TRACEBACK, _CANCELLED = "Traceback (most recent call last)", "asyncio.exceptions.CancelledError"


@contextlib.contextmanager
def errors_as_lines(report: Callable[[str], None]) -> Iterator[None]:
    """Gives each error to `report`, with the place in the code that raised it; warnings, which a client can cause as
    often as it likes, to nobody."""
    handler = _Lines(report)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for each in loggers:
        each.addHandler(handler)
        each.propagate = False
    try:
        yield
    finally:
        for each in loggers:
            each.removeHandler(handler)
            each.propagate = True


class _Lines(logging.Handler):
    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        text = record.getMessage()
        said = text.strip().splitlines()[-1] if text.startswith(_TRACEBACK) else ""  # of the application's start or end
        cancelled = isinstance(error, asyncio.CancelledError) or said.startswith(_CANCELLED)
        if text.startswith(_STALLED) or cancelled:  # a request, or the start, at the service's end
            return
        if said:
            text = f"a fault of lookalike's own, please report it ({said})"
        if error is not None:
            at = traceback.extract_tb(error.__traceback__)[-1:]
            where = "".join(f" in {Path(each.filename).name}, line {each.lineno}" for each in at)
            text = f"a fault of lookalike's own, please report it ({type(error).__name__}: {error}{where})"
        self._report(" ".join(text.split()))
