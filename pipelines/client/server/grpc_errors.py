"""Sentences for gRPC's failures."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import grpc

from pipelines.errors import LookalikeError

_CUT_OFF = ("RST_STREAM", "Stream removed", "transport is closing")
"""Parts of the details with which a stream ends whose server has gone, whichever code it has."""


_ABORTED = ("SQLSTATE 25P02", "SQLSTATE 40")
"""The conditions of PostgreSQL for a transaction that it has given up, as Pachyderm 2.12 passes them on: one aborted by
an earlier statement, and the class of rollbacks (serialisation, deadlock)."""


@dataclass(frozen=True, slots=True)
class CurrentServer:
    """The server that this process talks to: its address, whether it is that of a library on this machine, and its
    namespace in a Kubernetes cluster, "" if that is not known."""

    address: str = "the server's address"
    local: bool = False
    namespace: str = ""

    def absent(self) -> str:
        """The message if no server answers there."""
        if self.local:
            advice = "start it again with `lookalike up` in the directory of its library"
            return f"the library's server at {self.address} does not answer: {advice}"
        within = f" --namespace {self.namespace}" if self.namespace else ""
        return (
            f"no Pachyderm answers at {self.address}: see with `kubectl get pods{within}` whether pachd is running and "
            "ready, restart the port forwarding if there is one, or correct the address"
        )


_reached = [CurrentServer()]


def remember_server(server: CurrentServer) -> None:
    """Remembers the server that this process talks to, for messages."""
    _reached.append(server)


def cause(error: Exception) -> grpc.RpcError | None:
    """The failed call behind an exception: the client turns some of gRPC's errors into a ConnectionError."""
    found = error if isinstance(error, grpc.RpcError) else error.__cause__
    return found if isinstance(found, grpc.RpcError) else None


def is_unavailable(error: grpc.RpcError) -> bool:
    """Whether the server, or the way to it, was not there or broke off, as when pachd restarts."""
    details = str(error.details() or "")
    return error.code() == grpc.StatusCode.UNAVAILABLE or any(part in details for part in _CUT_OFF)


def is_aborted(error: grpc.RpcError) -> bool:
    """Whether the server's database gave up the transaction of a call, as a busy one does: the call may be made
    again."""
    return any(condition in str(error.details() or "") for condition in _ABORTED)


def explain(error: grpc.RpcError) -> str:
    """One line about a failed call to the server that this process talks to."""
    server = _reached[-1]
    code, details = error.code(), " ".join(str(error.details() or "").split())
    if is_unavailable(error):
        return server.absent()
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return f"the server at {server.address} does not serve this: {details}"
    if code == grpc.StatusCode.UNAUTHENTICATED:
        return (
            f"the server at {server.address} asks for a token: {details}. Run `pachctl auth login` or, for the token "
            "of a localpachd, `pachctl auth use-auth-token`; or name the token in PACH_PYTHON_AUTH_TOKEN"
        )
    if is_aborted(error):
        return f"the database of the server at {server.address} is too busy: run this again ({details})"
    return details or str(code.name).lower()


def words_of(error: Exception) -> str:
    """One line about an exception: about the failed call behind it, if there is one."""
    failed = cause(error)
    return str(error) if failed is None else explain(failed)


@contextmanager
def explained() -> Iterator[None]:
    """Raises the failure of a call as a LookalikeError, in words."""
    try:
        yield
    except grpc.RpcError as error:
        raise LookalikeError(words_of(error)) from error


@contextmanager
def suppress_not_found() -> Iterator[None]:
    """Ends the block, and nothing more, where the server does not find what a call asks for."""
    try:
        yield
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.NOT_FOUND:
            raise
