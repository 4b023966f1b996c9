"""Waiting on behalf of a client: only for as long as it is there. Knows no service."""

from collections.abc import Callable
from typing import Any

from localpachd.pfs.changes import Changes


def presence(context: Any, changes: Changes) -> Callable[[], bool]:
    """Whether the caller still waits; those who wait on `changes` look again when it stops."""
    context.add_callback(changes.notify)
    active: Callable[[], bool] = context.is_active
    return active
