"""The token that callers must send, as Pachyderm's clients send theirs: an interceptor that refuses all other calls.

Knows no service by name, except for those that Pachyderm answers without a token.
"""

import hmac
from collections.abc import Callable, Collection
from typing import NoReturn, TypeVar

import grpc

from localpachd.api.calls.handlers import method_handler

Request = TypeVar("Request")
Reply = TypeVar("Reply")

METADATA = "authn-token"

# Pachyderm's own texts (src/auth/auth.go), which clients recognise.
_MISSING = "no authentication token (try logging in)"
_WRONG = "provided auth token is corrupted or has expired (try logging in again)"

# pachctl asks these before it has a token (src/internal/middleware/auth/interceptor.go). They tell no content.
_OPEN = frozenset(
    (
        "/admin_v2.API/InspectCluster",
        "/enterprise_v2.API/GetState",
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/Watch",
        "/versionpb_v2.API/GetVersion",
    )
)


class TokenInterceptor(grpc.ServerInterceptor):
    """Refuses calls without one of these tokens, before anything of their requests is read. To be the first one."""

    def __init__(self, tokens: Collection[str]) -> None:
        self._tokens = [each.encode() for each in tokens]

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], "grpc.RpcMethodHandler[Request, Reply] | None"],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Request, Reply] | None":
        if handler_call_details.method in _OPEN:
            return continuation(handler_call_details)
        given = [value for name, value in handler_call_details.invocation_metadata or () if name == METADATA]
        if any(map(self._valid, given)):
            return continuation(handler_call_details)
        return _refusal(_WRONG if any(given) else _MISSING)

    def _valid(self, given: str | bytes) -> bool:
        """Compares with all tokens in a time that does not depend on their characters."""
        text = given.encode() if isinstance(given, str) else given
        return bool(sum(hmac.compare_digest(text, each) for each in self._tokens))


def _refusal(text: str) -> "grpc.RpcMethodHandler[Request, Reply]":
    """A handler that reads nothing and fails with UNAUTHENTICATED."""

    def refuse(request: object, context: grpc.ServicerContext) -> NoReturn:
        context.abort(grpc.StatusCode.UNAUTHENTICATED, text)
        raise AssertionError("abort returns never")

    return method_handler(refuse, (True, True), None, None)
