"""The lines of the service's log: errors, each as one line, and nothing that a client can cause at will."""

import asyncio
import logging
import traceback

from stages.serving.run.log_lines import errors_as_lines


def test_errors_are_one_line_and_warnings_none() -> None:
    lines: list[str] = []
    with errors_as_lines(lines.append):
        logging.getLogger("python_multipart.multipart").warning("Found invalid character 13")
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
        logging.getLogger("uvicorn.error").error("ASGI callable returned without completing response.")
        cancelled = asyncio.CancelledError("Task cancelled, timeout graceful shutdown exceeded")
        logging.getLogger("uvicorn.error").error("Exception in ASGI application\n", exc_info=cancelled)
        assert lines == []
        logging.getLogger("uvicorn.error").error("cannot\nlisten")
        try:
            raise ValueError("odd")
        except ValueError as error:
            logging.getLogger("uvicorn.error").error("Exception in ASGI application\n", exc_info=error)
    assert lines[0] == "cannot listen"
    assert lines[1].startswith(
        "a fault of lookalike's own, please report it (ValueError: odd in test_log_lines.py, line "
    )
    assert len(lines) == 2


def test_tracebacks_that_are_texts_are_one_line() -> None:
    """Starlette sends those of a start or an end so to uvicorn, which logs them."""
    lines: list[str] = []
    with errors_as_lines(lines.append):
        for error in (asyncio.CancelledError(), ValueError("odd")):
            try:
                raise error
            except BaseException:
                logging.getLogger("uvicorn.error").error(traceback.format_exc())
    assert lines == ["a fault of lookalike's own, please report it (ValueError: odd)"]
