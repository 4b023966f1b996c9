"""The socket that the service listens on. Knows no HTTP."""

import errno
import os
import socket

from stages.datum.contract import StageError

_BACKLOG = 1024
"""Connections that wait until the service takes them."""


def open_socket(host: str, port: int) -> socket.socket:
    """A socket that listens at an address; port 0 takes a free one. Raises StageError with the way out."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise StageError(f"{host} is not an address of this machine: {error.strerror}") from error
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(_BACKLOG)
        found.setblocking(False)
    except OSError as error:
        found.close()
        raise StageError(_reason(host, port, error)) from error
    return found


def _reason(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} of {host} is in use, perhaps by another service: stop that, or choose a port with --port, "
            "where 0 takes a free one"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine: listen on 127.0.0.1, or on 0.0.0.0 for all addresses"
    if error.errno == errno.EACCES:
        return f"this user may not listen on port {port}: choose one from 1024 on"
    return f"cannot listen on port {port} of {host}: {os.strerror(error.errno or 0)}"
