"""A client for the calls that came after 2.7: python-pachyderm has none of them. What is written here of their messages
is written a second time, from Pachyderm's documentation, so that a slip in the server's is noticed."""

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_MESSAGES = {
    "Project": "string name = 1",
    "Repo": "string name = 1; string type = 2; Project project = 3",
    "Pipeline": "string name = 1; Project project = 2",
    "Pipelines": "repeated Pipeline affected_pipelines = 1",
    "ClusterPipelines": "repeated Pipeline affected_pipelines = 2",
    "CreatePipelineV2": "string create_pipeline_request_json = 1; bool dry_run = 2; bool update = 3; "
    "bool reprocess = 4",
    "Effective": "string effective_create_pipeline_request_json = 1",
    "Rerun": "Pipeline pipeline = 1; bool reprocess = 15",
    "Stop": "Pipeline pipeline = 1; bool must_exist = 2",
    "Delete": "Pipeline pipeline = 1; bool must_exist = 5",
    "PipelineInfo": "Pipeline pipeline = 1; uint64 version = 2; string user_spec_json = 13; "
    "string effective_spec_json = 14",
    "Inspect": "Pipeline pipeline = 1; bool details = 2",
    "ClusterDefaults": "string cluster_defaults_json = 2",
    "SetClusterDefaults": "bool regenerate = 2; bool reprocess = 3; bool dry_run = 4; string cluster_defaults_json = 5",
    "ProjectDefaults": "string project_defaults_json = 1",
    "SetProjectDefaults": "Project project = 1; bool regenerate = 2; bool reprocess = 3; bool dry_run = 4; "
    "string project_defaults_json = 5",
    "OfProject": "Project project = 1",
    "ProjectInfo": "Project project = 1; string description = 2",
    "InspectedProject": "ProjectInfo info = 1; string defaults_json = 2",
    "Commit": "string id = 2; Repo repo = 3",
    "RemoveCommit": "Commit commit = 1; bool recursive = 2",
    "DeleteRepo": "Repo repo = 1; bool force = 2",
    "Deleted": "bool deleted = 1",
    "PfsInput": "string repo = 2; string glob = 5",
    "Input": "PfsInput pfs = 1",
    "Start": "Input input = 1; int32 number = 2",
    "Continue": "int32 number = 1",
    "CreateDatum": "Start start = 1; Continue continue = 2",
    "Datum": "string id = 2",
    "DatumInfo": "Datum datum = 1; int32 state = 2",
    "Page": "int64 page_size = 2; int64 page_index = 3",
    "ListPipeline": "repeated Project projects = 6; Page page = 7",
    "Summaries": "repeated Project projects = 1",
    "PipelinesSummary": "Project project = 1; int64 active_pipelines = 2; int64 paused_pipelines = 3; "
    "int64 failed_pipelines = 4; int64 unhealthy_pipelines = 5",
    "PipelinesSummaries": "repeated PipelinesSummary summaries = 1",
    "ReposSummary": "Project project = 1; int64 user_repo_count = 2; int64 size_bytes = 3",
    "ReposSummaries": "repeated ReposSummary summaries = 1",
    "Empty": "",
}
_FIELD = re.compile(r"(repeated )?(\w+) (\w+) = (\d+)")
_Field = descriptor_pb2.FieldDescriptorProto


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="newer.proto", syntax="proto3")
    for name, text in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for repeated, kind, field, number in _FIELD.findall(text):
            made = message.field.add(name=field, number=int(number))
            made.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
            if kind in _MESSAGES:
                made.type, made.type_name = _Field.TYPE_MESSAGE, f".{kind}"
            else:
                made.type = _Field.Type.Value(f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return {name: factory.GetPrototype(pool.FindMessageTypeByName(name)) for name in _MESSAGES}


class Newer:
    """Calls by name, with messages by the names above: `call("pps_v2.API/StopPipeline", "Stop", "Empty", ...)`."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel
        self.messages = _classes()

    def call(self, method: str, request: str, reply: str, **fields: Any) -> Any:
        """One message there, one message back."""
        call = self._channel.unary_unary(
            f"/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=self.messages[reply].FromString,
        )
        return call(self.messages[request](**fields))

    def stream(self, method: str, requests: Iterator[Any], reply: str) -> Any:
        """Messages there, messages back."""
        call = self._channel.stream_stream(
            f"/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=self.messages[reply].FromString,
        )
        return call(requests)

    def list(self, method: str, request: str, reply: str, **fields: Any) -> list[Any]:
        """One message there, messages back."""
        call = self._channel.unary_stream(
            f"/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=self.messages[reply].FromString,
        )
        return list(call(self.messages[request](**fields)))

    def create(self, spec: str, **orders: bool) -> str:
        """CreatePipelineV2; returns the effective specification."""
        reply = self.call(
            "pps_v2.API/CreatePipelineV2", "CreatePipelineV2", "Effective", create_pipeline_request_json=spec, **orders
        )
        text: str = reply.effective_create_pipeline_request_json
        return text

    def inspect(self, pipeline: str) -> Any:
        """InspectPipeline, with what came later."""
        return self.call(
            "pps_v2.API/InspectPipeline", "Inspect", "PipelineInfo", pipeline={"name": pipeline}, details=True
        )


@pytest.fixture(scope="session")
def newer(pachd: Any) -> Iterator[Newer]:
    """A client of the newer calls; skips where the server is a Pachyderm without them."""
    with grpc.insecure_channel(urlsplit(pachd.address).netloc) as channel:
        client = Newer(channel)
        try:
            client.call("pps_v2.API/GetClusterDefaults", "Empty", "ClusterDefaults")
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                pytest.skip("the server is a Pachyderm from before 2.8")
            raise
        yield client


@pytest.fixture
def refused() -> Callable[..., tuple[grpc.StatusCode, str]]:
    """The code and text with which a call is refused."""

    def refusal(call: Callable[..., Any], *arguments: Any, **fields: Any) -> tuple[grpc.StatusCode, str]:
        with pytest.raises(grpc.RpcError) as raised:
            call(*arguments, **fields)
        return raised.value.code(), raised.value.details()

    return refusal
