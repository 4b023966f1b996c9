"""Sentences for gRPC's failures."""

import grpc


def unreachable(address: str) -> str:
    """The message for an address where no server answers."""
    return f"no Pachyderm answers at {address}: start localpachd with `lookalike up`, or correct the address"


def explain(error: grpc.RpcError, address: str) -> str:
    """One line about a failed call to the server at `address`."""
    code, details = error.code(), " ".join(str(error.details() or "").split())
    if code == grpc.StatusCode.UNAVAILABLE:
        return unreachable(address)
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return f"the server at {address} does not serve this: {details}"
    return details or str(code.name).lower()
