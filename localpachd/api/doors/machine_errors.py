"""Failures of the machine in a client's words: full disks, too many open files, rights that are missing.

Knows no service.
"""

import errno
import sqlite3

import grpc

_EXHAUSTED, _PRECONDITION = grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.FAILED_PRECONDITION
_PRIMARY = 0xFF
"""The part of an error code of SQLite that names its kind."""

_SYSTEM = {
    errno.ENOSPC: (_EXHAUSTED, "no space left on the server's disk: free some"),
    errno.EDQUOT: (_EXHAUSTED, "the server's quota of its disk is used up: free some of it"),
    errno.EMFILE: (_EXHAUSTED, "the server has too many open files: try again later, or raise its limit (ulimit -n)"),
    errno.ENFILE: (_EXHAUSTED, "the server's machine has too many open files: try again later"),
    errno.ENOMEM: (_EXHAUSTED, "the server's machine has no memory left: try again later"),
    errno.EAGAIN: (_EXHAUSTED, "the server's machine can start no more threads or processes: try again later"),
    errno.EACCES: (_PRECONDITION, "the server may not access one of its files: give it the right"),
    errno.EPERM: (_PRECONDITION, "the server may not change one of its files: give it the right, or see lsattr"),
    errno.EROFS: (_PRECONDITION, "the server's disk can only be read: mount it for writing"),
}
_DATABASE = {
    sqlite3.SQLITE_FULL: _SYSTEM[errno.ENOSPC],
    sqlite3.SQLITE_CANTOPEN: (_EXHAUSTED, "the server cannot open its database: it may have too many open files"),
    sqlite3.SQLITE_NOMEM: _SYSTEM[errno.ENOMEM],
    sqlite3.SQLITE_PERM: _SYSTEM[errno.EACCES],
    sqlite3.SQLITE_READONLY: (_PRECONDITION, "the server may not write its database: see its rights and its disk"),
}


def machine_failure(error: Exception) -> tuple[grpc.StatusCode, str] | None:
    """The status code and text of a failure of the machine; None for any other error."""
    if isinstance(error, OSError):
        known = _SYSTEM.get(error.errno or 0)
        if known is not None and isinstance(error.filename, str) and error.filename:
            return known[0], f"{known[1]} ({error.filename})"
        return known
    if isinstance(error, sqlite3.OperationalError):
        return _DATABASE.get(getattr(error, "sqlite_errorcode", 0) & _PRIMARY)
    return None
