"""Logs, searched by origin, text and time."""

import json
from typing import Any, Protocol

import grpc
import pytest

from tests.parity.places import MakeInput, Place, Refusal
from tests.parity.since_2_8.calls import RpcClient


class Search(Protocol):
    """The messages of the lines that a query and filters find."""

    def __call__(self, query: dict[str, Any], **filters: Any) -> list[dict[str, Any]]: ...


@pytest.fixture
def search(rpc: RpcClient) -> Search:
    """See Search."""

    def run(query: dict[str, Any], **filters: Any) -> list[dict[str, Any]]:
        found = rpc.list("logs.API/GetLogs", "GetLogs", "Lines", query=query, filter=filters)
        return [json.loads(each.log.verbatim.line) for each in found]

    return run


def test_lines_are_found_by_origin_text_and_time(
    search: Search, place: Place, pfs: MakeInput, rpc: RpcClient, refusal: Refusal
) -> None:
    repo = place.repo()
    place.put(repo, a="1", b="2")
    pipeline = place.pipeline("for each in /pfs/*/*; do echo said $(basename $each); done", input=pfs(repo))
    commit = place.put(repo, c="3")
    place.job(pipeline, commit)
    of = {"project": "default", "pipeline": pipeline}

    def said(query: dict[str, Any], **filters: Any) -> list[str]:
        return [each["message"] for each in search(query, user_logs_only=True, **filters) if "said" in each["message"]]

    assert sorted(said({"user": {"pipeline": of}})) == ["said a", "said b", "said c"]
    assert said({"user": {"pipeline_job": {"pipeline": of, "job": commit}}}) == ["said c"]
    assert said({"user": {"job": commit}}) == ["said c"]
    (line,) = search({"user": {"job": commit}}, user_logs_only=True, regex={"pattern": "^said"})
    assert (line["pipelineName"], line["jobId"]) == (pipeline, commit)
    assert said({"user": {"datum": line["datumId"], "project": "default"}}) == ["said c"]
    assert len(said({"user": {"pipeline": of}}, limit=2)) == 2
    assert sorted(said({"user": {"pipeline": of}}, regex={"pattern": "c$", "negate": True})) == ["said a", "said b"]
    forwards = said({"user": {"pipeline": of}})
    backwards = said({"user": {"pipeline": of}}, time_range={"from": {"seconds": 1 << 33}, "until": {"seconds": 1}})
    assert backwards == forwards[::-1]
    assert said({"user": {"pipeline": of}}, time_range={"until": {"seconds": 1}}) == []
    masters = search({"admin": {"master": of}})
    assert all(each["master"] for each in masters)
    assert {each["severity"] for each in masters} == {"info"}
    assert search({"admin": {"master": of}}, level=2) == masters
    assert search({"admin": {"master": of}}, level=3) == []
    code, text = refusal(rpc.list, "logs.API/GetLogs", "GetLogs", "Lines", query={"admin": {"logql": "{}"}})
    assert (code, "Loki" in text) == (grpc.StatusCode.UNIMPLEMENTED, True)
    wrong = {"query": {"user": {"pipeline": of}}, "filter": {"regex": {"pattern": "("}}}
    assert "regular expression" in refusal(rpc.list, "logs.API/GetLogs", "GetLogs", "Lines", **wrong)[1]
