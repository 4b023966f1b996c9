"""Ctrl-C at any moment: one line on stderr and the exit status 130, and never a traceback.

Before a command begins and when it has ended, Ctrl-C ends the process at once; in between it raises KeyboardInterrupt,
so that files are closed and servers told. Python raises that wherever the main thread happens to be; in a finaliser or
in a C callback, of which gRPC has many, the exception is dropped, so the press is also remembered. And where it leaves
a call of gRPC behind, closing the channel at the end of the process would wait for that call for ever.

Imported before all else, so it imports nothing large.
"""

import os
import signal
import sys
import types
from typing import NoReturn

STATUS = 130
"""The exit status of a command that Ctrl-C has ended."""

_CLEAR = "\r\x1b[K"
"""Removes the ^C that a terminal shows."""

_pressed = False
_words = "interrupted"


def listen() -> None:
    """Makes Ctrl-C end the process. Call it first, from the main thread. A process that was started to ignore Ctrl-C,
    as shells start those in the background, still ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
        sys.excepthook = _uncaught


def begin() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, and is remembered for `check`. Call it when the imports are done."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, _interrupt)
        sys.unraisablehook = _unraisable


def check() -> None:
    """Raises KeyboardInterrupt if Ctrl-C was pressed. Loops that wait call it each time round."""
    if _pressed:
        raise KeyboardInterrupt


def pressed() -> bool:
    """Whether Ctrl-C was pressed since `begin`. Then an error is no more than its effect."""
    return _pressed


def explain(words: str) -> None:
    """Sets the line with which the command ends if it is interrupted."""
    global _words
    _words = words


def over() -> None:
    """From now on Ctrl-C ends the process without a word: the command has ended, and is about to say how."""
    if signal.getsignal(signal.SIGINT) in (_end, _interrupt):
        signal.signal(signal.SIGINT, _leave)


def leave(status: int) -> NoReturn:
    """Ends the process; after Ctrl-C with its line, and without closing gRPC's channels."""
    over()
    if _pressed:
        _flush()
        _end()
    sys.exit(status)


def _interrupt(number: int, frame: types.FrameType | None) -> None:
    global _pressed
    _pressed = True
    signal.default_int_handler(number, frame)


def _end(number: int = 0, frame: types.FrameType | None = None) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Not with `sys.stderr`, whose buffer may be in use, or still hold a line that was interrupted.
    _write(f"{_CLEAR if os.isatty(2) else ''}lookalike: {_words}\n")
    _leave()


def _flush() -> None:
    try:
        sys.stdout.flush()
    except (OSError, ValueError):  # nobody reads it, or it is closed
        return


def _write(line: str) -> None:
    try:
        os.write(2, line.encode(errors="replace"))
    except OSError:  # nobody reads it
        return


def _leave(number: int = 0, frame: types.FrameType | None = None) -> NoReturn:
    os._exit(STATUS)


def _uncaught(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):  # just before `over`
        _end()
    sys.__excepthook__(kind, error, trace)


def _unraisable(lost: "sys.UnraisableHookArgs") -> None:
    if lost.exc_type is not KeyboardInterrupt:  # `check` raises that one again
        sys.__unraisablehook__(lost)
