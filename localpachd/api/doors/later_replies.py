"""The replies of Pachyderm 2.12 that differ from those of 2.7, which the services give: an interceptor for both kinds.

2.12 names the branch of a commit only where another object refers to it, as provenance and children do, and lists repos
in the order in which they were made: commits.go:874 and repos.go:260 in src/internal/pfsdb of the branch 2.12.x
(7ed6c9f7b9).
"""

from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.message import Message

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.calls.handlers import AnyHandler, CallInterceptor, replaced, serialized

_COMMITS = {
    "pfs_v2.Commit": ("",),
    "pfs_v2.CommitInfo": ("commit", "parent_commit"),
    "pfs_v2.BranchInfo": ("head",),
    "pfs_v2.FindCommitsResponse": ("found_commit", "last_searched_commit"),
}
"""The commits in each kind of reply whose branches are not named; "" for the reply itself."""

_CALLS = frozenset(
    f"pfs_v2.API/{call}"
    for call in (
        "StartCommit", "InspectCommit", "ListCommit", "SubscribeCommit", "InspectCommitSet", "ListCommitSet",
        "FindCommits", "InspectBranch", "ListBranch", "WalkCommitProvenance", "WalkCommitSubvenance",
    )
)  # fmt: skip


class LaterReplies(CallInterceptor):
    """Gives the replies of 2.12. Those about files, which may be many, name branches as before."""

    def around(self, handler: AnyHandler, method: str) -> AnyHandler:
        if method == "pfs_v2.API/ListRepo":
            return replaced(handler, _in_order(handler.unary_stream))
        return serialized(handler, _without_branches) if method in _CALLS else handler


def _in_order(inner: Any) -> Callable[[Any, CallContext], Iterator[Any]]:
    def behaviour(request: Any, context: CallContext) -> Iterator[Any]:
        found = list(inner(request, context))
        return iter(found if request.HasField("page") else found[::-1])

    return behaviour


def _without_branches(reply: Any) -> Any:
    if isinstance(reply, Message):
        if reply.DESCRIPTOR.full_name == "pfs_v2.CommitSetInfo":
            for each in reply.commits:  # type: ignore[attr-defined]
                _without_branches(each)
        for field in _COMMITS.get(reply.DESCRIPTOR.full_name, ()):
            if not field or reply.HasField(field):
                (getattr(reply, field) if field else reply).ClearField("branch")
    return reply
