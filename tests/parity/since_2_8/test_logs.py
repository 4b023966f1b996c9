"""Logs, searched by what they are about, by text and by time."""

import json
from typing import Any

import grpc
import pytest


@pytest.fixture
def search(rpc: Any) -> Any:
    """The messages of the lines that a search finds."""

    def run(query: dict[str, Any], **filters: Any) -> list[dict[str, Any]]:
        found = rpc.list("logs.API/GetLogs", "GetLogs", "Lines", query=query, filter=filters)
        return [json.loads(each.log.verbatim.line) for each in found]

    return run


def test_lines_are_found_by_what_they_are_about(search, place, pfs, rpc, refused) -> None:
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
    assert all(each["master"] for each in search({"admin": {"master": of}}))
    code, text = refused(rpc.list, "logs.API/GetLogs", "GetLogs", "Lines", query={"admin": {"logql": "{}"}})
    assert (code, "Loki" in text) == (grpc.StatusCode.UNIMPLEMENTED, True)
    wrong = {"query": {"user": {"pipeline": of}}, "filter": {"regex": {"pattern": "("}}}
    assert "regular expression" in refused(rpc.list, "logs.API/GetLogs", "GetLogs", "Lines", **wrong)[1]
