"""What Pachyderm 2.8 to 2.12 added to the API of 2.7, as far as localpachd speaks it: fields, messages, calls.

Data only: python-pachyderm's messages are those of 2.7, and `api.schema` puts these on top. A field is written
"type name = number"; it takes the place of what 2.7 may have had under its number.
"""

from collections.abc import Mapping
from dataclasses import dataclass

EMPTY = "google.protobuf.Empty"


@dataclass(frozen=True, slots=True)
class Call:
    """A call by the version that brought it ("" for one of 2.7 whose messages changed) and the full names of its
    messages, and whether either is a stream."""

    since: str
    request: str
    reply: str
    streamed_request: bool = False
    streamed_reply: bool = False


MESSAGES: Mapping[str, str] = {
    # Fields added to messages of 2.7.
    "pfs_v2.BranchInfo": "google.protobuf.Timestamp created_at = 9",
    "pfs_v2.GetFileSetRequest": "int32 type = 2",
    "pfs_v2.ListRepoRequest": "pfs_v2.RepoPage page = 3",
    "pfs_v2.ShardFileSetRequest": "int64 num_files = 2; int64 size_bytes = 3",
    "pps_v2.ClusterDefaults": "pps_v2.CreatePipelineRequest create_pipeline_request = 3",
    "pps_v2.CreatePipelineRequest": "google.protobuf.Duration maximum_expected_uptime = 39",
    "pps_v2.DeletePipelineRequest": "bool must_exist = 5",
    "pps_v2.GetClusterDefaultsResponse": "string cluster_defaults_json = 2",
    "pps_v2.ListPipelineRequest": "pps_v2.PipelinePage page = 7",
    "pps_v2.PipelineInfo": "string user_spec_json = 13; string effective_spec_json = 14",
    "pps_v2.PipelineInfo.Details": "google.protobuf.Duration maximum_expected_uptime = 37; "
    "google.protobuf.Timestamp workers_started_at = 38; google.protobuf.Timestamp updated_at = 39",
    "pps_v2.SetClusterDefaultsRequest": "string cluster_defaults_json = 5",
    "pps_v2.SetClusterDefaultsResponse": "repeated pps_v2.Pipeline affected_pipelines = 2",
    "pps_v2.StopPipelineRequest": "bool must_exist = 2",
    "transaction_v2.TransactionRequest": "pps_v2.CreatePipelineTransaction create_pipeline_v2 = 11",
    # Messages that 2.7 does not have.
    "pfs_v2.BranchPicker": "pfs_v2.BranchPicker.BranchName name = 1",
    "pfs_v2.BranchPicker.BranchName": "pfs_v2.RepoPicker repo = 1; string name = 2",
    "pfs_v2.CommitPicker": "pfs_v2.BranchPicker branch_head = 1; pfs_v2.CommitPicker.CommitByGlobalId id = 2; "
    "pfs_v2.CommitPicker.AncestorOf ancestor = 3; pfs_v2.CommitPicker.BranchRoot branch_root = 4",
    "pfs_v2.CommitPicker.AncestorOf": "uint32 offset = 1; pfs_v2.CommitPicker start = 2",
    "pfs_v2.CommitPicker.BranchRoot": "uint32 offset = 1; pfs_v2.BranchPicker branch = 2",
    "pfs_v2.CommitPicker.CommitByGlobalId": "pfs_v2.RepoPicker repo = 1; string id = 2",
    "pfs_v2.DeleteRepoResponse": "bool deleted = 1",
    "pfs_v2.DropCommitRequest": "pfs_v2.Commit commit = 1; bool recursive = 2",
    "pfs_v2.DropCommitResponse": "",
    "pfs_v2.ForgetCommitRequest": "pfs_v2.CommitPicker commit = 1",
    "pfs_v2.ForgetCommitResponse": "",
    "pfs_v2.InspectProjectV2Request": "pfs_v2.Project project = 1",
    "pfs_v2.InspectProjectV2Response": "pfs_v2.ProjectInfo info = 1; string defaults_json = 2",
    "pfs_v2.ProjectPicker": "string name = 1",
    "pfs_v2.RepoPage": "int64 page_size = 2; int64 page_index = 3",
    "pfs_v2.RepoPicker": "pfs_v2.RepoPicker.RepoName name = 1",
    "pfs_v2.RepoPicker.RepoName": "pfs_v2.ProjectPicker project = 1; string name = 2; string type = 3",
    "pfs_v2.ReposSummary": "pfs_v2.Project project = 1; int64 user_repo_count = 2; int64 size_bytes = 3",
    "pfs_v2.ReposSummaryRequest": "repeated pfs_v2.ProjectPicker projects = 1",
    "pfs_v2.ReposSummaryResponse": "repeated pfs_v2.ReposSummary summaries = 1",
    "pfs_v2.SquashCommitRequest": "pfs_v2.Commit commit = 1; bool recursive = 2",
    "pfs_v2.SquashCommitResponse": "",
    "pfs_v2.WalkBranchProvenanceRequest": "repeated pfs_v2.BranchPicker start = 1; uint64 max_branches = 2; "
    "uint64 max_depth = 3",
    "pfs_v2.WalkBranchSubvenanceRequest": "repeated pfs_v2.BranchPicker start = 1; uint64 max_branches = 2; "
    "uint64 max_depth = 3",
    "pfs_v2.WalkCommitProvenanceRequest": "repeated pfs_v2.CommitPicker start = 1; uint64 max_commits = 2; "
    "uint64 max_depth = 3",
    "pfs_v2.WalkCommitSubvenanceRequest": "repeated pfs_v2.CommitPicker start = 1; uint64 max_commits = 2; "
    "uint64 max_depth = 3",
    "pps_v2.CheckStatusRequest": "bool all = 1; pfs_v2.Project project = 2",
    "pps_v2.CheckStatusResponse": "pfs_v2.Project project = 1; pps_v2.Pipeline pipeline = 2; "
    "repeated string alerts = 3",
    "pps_v2.ContinueCreateDatumRequest": "int32 number = 1",
    "pps_v2.CreateDatumRequest": "pps_v2.StartCreateDatumRequest start = 1; "
    "pps_v2.ContinueCreateDatumRequest continue = 2",
    "pps_v2.CreatePipelineTransaction": "pps_v2.CreatePipelineRequest create_pipeline_request = 1; "
    "string user_json = 2; string effective_json = 3; string created_by = 4",
    "pps_v2.CreatePipelineV2Request": "string create_pipeline_request_json = 1; bool dry_run = 2; bool update = 3; "
    "bool reprocess = 4",
    "pps_v2.CreatePipelineV2Response": "string effective_create_pipeline_request_json = 1",
    "pps_v2.GetProjectDefaultsRequest": "pfs_v2.Project project = 1",
    "pps_v2.GetProjectDefaultsResponse": "string project_defaults_json = 1; string created_by = 2; "
    "google.protobuf.Timestamp created_at = 3",
    "pps_v2.PipelinePage": "int64 page_size = 2; int64 page_index = 3",
    "pps_v2.PipelinesSummary": "pfs_v2.Project project = 1; int64 active_pipelines = 2; int64 paused_pipelines = 3; "
    "int64 failed_pipelines = 4; int64 unhealthy_pipelines = 5",
    "pps_v2.PipelinesSummaryRequest": "repeated pfs_v2.ProjectPicker projects = 1",
    "pps_v2.PipelinesSummaryResponse": "repeated pps_v2.PipelinesSummary summaries = 1",
    "pps_v2.RerunPipelineRequest": "pps_v2.Pipeline pipeline = 1; bool reprocess = 15",
    "pps_v2.SetProjectDefaultsRequest": "pfs_v2.Project project = 1; bool regenerate = 2; bool reprocess = 3; "
    "bool dry_run = 4; string project_defaults_json = 5",
    "pps_v2.SetProjectDefaultsResponse": "repeated pps_v2.Pipeline affected_pipelines = 1",
    "pps_v2.StartCreateDatumRequest": "pps_v2.Input input = 1; int32 number = 2",
}

CALLS: Mapping[str, Mapping[str, Call]] = {
    "pfs_v2.API": {
        "DeleteRepo": Call("", "pfs_v2.DeleteRepoRequest", "pfs_v2.DeleteRepoResponse"),
        "DropCommit": Call("2.8", "pfs_v2.DropCommitRequest", "pfs_v2.DropCommitResponse"),
        "ForgetCommit": Call("2.11", "pfs_v2.ForgetCommitRequest", "pfs_v2.ForgetCommitResponse"),
        "InspectProjectV2": Call("2.9", "pfs_v2.InspectProjectV2Request", "pfs_v2.InspectProjectV2Response"),
        "ReposSummary": Call("2.10", "pfs_v2.ReposSummaryRequest", "pfs_v2.ReposSummaryResponse"),
        "SquashCommit": Call("2.8", "pfs_v2.SquashCommitRequest", "pfs_v2.SquashCommitResponse"),
        "WalkBranchProvenance": Call(
            "2.10", "pfs_v2.WalkBranchProvenanceRequest", "pfs_v2.BranchInfo", streamed_reply=True
        ),
        "WalkBranchSubvenance": Call(
            "2.10", "pfs_v2.WalkBranchSubvenanceRequest", "pfs_v2.BranchInfo", streamed_reply=True
        ),
        "WalkCommitProvenance": Call(
            "2.10", "pfs_v2.WalkCommitProvenanceRequest", "pfs_v2.CommitInfo", streamed_reply=True
        ),
        "WalkCommitSubvenance": Call(
            "2.10", "pfs_v2.WalkCommitSubvenanceRequest", "pfs_v2.CommitInfo", streamed_reply=True
        ),
    },
    "pps_v2.API": {
        "CheckStatus": Call("2.9", "pps_v2.CheckStatusRequest", "pps_v2.CheckStatusResponse", streamed_reply=True),
        "CreateDatum": Call(
            "2.9", "pps_v2.CreateDatumRequest", "pps_v2.DatumInfo", streamed_request=True, streamed_reply=True
        ),
        "CreatePipelineV2": Call("2.8", "pps_v2.CreatePipelineV2Request", "pps_v2.CreatePipelineV2Response"),
        "GetClusterDefaults": Call("2.8", "pps_v2.GetClusterDefaultsRequest", "pps_v2.GetClusterDefaultsResponse"),
        "GetProjectDefaults": Call("2.8", "pps_v2.GetProjectDefaultsRequest", "pps_v2.GetProjectDefaultsResponse"),
        "PipelinesSummary": Call("2.10", "pps_v2.PipelinesSummaryRequest", "pps_v2.PipelinesSummaryResponse"),
        "RerunPipeline": Call("2.8", "pps_v2.RerunPipelineRequest", EMPTY),
        "SetClusterDefaults": Call("2.8", "pps_v2.SetClusterDefaultsRequest", "pps_v2.SetClusterDefaultsResponse"),
        "SetProjectDefaults": Call("2.8", "pps_v2.SetProjectDefaultsRequest", "pps_v2.SetProjectDefaultsResponse"),
    },
}
"""The calls added, and those whose messages changed, by service."""
