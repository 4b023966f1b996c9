"""Waits on behalf of a client, which end when it cancels its call. Knows no service."""

from collections.abc import Callable
from functools import cache

import grpc

from localpachd.pfs.changes import Changes


def watch(context: grpc.ServicerContext, changes: Changes) -> Callable[[], bool]:
    """Whether the call is still active; a wait on `changes` checks that again when the call ends."""
    context.add_callback(changes.wake)
    return context.is_active


def watch_later(context: grpc.ServicerContext, changes: Changes) -> Callable[[], bool]:
    """As `watch`, for a call that rarely waits: only the first question costs anything."""
    watched = cache(lambda: watch(context, changes))
    return lambda: watched()()
