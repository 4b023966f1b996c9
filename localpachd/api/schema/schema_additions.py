"""The additions of Pachyderm 2.8 to 2.12 to the API of 2.7 that localpachd serves: fields, messages, calls.

Data only: python-pachyderm has the messages of 2.7, and `api.schema` puts these on top. A field is written "type name =
number", a map from strings "map type name = number"; it replaces a field of 2.7 with the same number. Enums are int32,
which has the same encoding. A type without a package is of the package of the message or of the call.
"""

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    # Fields added to messages of 2.7.
    "admin_v2.ClusterInfo": "map string metadata = 9",
    "debug_v2.App": "LokiArgs loki_args = 5; ProfileArgs profile_args = 6",
    "debug_v2.DumpV2Request": "DumpV2Request.Defaults defaults = 5; repeated Starlark starlark_scripts = 6",
    "pfs_v2.BranchInfo": "map string metadata = 7; google.protobuf.Timestamp created_at = 9",
    "pfs_v2.CommitInfo": "map string metadata = 14",
    "pfs_v2.GetFileSetRequest": "int32 type = 2",
    "pfs_v2.ListRepoRequest": "RepoPage page = 3",
    "pfs_v2.ProjectInfo": "map string metadata = 5",
    "pfs_v2.RepoInfo": "map string metadata = 8",
    "pfs_v2.ShardFileSetRequest": "int64 num_files = 2; int64 size_bytes = 3",
    "pps_v2.ClusterDefaults": "CreatePipelineRequest create_pipeline_request = 3",
    "pps_v2.CreatePipelineRequest": "google.protobuf.Duration maximum_expected_uptime = 39",
    "pps_v2.DeletePipelineRequest": "bool must_exist = 5",
    "pps_v2.GetClusterDefaultsResponse": "string cluster_defaults_json = 2",
    "pps_v2.ListPipelineRequest": "PipelinePage page = 7",
    "pps_v2.PipelineInfo": "string user_spec_json = 13; string effective_spec_json = 14; map string metadata = 15",
    "pps_v2.PipelineInfo.Details": "google.protobuf.Duration maximum_expected_uptime = 37; "
    "google.protobuf.Timestamp workers_started_at = 38; google.protobuf.Timestamp updated_at = 39",
    "pps_v2.SetClusterDefaultsRequest": "string cluster_defaults_json = 5",
    "pps_v2.SetClusterDefaultsResponse": "repeated Pipeline affected_pipelines = 2",
    "pps_v2.StopPipelineRequest": "bool must_exist = 2",
    "transaction_v2.TransactionRequest": "pps_v2.CreatePipelineTransaction create_pipeline_v2 = 11",
    # Messages that 2.7 does not have.
    "debug_v2.DumpV2Request.Defaults": "bool cluster_defaults = 1",
    "debug_v2.LokiArgs": "uint64 max_logs = 1",
    "debug_v2.ProfileArgs": "repeated Profile profiles = 1",
    "debug_v2.Starlark": "string builtin = 1; StarlarkLiteral literal = 2; google.protobuf.Duration timeout = 3",
    "debug_v2.StarlarkLiteral": "string name = 1; string program_text = 2",
    "debug_v2.TraceChunk": "google.protobuf.BytesValue content = 1",
    "debug_v2.TraceRequest": "google.protobuf.Duration duration = 1",
    "pfs_v2.BranchPicker": "BranchPicker.BranchName name = 1",
    "pfs_v2.BranchPicker.BranchName": "RepoPicker repo = 1; string name = 2",
    "pfs_v2.CommitPicker": "BranchPicker branch_head = 1; CommitPicker.CommitByGlobalId id = 2; "
    "CommitPicker.AncestorOf ancestor = 3; CommitPicker.BranchRoot branch_root = 4",
    "pfs_v2.CommitPicker.AncestorOf": "uint32 offset = 1; CommitPicker start = 2",
    "pfs_v2.CommitPicker.BranchRoot": "uint32 offset = 1; BranchPicker branch = 2",
    "pfs_v2.CommitPicker.CommitByGlobalId": "RepoPicker repo = 1; string id = 2",
    "pfs_v2.DeleteRepoResponse": "bool deleted = 1",
    "pfs_v2.DropCommitRequest": "Commit commit = 1; bool recursive = 2",
    "pfs_v2.DropCommitResponse": "",
    "pfs_v2.ForgetCommitRequest": "CommitPicker commit = 1",
    "pfs_v2.ForgetCommitResponse": "",
    "pfs_v2.InspectProjectV2Request": "Project project = 1",
    "pfs_v2.InspectProjectV2Response": "ProjectInfo info = 1; string defaults_json = 2",
    "pfs_v2.ProjectPicker": "string name = 1",
    "pfs_v2.RepoPage": "int64 page_size = 2; int64 page_index = 3",
    "pfs_v2.RepoPicker": "RepoPicker.RepoName name = 1",
    "pfs_v2.RepoPicker.RepoName": "ProjectPicker project = 1; string name = 2; string type = 3",
    "pfs_v2.ReposSummary": "Project project = 1; int64 user_repo_count = 2; int64 size_bytes = 3",
    "pfs_v2.ReposSummaryRequest": "repeated ProjectPicker projects = 1",
    "pfs_v2.ReposSummaryResponse": "repeated ReposSummary summaries = 1",
    "pfs_v2.SquashCommitRequest": "Commit commit = 1; bool recursive = 2",
    "pfs_v2.SquashCommitResponse": "",
    "pfs_v2.WalkBranchProvenanceRequest": "repeated BranchPicker start = 1; uint64 max_branches = 2; "
    "uint64 max_depth = 3",
    "pfs_v2.WalkBranchSubvenanceRequest": "repeated BranchPicker start = 1; uint64 max_branches = 2; "
    "uint64 max_depth = 3",
    "pfs_v2.WalkCommitProvenanceRequest": "repeated CommitPicker start = 1; uint64 max_commits = 2; "
    "uint64 max_depth = 3",
    "pfs_v2.WalkCommitSubvenanceRequest": "repeated CommitPicker start = 1; uint64 max_commits = 2; "
    "uint64 max_depth = 3",
    "pps_v2.CheckStatusRequest": "bool all = 1; pfs_v2.Project project = 2",
    "pps_v2.CheckStatusResponse": "pfs_v2.Project project = 1; Pipeline pipeline = 2; repeated string alerts = 3",
    "pps_v2.ContinueCreateDatumRequest": "int32 number = 1",
    "pps_v2.CreateDatumRequest": "StartCreateDatumRequest start = 1; ContinueCreateDatumRequest continue = 2",
    "pps_v2.CreatePipelineTransaction": "CreatePipelineRequest create_pipeline_request = 1; string user_json = 2; "
    "string effective_json = 3; string created_by = 4",
    "pps_v2.CreatePipelineV2Request": "string create_pipeline_request_json = 1; bool dry_run = 2; bool update = 3; "
    "bool reprocess = 4",
    "pps_v2.CreatePipelineV2Response": "string effective_create_pipeline_request_json = 1",
    "pps_v2.GetProjectDefaultsRequest": "pfs_v2.Project project = 1",
    "pps_v2.GetProjectDefaultsResponse": "string project_defaults_json = 1; string created_by = 2; "
    "google.protobuf.Timestamp created_at = 3",
    "pps_v2.PipelinePage": "int64 page_size = 2; int64 page_index = 3",
    "pps_v2.PipelinePicker": "PipelinePicker.PipelineName name = 1",
    "pps_v2.PipelinePicker.PipelineName": "pfs_v2.ProjectPicker project = 1; string name = 2",
    "pps_v2.PipelinesSummary": "pfs_v2.Project project = 1; int64 active_pipelines = 2; int64 paused_pipelines = 3; "
    "int64 failed_pipelines = 4; int64 unhealthy_pipelines = 5",
    "pps_v2.PipelinesSummaryRequest": "repeated pfs_v2.ProjectPicker projects = 1",
    "pps_v2.PipelinesSummaryResponse": "repeated PipelinesSummary summaries = 1",
    "pps_v2.RerunPipelineRequest": "Pipeline pipeline = 1; bool reprocess = 15",
    "pps_v2.SetProjectDefaultsRequest": "pfs_v2.Project project = 1; bool regenerate = 2; bool reprocess = 3; "
    "bool dry_run = 4; string project_defaults_json = 5",
    "pps_v2.SetProjectDefaultsResponse": "repeated Pipeline affected_pipelines = 1",
    "pps_v2.StartCreateDatumRequest": "Input input = 1; int32 number = 2",
    # Packages that 2.7 does not have.
    "cdr.Concat": "repeated Ref refs = 1",
    "cdr.ContentHash": "Ref inner = 1; int32 algo = 2; bytes hash = 3",
    "cdr.HTTP": "string url = 1; map string headers = 2",
    "cdr.Ref": "HTTP http = 1; ContentHash content_hash = 2; Concat concat = 7",
    "logs.AdminLogQuery": "string logql = 1; string pod = 2; PodContainer pod_container = 3; string app = 4; "
    "PipelineLogQuery master = 5; PipelineLogQuery storage = 6; UserLogQuery user = 7",
    "logs.GetLogsRequest": "LogQuery query = 1; LogFilter filter = 2; bool tail = 3; bool want_paging_hint = 4",
    "logs.GetLogsResponse": "PagingHint paging_hint = 1; LogMessage log = 2",
    "logs.JobDatumLogQuery": "string job = 1; string datum = 2",
    "logs.LogFilter": "TimeRangeLogFilter time_range = 1; uint64 limit = 2; RegexLogFilter regex = 3; "
    "int32 level = 4; bool user_logs_only = 5",
    "logs.LogMessage": "VerbatimLogMessage verbatim = 1; google.protobuf.Struct object = 2; "
    "google.protobuf.Timestamp native_timestamp = 3; pps_v2.LogMessage pps_log_message = 4",
    "logs.LogQuery": "UserLogQuery user = 1; AdminLogQuery admin = 2",
    "logs.PagingHint": "GetLogsRequest older = 1; GetLogsRequest newer = 2",
    "logs.PipelineDatumLogQuery": "PipelineLogQuery pipeline = 1; string datum = 2",
    "logs.PipelineJobLogQuery": "PipelineLogQuery pipeline = 1; string job = 2",
    "logs.PipelineLogQuery": "string project = 1; string pipeline = 2",
    "logs.PodContainer": "string pod = 1; string container = 2",
    "logs.RegexLogFilter": "string pattern = 1; bool negate = 2",
    "logs.TimeRangeLogFilter": "google.protobuf.Timestamp from = 1; google.protobuf.Timestamp until = 2; "
    "uint64 offset = 3",
    "logs.UserLogQuery": "string project = 1; PipelineLogQuery pipeline = 2; string datum = 3; string job = 4; "
    "PipelineJobLogQuery pipeline_job = 5; JobDatumLogQuery job_datum = 6; PipelineDatumLogQuery pipeline_datum = 7",
    "logs.VerbatimLogMessage": "bytes line = 1; google.protobuf.Timestamp timestamp = 2",
    "metadata.ClusterPicker": "",
    "metadata.Edit": "pfs_v2.ProjectPicker project = 1; pfs_v2.CommitPicker commit = 2; "
    "pfs_v2.BranchPicker branch = 3; pfs_v2.RepoPicker repo = 4; ClusterPicker cluster = 5; "
    "pps_v2.PipelinePicker pipeline = 6; Edit.Replace replace = 10; Edit.AddKey add_key = 11; "
    "Edit.EditKey edit_key = 12; Edit.DeleteKey delete_key = 13",
    "metadata.Edit.AddKey": "string key = 1; string value = 2",
    "metadata.Edit.DeleteKey": "string key = 1",
    "metadata.Edit.EditKey": "string key = 1; string value = 2",
    "metadata.Edit.Replace": "map string replacement = 1",
    "metadata.EditMetadataRequest": "repeated Edit edits = 1",
    "metadata.EditMetadataResponse": "",
    "storage.AppendFile": "string path = 1; google.protobuf.BytesValue data = 2",
    "storage.ComposeFilesetRequest": "repeated string fileset_ids = 1; int64 ttl_seconds = 2",
    "storage.ComposeFilesetResponse": "string fileset_id = 1",
    "storage.CopyFile": "string fileset_id = 1; string src = 2; string dst = 3",
    "storage.CreateFilesetRequest": "AppendFile append_file = 1; DeleteFile delete_file = 2; CopyFile copy_file = 3",
    "storage.CreateFilesetResponse": "string fileset_id = 1",
    "storage.DeleteFile": "string path = 1",
    "storage.FileFilter": "PathRange path_range = 1; string path_regex = 2",
    "storage.PathRange": "string lower = 1; string upper = 2",
    "storage.ReadFilesetCDRResponse": "string path = 1; cdr.Ref ref = 2",
    "storage.ReadFilesetRequest": "string fileset_id = 1; repeated FileFilter filters = 2; bool empty_files = 3",
    "storage.ReadFilesetResponse": "string path = 1; google.protobuf.BytesValue data = 2",
    "storage.RenewFilesetRequest": "string fileset_id = 1; int64 ttl_seconds = 2",
    "storage.ShardFilesetRequest": "string fileset_id = 1; int64 num_files = 2; int64 size_bytes = 3",
    "storage.ShardFilesetResponse": "repeated PathRange shards = 1",
    # Details of a status, which every gRPC service may send beside its code and text.
    "google.rpc.ResourceInfo": "string resource_type = 1; string resource_name = 2; string owner = 3; "
    "string description = 4",
    "google.rpc.Status": "int32 code = 1; string message = 2; repeated google.protobuf.Any details = 3",
}

CALLS: Mapping[str, Mapping[str, str]] = {
    "": {"pfs_v2.API/DeleteRepo": "DeleteRepoRequest -> DeleteRepoResponse"},
    "2.8": {
        "pfs_v2.API/DropCommit": "DropCommitRequest -> DropCommitResponse",
        "pfs_v2.API/SquashCommit": "SquashCommitRequest -> SquashCommitResponse",
        "pps_v2.API/CreatePipelineV2": "CreatePipelineV2Request -> CreatePipelineV2Response",
        "pps_v2.API/GetClusterDefaults": "GetClusterDefaultsRequest -> GetClusterDefaultsResponse",
        "pps_v2.API/GetProjectDefaults": "GetProjectDefaultsRequest -> GetProjectDefaultsResponse",
        "pps_v2.API/RerunPipeline": "RerunPipelineRequest -> google.protobuf.Empty",
        "pps_v2.API/SetClusterDefaults": "SetClusterDefaultsRequest -> SetClusterDefaultsResponse",
        "pps_v2.API/SetProjectDefaults": "SetProjectDefaultsRequest -> SetProjectDefaultsResponse",
    },
    "2.9": {
        "pfs_v2.API/InspectProjectV2": "InspectProjectV2Request -> InspectProjectV2Response",
        "pps_v2.API/CheckStatus": "CheckStatusRequest -> stream CheckStatusResponse",
        "pps_v2.API/CreateDatum": "stream CreateDatumRequest -> stream DatumInfo",
    },
    "2.10": {
        "debug_v2.Debug/Trace": "TraceRequest -> stream TraceChunk",
        "logs.API/GetLogs": "GetLogsRequest -> stream GetLogsResponse",
        "metadata.API/EditMetadata": "EditMetadataRequest -> EditMetadataResponse",
        "pfs_v2.API/ReposSummary": "ReposSummaryRequest -> ReposSummaryResponse",
        "pfs_v2.API/WalkBranchProvenance": "WalkBranchProvenanceRequest -> stream BranchInfo",
        "pfs_v2.API/WalkBranchSubvenance": "WalkBranchSubvenanceRequest -> stream BranchInfo",
        "pfs_v2.API/WalkCommitProvenance": "WalkCommitProvenanceRequest -> stream CommitInfo",
        "pfs_v2.API/WalkCommitSubvenance": "WalkCommitSubvenanceRequest -> stream CommitInfo",
        "pps_v2.API/PipelinesSummary": "PipelinesSummaryRequest -> PipelinesSummaryResponse",
        "storage.Fileset/CreateFileset": "stream CreateFilesetRequest -> CreateFilesetResponse",
        "storage.Fileset/ReadFileset": "ReadFilesetRequest -> stream ReadFilesetResponse",
        "storage.Fileset/RenewFileset": "RenewFilesetRequest -> google.protobuf.Empty",
        "storage.Fileset/ComposeFileset": "ComposeFilesetRequest -> ComposeFilesetResponse",
        "storage.Fileset/ShardFileset": "ShardFilesetRequest -> ShardFilesetResponse",
    },
    "2.11": {
        "pfs_v2.API/ForgetCommit": "ForgetCommitRequest -> ForgetCommitResponse",
        "storage.Fileset/ReadFilesetCDR": "ReadFilesetRequest -> stream ReadFilesetCDRResponse",
    },
}
"""The added calls, "request -> reply", by the version that added them; "" for calls of 2.7 whose messages changed."""
