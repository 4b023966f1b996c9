"""Waits on behalf of a client, which end when it cancels its call. Knows no service."""

from collections.abc import Callable

import grpc

from localpachd.pfs.changes import Changes


def watch(context: grpc.ServicerContext, changes: Changes) -> Callable[[], bool]:
    """Whether the call is still active; a wait on `changes` checks that again when the call ends."""
    context.add_callback(changes.wake)
    return context.is_active
