"""RenderTemplate: Jsonnet with string arguments."""

import json
from typing import Protocol

import grpc
import pytest
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

from tests.parity.places import Refusal

EDGES = """
function(suffix, src="images")
{
  pipeline: { name: "edges-" + suffix },
  description: "OpenCV edge detection on " + src,
  input: { pfs: { name: "images", glob: "/*", repo: src } },
  transform: { cmd: [ "python3", "/edges.py" ], image: "pachyderm/opencv:1.0" },
}
"""


class Render(Protocol):
    """RenderTemplate, for which python-pachyderm has no method."""

    def __call__(self, template: str, **arguments: str) -> pps_pb2.RenderTemplateResponse: ...


@pytest.fixture
def render(pps_stub: pps_pb2_grpc.APIStub) -> Render:
    """See Render."""

    def rendered(template: str, **arguments: str) -> pps_pb2.RenderTemplateResponse:
        return pps_stub.RenderTemplate(pps_pb2.RenderTemplateRequest(template=template, args=arguments))

    return rendered


def test_a_function_of_its_arguments(render: Render) -> None:
    reply = render(EDGES, suffix="1", src="pictures")
    spec = json.loads(reply.json)
    assert spec["pipeline"] == {"name": "edges-1"}
    assert spec["input"]["pfs"] == {"name": "images", "glob": "/*", "repo": "pictures"}
    (parsed,) = reply.specs
    assert (parsed.pipeline.name, parsed.description) == ("edges-1", "OpenCV edge detection on pictures")
    assert json.loads(render(EDGES, suffix="2").json)["input"]["pfs"]["repo"] == "images"


def test_arguments_are_strings(render: Render) -> None:
    assert json.loads(render("function(n) {description: std.type(n) + n}", n="1").json) == {"description": "string1"}


def test_a_list_and_a_value(render: Render) -> None:
    reply = render('[{ pipeline: { name: "p%d" % n } } for n in std.range(1, 3)]')
    assert [each.pipeline.name for each in reply.specs] == ["p1", "p2", "p3"]
    assert render("{}").json.strip() == "{ }"


def test_failures_say_where(render: Render, refusal: Refusal) -> None:
    def said(template: str) -> str:
        code, text = refusal(render, template)
        assert code is grpc.StatusCode.UNKNOWN
        return text

    assert said(EDGES).startswith("template err: RUNTIME ERROR: Missing argument: suffix")
    assert said("{ a: ").startswith("template err: main:1:")
    assert "boom" in said('error "boom"')
    assert "max stack frames exceeded" in said("local f(x) = f(x + 1); f(0)")
    assert said("3").startswith("not a json object or list: 3")


def test_files_of_the_server_cannot_be_imported(render: Render, refusal: Refusal) -> None:
    for template in ('import "/etc/passwd"', 'importstr "/etc/passwd"', 'importstr "file:///etc/passwd"'):
        _, text = refusal(render, template)
        assert text.startswith("template err: ")
        assert "root:" not in text
