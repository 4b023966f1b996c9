"""Work on behalf of a client, which ends with its call, also at its deadline or when the client has gone.

Knows no service.
"""

import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import grpc

from localpachd.errors import Unavailable
from localpachd.pfs.changes import ChangeNotifier

T = TypeVar("T")

CallContext = grpc.ServicerContext
"""A call under way, as its method gets it."""

_STEPS = 50_000
"""Instructions of SQLite's machine, some milliseconds, after which a reader looks whether its call has ended."""


def watch(context: CallContext, changes: ChangeNotifier) -> Callable[[], bool]:
    """Whether the call is still active. From the first question on, a wait on `changes` asks again when it ends."""
    watched = cache(lambda: context.add_callback(changes.wake))

    def active() -> bool:
        watched()
        return context.is_active()

    return active


def check(context: CallContext) -> None:
    """Raises Unavailable, which nobody sees, if the call has ended."""
    if not context.is_active():
        raise Unavailable("the client has gone")


def while_active(context: CallContext, items: Iterator[T]) -> Iterator[T]:
    """The items for as long as the call is active; then Unavailable. Closes their source, if it is a generator."""
    try:
        for each in items:
            check(context)
            yield each
    finally:
        if isinstance(items, Generator):
            items.close()


@contextmanager
def interrupting(context: CallContext, conn: sqlite3.Connection) -> Iterator[None]:
    """Lets statements of a connection within the block fail once the call has ended, even those that find nothing."""
    conn.set_progress_handler(lambda: not context.is_active(), _STEPS)
    try:
        yield
    finally:
        conn.set_progress_handler(None, 0)
