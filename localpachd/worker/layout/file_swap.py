"""Swaps two files of one file system in a single step, with Linux's renameat2(2). Nothing but its system call."""

import ctypes
import os

_AT_FDCWD = -100
_EXCHANGE = 2
_RENAME = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def swap(left: str, right: str) -> None:
    """Gives each of two files the other's name. Raises OSError where either is missing or the system cannot do it."""
    if _RENAME is None:
        raise OSError("this system cannot swap files")
    if _RENAME(_AT_FDCWD, os.fsencode(left), _AT_FDCWD, os.fsencode(right), _EXCHANGE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), left)
