"""The graph of pipelines put together, and its drawings as SVG and Mermaid."""

import re
from typing import Any
from xml.etree import ElementTree

from google.protobuf import json_format
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.jobs.jobs import Job
from pipelines.client.server.connection import Connection
from pipelines.cluster import graph_svg, graph_text
from pipelines.cluster.gpu_waits import PipelineWait
from pipelines.cluster.graph_reader import GraphReader
from pipelines.cluster.pipeline_graph import GraphEdge, GraphNode, PipelineGraph, ProjectState, graph
from pipelines.commands.pipelines.terminal_graph import render_text
from tests.pipelines.stand_ins import create_foreign, deploy_specs, shell_spec

ODD = '<b> & "quoted" #1'


def info(name: str, inputs: dict[str, Any], state: str = "PIPELINE_RUNNING", **details: Any) -> Any:
    document = {"pipeline": {"name": name}, "state": state, "details": {"input": inputs, **details}}
    return json_format.ParseDict(document, pps_pb2.PipelineInfo())


def pfs(repo: str, **fields: Any) -> dict[str, Any]:
    return {"pfs": {"repo": repo, "name": repo, "branch": "master", "glob": "/*", **fields}}


def job(pipeline: str, state: str = "success", processed: int = 1, failed: int = 0, total: int = 2) -> Job:
    return Job(pipeline, "0" * 32, state, processed, total - processed - failed, failed, total, 1.5, "why")


def strange() -> PipelineGraph:
    """Every kind of node and input."""
    gpu = {"gpu": {"type": "nvidia.com/gpu", "number": 2}}
    infos = [
        info("a", pfs("images")),
        info(
            "b", {"cross": [pfs("a", lazy=True), {"union": [pfs("images"), pfs("c", branch="x")]}]}, resource_limits=gpu
        ),
        info("c", {"cron": {"name": "tick", "repo": "c_tick", "spec": "@daily"}}),
        info("d", {"join": [pfs("b"), pfs("far", project="elsewhere")]}, state="PIPELINE_CRASHING"),
        info("serve", pfs("d"), service={"internal_port": 80}),
        info("gone", {}, spout={}),
    ]
    jobs = {"a": job("a"), "b": job("b", "running"), "d": job("d"), "serve": job("serve", "failure", failed=1)}
    waits = {"b": PipelineWait("waiting", f"for a GPU {ODD}"), "d": PipelineWait("crashing", "no image")}
    seen = ProjectState(
        {each.pipeline.name: each for each in infos}, jobs, waits, {"a": 1}, {"images": 2000, "labels": 0, "a": 5}
    )
    return graph("default", seen)


def test_nodes_tell_their_kind_state_and_inputs() -> None:
    found = {node.name: node for node in strange().nodes}
    assert [*found] == ["a", "b", "c", "c_tick", "d", "elsewhere/far", "gone", "images", "labels", "serve"]
    assert [found[name].kind for name in ("a", "c_tick", "elsewhere/far", "gone", "images", "serve")] == [
        "pipeline", "cron", "repo", "spout", "repo", "service",
    ]  # fmt: skip
    assert [found[name].state for name in ("a", "b", "c", "d", "serve", "images")] == [
        "success", "waiting", "running", "crashing", "failure", "",
    ]  # fmt: skip
    assert (found["b"].gpus, found["b"].held, found["images"].bytes, found["labels"].bytes) == (2, 0, 2000, 0)
    assert found["b"].inputs == "a (lazy) × images + c@x"
    assert found["d"].inputs == "join of b, elsewhere/far"
    assert (found["b"].reason, found["serve"].reason) == (f"for a GPU {ODD}", "why")
    assert set(strange().edges) == {
        GraphEdge("images", "a", False, ""), GraphEdge("a", "b", True, "cross"),
        GraphEdge("images", "b", False, "union"), GraphEdge("c", "b", False, "union"),
        GraphEdge("c_tick", "c", False, ""), GraphEdge("b", "d", False, "join"),
        GraphEdge("elsewhere/far", "d", False, "join"), GraphEdge("d", "serve", False, ""),
    }  # fmt: skip


def test_other_peoples_repos_and_pipelines_are_left_out(connection: Connection) -> None:
    for repo in ("images", "labels", "theirs"):
        connection.client.create_repo(repo, project_name=connection.project)
    deploy_specs(connection, shell_spec("ours", "images"))
    create_foreign(connection, shell_spec("their-copy", "theirs"))
    assert [each.name for each in GraphReader(connection).look().nodes] == ["images", "labels", "ours"]


def test_the_terminal_shows_it_in_80_columns() -> None:
    for width in (80, 63):
        lines = render_text(strange(), width).plain.splitlines()
        assert max(map(len, lines)) <= width
        row = next(line for line in lines if " b " in line)
        assert row.split()[-8:] == ["waiting", "1", "1", "0", "2", "1.5", "s", "0/2"]
        assert any(line.endswith("= a (lazy) × images + c@x") for line in lines)
        assert any("no image" in line for line in lines)
    assert render_text(strange(), 80, plain=True).plain.isascii()
    assert "lazy" not in render_text(strange(), 80, notes=False).plain
    assert max(map(len, render_text(strange(), 40).plain.splitlines())) <= 40
    many = PipelineGraph(tuple(GraphNode(f"{'long' * 20}{n}", "pipeline", "success") for n in range(20)), ())
    assert max(map(len, render_text(many, 80).plain.splitlines())) <= 80


def test_the_svg_is_whole_and_holds_every_name() -> None:
    odd = PipelineGraph((*strange().nodes, GraphNode(ODD, "pipeline", "success", reason=ODD)), strange().edges)
    document = ElementTree.fromstring(graph_svg.render(odd, ODD))
    texts = {each.text for each in document.iter() if each.text}
    assert {"a", "b", "serve", "images", ODD} <= texts
    assert not re.search(r"(href|src|url)\s*=|url\((?!#)|<script", graph_svg.render(odd, ODD))
    _, _, width, height = map(float, document.attrib["viewBox"].split())
    for box in document.iter("{http://www.w3.org/2000/svg}rect"):
        if box.attrib.get("class") == "box":
            left, top = float(box.attrib["x"]), float(box.attrib["y"])
            assert 0 <= left < left + float(box.attrib["width"]) <= width
            assert 0 <= top < top + float(box.attrib["height"]) <= height
    ElementTree.fromstring(graph_svg.render(PipelineGraph((), ()), "empty"))


def test_mermaid_has_a_line_for_each_node_and_edge() -> None:
    odd = PipelineGraph((*strange().nodes, GraphNode(ODD, "pipeline", "success")), strange().edges)
    lines = graph_text.mermaid(odd).splitlines()
    assert lines[0] == "flowchart TD"
    node = re.compile(r'  n\d+(\[\("[^"]*"\)\]|\(\["[^"]*"\]\)|\["[^"]*"\])(:::\w+)?')
    edge = re.compile(r"  n\d+ (-->|-\.->)(\|[a-z, ]+\|)? n\d+")
    style = re.compile(r"  classDef \w+ stroke:#[0-9a-f]{6},stroke-width:2px")
    kinds = [[bool(form.fullmatch(line)) for form in (node, edge, style)] for line in lines[1:]]
    assert [sum(column) for column in zip(*kinds, strict=True)] == [11, 8, 4]
    assert any("#lt;b#gt; #amp; #quot;quoted#quot; #35;1" in line for line in lines)
    assert any("-.->|cross, lazy|" in line for line in lines)


def test_counts_and_times_are_short() -> None:
    counts = (0, 9_999, 10_000, 12_345, 99_999, 999_999, 1_234_567, 10**10)
    short = ["0", "9,999", "10k", "12.3k", "99.9k", "999k", "1.2M", "10G"]
    assert [graph_text.short(each) for each in counts] == short
    seconds = (0.04, 99.9, 99.96, 600, 5999, 6000, 359_999, 400_000)
    assert [graph_text.duration(each) for each in seconds] == [
        "0.0 s", "99.9 s", "1:40 m", "10:00 m", "99:59 m", "1:40 h", "99:59 h", "4 d",
    ]  # fmt: skip
