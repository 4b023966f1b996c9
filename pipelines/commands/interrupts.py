"""Ctrl-C that cannot be lost. Python raises KeyboardInterrupt wherever the main thread happens to be; in a finaliser or
in a C callback, of which gRPC has many, the exception is dropped and the program would wait on. And where it leaves a
call of gRPC behind, closing the channel at the end of the process would wait for that call for ever."""

import contextlib
import os
import signal
import sys
import types
from typing import NoReturn

_pressed = False


def listen() -> None:
    """Remembers Ctrl-C from now on, for `check`. Call it once, from the main thread, before any waiting begins. A
    process that was started to ignore Ctrl-C, as shells start those in the background, still ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
        sys.unraisablehook = _unraisable


def check() -> None:
    """Raises KeyboardInterrupt if Ctrl-C was pressed. Loops that wait call it each time round."""
    if _pressed:
        raise KeyboardInterrupt


def leave(status: int) -> NoReturn:
    """Ends the process; after Ctrl-C without closing gRPC's channels. From here on Ctrl-C kills the process at once."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if not _pressed:
        sys.exit(status)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # the reader may be gone
            stream.flush()
    os._exit(status)


def _interrupt(number: int, frame: types.FrameType | None) -> None:
    global _pressed
    _pressed = True
    signal.default_int_handler(number, frame)


def _unraisable(lost: "sys.UnraisableHookArgs") -> None:
    if lost.exc_type is not KeyboardInterrupt:  # `check` raises that one again
        sys.__unraisablehook__(lost)
