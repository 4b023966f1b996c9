"""The token that callers must send, as Pachyderm's clients send theirs: an interceptor that refuses all other calls.

Knows no service by name, except for those that Pachyderm answers without a token.
"""

import hmac
from collections.abc import Callable, Collection

import grpc

from localpachd.api.calls.handlers import AnyHandler, refusal

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
        continuation: "Callable[[grpc.HandlerCallDetails], AnyHandler | None]",
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "AnyHandler | None":
        if handler_call_details.method in _OPEN:
            return continuation(handler_call_details)
        given = [value for name, value in handler_call_details.invocation_metadata or () if name == METADATA]
        if any(map(self._valid, given)):
            return continuation(handler_call_details)
        return refusal(grpc.StatusCode.UNAUTHENTICATED, _WRONG if any(given) else _MISSING)

    def _valid(self, given: str | bytes) -> bool:
        """Compares with all tokens in a time that does not depend on their characters."""
        text = given.encode() if isinstance(given, str) else given
        return bool(sum(hmac.compare_digest(text, each) for each in self._tokens))
