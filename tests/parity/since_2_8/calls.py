"""A client for the calls that came after 2.7: python-pachyderm has none of them. Their messages are written down here a
second time, from Pachyderm's documentation, so that a slip in the server's schema is noticed."""

import re
from collections.abc import Iterator
from typing import Any

import grpc
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
    "CreatePipelineTransaction": "string user_json = 2; string effective_json = 3",
    "TransactionRequest": "CreatePipelineTransaction create_pipeline_v2 = 11",
    "Transaction": "string id = 1",
    "TransactionInfo": "Transaction transaction = 1; repeated TransactionRequest requests = 2",
    "Empty": "",
    "ProjectPicker": "string name = 1",
    "RepoName": "ProjectPicker project = 1; string name = 2; string type = 3",
    "RepoPicker": "RepoName name = 1",
    "BranchName": "RepoPicker repo = 1; string name = 2",
    "BranchPicker": "BranchName name = 1",
    "OneOfSet": "RepoPicker repo = 1; string id = 2",
    "AncestorOf": "uint32 offset = 1; CommitPicker start = 2",
    "BranchRoot": "uint32 offset = 1; BranchPicker branch = 2",
    "CommitPicker": "BranchPicker branch_head = 1; OneOfSet id = 2; AncestorOf ancestor = 3; "
    "BranchRoot branch_root = 4",
    "PipelineName": "ProjectPicker project = 1; string name = 2",
    "PipelinePicker": "PipelineName name = 1",
    "Pair": "string key = 1; string value = 2",
    "Noted": "repeated Pair metadata = 5",
    "InspectCommit": "Commit commit = 1; int32 wait = 2",
    "CommitInfo": "Commit commit = 1; repeated Pair metadata = 14",
    "Branch": "Repo repo = 1; string name = 2",
    "InspectBranch": "Branch branch = 1",
    "BranchInfo": "Branch branch = 1; repeated Pair metadata = 7",
    "InspectRepo": "Repo repo = 1",
    "RepoInfo": "Repo repo = 1; repeated Pair metadata = 8",
    "NotedPipeline": "repeated Pair metadata = 15",
    "ClusterInfo": "string id = 1; repeated Pair metadata = 9",
    "WalkCommits": "repeated CommitPicker start = 1; uint64 max_commits = 2; uint64 max_depth = 3",
    "WalkBranches": "repeated BranchPicker start = 1; uint64 max_branches = 2; uint64 max_depth = 3",
    "Forget": "CommitPicker commit = 1",
    "Replace": "repeated Pair replacement = 1",
    "Edit": "ProjectPicker project = 1; CommitPicker commit = 2; BranchPicker branch = 3; RepoPicker repo = 4; "
    "Empty cluster = 5; PipelinePicker pipeline = 6; Replace replace = 10; Pair add_key = 11; Pair edit_key = 12; "
    "Pair delete_key = 13",
    "Edits": "repeated Edit edits = 1",
    "PipelineQuery": "string project = 1; string pipeline = 2",
    "PipelineJobQuery": "PipelineQuery pipeline = 1; string job = 2",
    "UserQuery": "string project = 1; PipelineQuery pipeline = 2; string datum = 3; string job = 4; "
    "PipelineJobQuery pipeline_job = 5",
    "AdminQuery": "string logql = 1; PipelineQuery master = 5",
    "LogQuery": "UserQuery user = 1; AdminQuery admin = 2",
    "Time": "int64 seconds = 1; int32 nanos = 2",
    "TimeRange": "Time from = 1; Time until = 2; uint64 offset = 3",
    "Regex": "string pattern = 1; bool negate = 2",
    "LogFilter": "TimeRange time_range = 1; uint64 limit = 2; Regex regex = 3; int32 level = 4; "
    "bool user_logs_only = 5",
    "GetLogs": "LogQuery query = 1; LogFilter filter = 2",
    "Verbatim": "bytes line = 1; Time timestamp = 2",
    "Line": "Verbatim verbatim = 1",
    "Lines": "Line log = 2",
}
_FIELD = re.compile(r"(repeated )?(\w+) (\w+) = (\d+)")
_Field = descriptor_pb2.FieldDescriptorProto


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="since_2_8.proto", syntax="proto3")
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


class RpcClient:
    """Calls by name, with messages by the names above: `call("pps_v2.API/StopPipeline", "Stop", "Empty", ...)`. The
    messages are built at run time, so no type checker knows their fields. `transaction` is the id of the transaction
    that the calls belong to, "" if there is none."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel
        self.transaction = ""
        self.messages = _classes()

    def call(self, method: str, request: str, reply: str, **fields: Any) -> Any:
        """Sends one message; returns the reply."""
        call: grpc.UnaryUnaryMultiCallable[Any, Any] = self._channel.unary_unary(
            f"/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=self.messages[reply].FromString,
        )
        header = (("pach-transaction", self.transaction),) if self.transaction else ()
        return call(self.messages[request](**fields), metadata=header)

    def stream(self, method: str, requests: Iterator[Any], reply: str) -> Iterator[Any]:
        """Sends messages; returns the stream of replies."""
        call: grpc.StreamStreamMultiCallable[Any, Any] = self._channel.stream_stream(
            f"/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=self.messages[reply].FromString,
        )
        replies: Iterator[Any] = call(requests)
        return replies

    def list(self, method: str, request: str, reply: str, **fields: Any) -> list[Any]:
        """Sends one message; returns all replies."""
        call: grpc.UnaryStreamMultiCallable[Any, Any] = self._channel.unary_stream(
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
        """InspectPipeline, with the fields added since 2.7."""
        return self.call(
            "pps_v2.API/InspectPipeline", "Inspect", "PipelineInfo", pipeline={"name": pipeline}, details=True
        )
