"""Sentences for gRPC's failures."""

import grpc

_reached: list[str] = []


def unreachable(address: str) -> str:
    """The message for an address where no server answers."""
    return f"no Pachyderm answers at {address}: start localpachd with `lookalike up`, or correct the address"


def reaching(address: str) -> None:
    """Remembers the server that this process talks to, for messages."""
    _reached.append(address)


def explain(error: grpc.RpcError) -> str:
    """One line about a failed call to the server that this process talks to."""
    address = _reached[-1] if _reached else "the server's address"
    code, details = error.code(), " ".join(str(error.details() or "").split())
    if code == grpc.StatusCode.UNAVAILABLE:
        return unreachable(address)
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return f"the server at {address} does not serve this: {details}"
    return details or str(code.name).lower()
