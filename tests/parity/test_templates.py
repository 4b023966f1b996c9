"""RenderTemplate: Jsonnet with string arguments."""

import json
from urllib.parse import urlsplit

import grpc
import pytest
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

EDGES = """
function(suffix, src="images")
{
  pipeline: { name: "edges-" + suffix },
  description: "OpenCV edge detection on " + src,
  input: { pfs: { name: "images", glob: "/*", repo: src } },
  transform: { cmd: [ "python3", "/edges.py" ], image: "pachyderm/opencv:1.0" },
}
"""


@pytest.fixture
def render(pachd):
    """RenderTemplate; python-pachyderm has no method for it."""
    with grpc.insecure_channel(urlsplit(pachd.address).netloc) as channel:
        stub = pps_pb2_grpc.APIStub(channel)

        def rendered(template: str, **arguments: str) -> pps_pb2.RenderTemplateResponse:
            return stub.RenderTemplate(pps_pb2.RenderTemplateRequest(template=template, args=arguments))

        yield rendered


def _refusal(call, *arguments, **fields) -> str:
    with pytest.raises(grpc.RpcError) as refused:
        call(*arguments, **fields)
    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    return refused.value.details()


def test_a_function_of_its_arguments(render) -> None:
    reply = render(EDGES, suffix="1", src="pictures")
    spec = json.loads(reply.json)
    assert spec["pipeline"] == {"name": "edges-1"}
    assert spec["input"]["pfs"] == {"name": "images", "glob": "/*", "repo": "pictures"}
    (parsed,) = reply.specs
    assert (parsed.pipeline.name, parsed.description) == ("edges-1", "OpenCV edge detection on pictures")
    assert json.loads(render(EDGES, suffix="2").json)["input"]["pfs"]["repo"] == "images"


def test_arguments_are_strings(render) -> None:
    assert json.loads(render("function(n) {description: std.type(n) + n}", n="1").json) == {"description": "string1"}


def test_a_list_and_a_value(render) -> None:
    reply = render('[{ pipeline: { name: "p%d" % n } } for n in std.range(1, 3)]')
    assert [each.pipeline.name for each in reply.specs] == ["p1", "p2", "p3"]
    assert render("{}").json.strip() == "{ }"


def test_failures_say_where(render) -> None:
    assert _refusal(render, EDGES).startswith("template err: RUNTIME ERROR: Missing argument: suffix")
    assert _refusal(render, "{ a: ").startswith("template err: main:1:")
    assert "boom" in _refusal(render, 'error "boom"')
    assert "max stack frames exceeded" in _refusal(render, "local f(x) = f(x + 1); f(0)")
    assert _refusal(render, "3").startswith("not a json object or list: 3")


def test_files_of_the_server_are_not_there(render) -> None:
    for what in ('import "/etc/passwd"', 'importstr "/etc/passwd"', 'importstr "file:///etc/passwd"'):
        text = _refusal(render, what)
        assert text.startswith("template err: ")
        assert "root:" not in text
