"""What goes wrong in front of the user: one error that carries a sentence, and the sentences for gRPC's failures."""

import grpc


class LookalikeError(Exception):
    """A failure with a text that says what is wrong and what to do about it."""


def unreachable(address: str) -> str:
    """What to say where no server answers."""
    return f"no Pachyderm answers at {address}: start localpachd with `lookalike up`, or correct the address"


def explain(error: grpc.RpcError, address: str) -> str:
    """One line about a failed call to the server at `address`."""
    code, details = error.code(), " ".join(str(error.details() or "").split())
    if code == grpc.StatusCode.UNAVAILABLE:
        return unreachable(address)
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return f"the server at {address} does not serve this: {details}"
    return details or str(code.name).lower()
