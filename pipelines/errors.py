"""What goes wrong in front of the user: one error that carries a sentence, and the sentences for gRPC's failures."""

import grpc


class LookalikeError(Exception):
    """A failure with a text that says what is wrong and what to do about it."""


def explain(error: grpc.RpcError, address: str) -> str:
    """One line about a failed call to the server at `address`."""
    code, details = error.code(), str(error.details() or "")
    if code == grpc.StatusCode.UNAVAILABLE:
        return f"no Pachyderm answers at {address}: start localpachd with `lookalike up`, or correct PACHD_ADDRESS"
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return f"the server at {address} does not serve this: {details}"
    return details or str(code.name)
