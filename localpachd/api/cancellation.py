"""Waits on behalf of a client, which end when it cancels its call. Knows no service."""

from collections.abc import Callable
from typing import Any

from localpachd.pfs.changes import Changes


def watch(context: Any, changes: Changes) -> Callable[[], bool]:
    """Whether the call is still active; a wait on `changes` checks that again when the call ends."""
    context.add_callback(changes.notify)
    active: Callable[[], bool] = context.is_active
    return active
