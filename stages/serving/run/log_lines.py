"""Errors of the server, and the service's own warnings, as lines of its log, never as tracebacks."""

import contextlib
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

_LOGGERS = {
    **dict.fromkeys(("uvicorn.error", "asyncio", "python_multipart"), logging.ERROR),
    "stages.serving": logging.WARNING,
}

_STALLED = "ASGI callable returned without completing response"
"""What uvicorn says of a client that did not take its response, see stages.serving.http.body_streams."""


@contextlib.contextmanager
def errors_as_lines(report: Callable[[str], None]) -> Iterator[None]:
    """Gives each error to `report`, with the place in the code that raised it; warnings of other packages, which a
    client can cause with a few bytes, to nobody."""
    handlers = {logging.getLogger(name): _Lines(report, level) for name, level in _LOGGERS.items()}
    for logger, handler in handlers.items():
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, handler in handlers.items():
            logger.removeHandler(handler)
            logger.propagate = True


class _Lines(logging.Handler):
    def __init__(self, report: Callable[[str], None], level: int) -> None:
        super().__init__(level)
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        text = record.getMessage()
        if text.startswith(_STALLED):
            return
        if error is not None:
            at = traceback.extract_tb(error.__traceback__)[-1:]
            where = "".join(f" in {Path(each.filename).name}, line {each.lineno}" for each in at)
            text = f"a fault of lookalike's own, please report it ({type(error).__name__}: {error}{where})"
        self._report(" ".join(text.split()))
