"""A few valid objects of each kind on a server, so that random requests find something. Knows no rule of theirs."""

from localpachd.api.schema.schema import BytesValue, pfs_pb2, pps_pb2
from tests.fuzz.calls import Fuzzer

_REPOS = ("images", "queries")


def furnish(fuzzer: Fuzzer) -> None:
    """Makes what is missing, in one project or two, and lets the fuzzer learn its names. Refusals do not matter: random
    calls change the server at the same time."""
    default = pfs_pb2.Project(name="default")
    fuzzer.call("pfs_v2.API/CreateProject", [pfs_pb2.CreateProjectRequest(project=default)])
    fuzzer.call("pfs_v2.API/CreateProject", [pfs_pb2.CreateProjectRequest(project=pfs_pb2.Project(name="other"))])
    for name in _REPOS:
        repo = pfs_pb2.Repo(name=name, type="user", project=default)
        fuzzer.call("pfs_v2.API/CreateRepo", [pfs_pb2.CreateRepoRequest(repo=repo)])
        branch = pfs_pb2.Branch(repo=repo, name="master")
        commit = pfs_pb2.Commit(repo=repo, branch=branch)
        put = [
            pfs_pb2.ModifyFileRequest(set_commit=commit),
            *(
                pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path=path, raw=BytesValue(value=path.encode())))
                for path in ("/a", "/b/c", "/b/d")
            ),
        ]
        fuzzer.call("pfs_v2.API/ModifyFile", put)
        fuzzer.call("pfs_v2.API/InspectCommit", [pfs_pb2.InspectCommitRequest(commit=commit)])
        fuzzer.call("pfs_v2.API/ListFile", [pfs_pb2.ListFileRequest(file=pfs_pb2.File(commit=commit, path="/"))])
    for name, source in (("copy", "images"), ("again", "copy")):
        pipeline = pps_pb2.Pipeline(name=name, project=default)
        read = pps_pb2.PFSInput(repo=source, project="default", branch="master", glob="/*", name=source)
        made = pps_pb2.CreatePipelineRequest(
            pipeline=pipeline,
            transform=pps_pb2.Transform(cmd=["sh"], stdin=[f"cp -r /pfs/{source}/* /pfs/out/"]),
            input=pps_pb2.Input(pfs=read),
        )
        fuzzer.call("pps_v2.API/CreatePipeline", [made])
        fuzzer.call("pps_v2.API/ListJob", [pps_pb2.ListJobRequest(pipeline=pipeline)])
        fuzzer.call("pps_v2.API/InspectPipeline", [pps_pb2.InspectPipelineRequest(pipeline=pipeline)])
