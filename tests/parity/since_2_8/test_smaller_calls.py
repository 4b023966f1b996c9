"""The smaller calls that came after 2.7: deleting repos, datums created on demand, pages, summaries."""

import json

import grpc
import pytest
from python_pachyderm import Client

from tests.parity.places import ByVersion, MakeInput, Place, Refusal
from tests.parity.since_2_8.calls import RpcClient


def test_deleting_a_repo_reports_whether_it_existed(rpc: RpcClient, client: Client, place: Place) -> None:
    name = place.unique("r")
    client.create_repo(name)
    for there in (True, False):
        reply = rpc.call("pfs_v2.API/DeleteRepo", "DeleteRepo", "Deleted", repo={"name": name, "type": "user"})
        assert reply.deleted is there


@pytest.mark.parametrize(("numbers", "batches"), [((2, 2, 2), (2, 2, 1)), ((5,), (5,)), ((9,), (5,)), ((0,), (5,))])
def test_datums_are_created_on_demand(
    rpc: RpcClient, place: Place, numbers: tuple[int, ...], batches: tuple[int, ...]
) -> None:
    repo = place.repo()
    place.put(repo, **{name: name for name in "abcde"})
    message = rpc.messages["CreateDatum"]
    first, *more = numbers
    requests = [message(start={"input": {"pfs": {"repo": repo, "glob": "/*"}}, "number": first})]
    requests += [message(**{"continue": {"number": number}}) for number in more]
    found = [info.datum.id for info in rpc.stream("pps_v2.API/CreateDatum", iter(requests), "DatumInfo")]
    assert len(set(found)) == len(found) == sum(batches)


def test_datums_need_an_input(rpc: RpcClient, by_version: ByVersion) -> None:
    message = rpc.messages["CreateDatum"]
    for request, text in (
        (message(**{"continue": {"number": 1}}), "first message must be a StartCreateDatumRequest message"),
        (
            message(start={"number": 1}),
            by_version("first message must specify an input", r"StartCreateDatumRequest\.Input: value is required"),
        ),
    ):
        with pytest.raises(grpc.RpcError, match=text):
            list(rpc.stream("pps_v2.API/CreateDatum", iter([request]), "DatumInfo"))


def test_pages_and_summaries_of_pipelines(rpc: RpcClient, client: Client, place: Place) -> None:
    project, repo = place.unique("project"), place.repo()
    client.create_project(project)
    names = [place.unique("p") for _ in range(3)]
    for name in names:
        spec = {
            "pipeline": {"name": name, "project": {"name": project}},
            "transform": {"cmd": ["true"]},
            "input": {"pfs": {"project": "default", "repo": repo, "glob": "/*"}},
        }
        rpc.create(json.dumps(spec))
    of = [{"name": project}]

    def page(size: int, index: int) -> list[str]:
        wanted = {"page_size": size, "page_index": index}
        found = rpc.list("pps_v2.API/ListPipeline", "ListPipeline", "PipelineInfo", projects=of, page=wanted)
        return [info.pipeline.name for info in found]

    assert [page(2, 0), page(2, 1), page(2, 2)] == [names[:0:-1], names[:1], []]
    client.stop_pipeline(names[0], project_name=project)
    in_project = {"projects": of}
    (summary,) = rpc.call("pps_v2.API/PipelinesSummary", "Summaries", "PipelinesSummaries", **in_project).summaries
    assert (summary.active_pipelines, summary.paused_pipelines, summary.failed_pipelines) in ((3, 0, 0), (2, 1, 0))
    (summary,) = rpc.call("pfs_v2.API/ReposSummary", "Summaries", "ReposSummaries", **in_project).summaries
    assert (summary.project.name, summary.user_repo_count, summary.size_bytes) == (project, 3, 0)


def test_single_commits_are_removed_with_their_subvenance(
    rpc: RpcClient, client: Client, place: Place, pfs: MakeInput, refusal: Refusal
) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    pipeline = place.pipeline(f"cp /pfs/{repo}/* /pfs/out/", input=pfs(repo))
    second, third = place.put(repo, b="2"), place.put(repo, c="3")
    for each in (second, third):
        place.job(pipeline, each)
        client.wait_commit(each)  # a job may be over before its meta commit

    def call(verb: str, commit: str, recursive: bool) -> None:
        named = {"repo": {"name": repo, "type": "user"}, "id": commit}
        rpc.call(f"pfs_v2.API/{verb}Commit", "RemoveCommit", "Empty", commit=named, recursive=recursive)

    for verb, commit in (("Squash", second), ("Drop", third)):
        code, text = refusal(call, verb, commit, False)
        assert code is grpc.StatusCode.UNKNOWN
        assert text == f"cannot {verb.lower()} commit (default/{repo}@{commit}) with subvenance without recursive"
    call("Squash", second, True)
    assert place.paths(repo) == place.paths(pipeline) == ["/a", "/b", "/c"]
    call("Drop", third, True)
    assert place.paths(repo) == place.paths(pipeline) == ["/a"]
