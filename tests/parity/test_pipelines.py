"""Pipelines through the official client: specifications, states and versions; starting, stopping and deleting."""

import grpc
import pytest
from google.protobuf import duration_pb2
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

from tests.conditions import until
from tests.parity.places import MakeInput, Place, listed_repos


def test_a_pipeline_is_shown_with_its_defaults(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    name = place.pipeline(
        "true",
        input=pfs(repo),
        description="copies files",
        datum_timeout=duration_pb2.Duration(seconds=90),
        parallelism_spec=pps_pb2.ParallelismSpec(constant=2),
    )
    (info,) = client.inspect_pipeline(name, details=True)
    assert (info.pipeline.name, info.pipeline.project.name, info.version) == (name, "default", 1)
    assert info.type == pps_pb2.PipelineInfo.PIPELINE_TYPE_TRANSFORM
    assert info.spec_commit.branch.repo.type == "spec"
    assert info.spec_commit.repo.name == info.spec_commit.branch.repo.name == name
    details = info.details
    assert (details.description, details.output_branch, details.datum_tries) == ("copies files", "master", 3)
    assert (details.reprocess_spec, details.datum_timeout.seconds) == ("until_success", 90)
    assert details.parallelism_spec.constant == details.workers_requested == 2
    assert details.salt
    assert details.created_at.seconds > 0
    assert list(details.transform.cmd) == ["sh", "-e"]
    assert (details.input.pfs.name, details.input.pfs.branch, details.input.pfs.glob) == (repo, "master", "/*")
    assert (details.input.pfs.repo_type, details.input.pfs.project) == ("user", "default")


def test_details_are_left_out_unless_asked_for(place: Place, pfs: MakeInput, client: Client) -> None:
    name = place.pipeline("true", input=pfs(place.repo()))
    (info,) = client.inspect_pipeline(name, details=False)
    assert not info.HasField("details")


def test_members_of_a_cross_are_sorted_by_name(place: Place, pfs: MakeInput, client: Client) -> None:
    first, second = place.repo("a"), place.repo("b")
    crossed = pps_pb2.Input(cross=[pfs(second, name="z"), pfs(first, name="m")])
    name = place.pipeline("true", input=crossed)
    (info,) = client.inspect_pipeline(name, details=True)
    assert [member.pfs.name for member in info.details.input.cross] == ["m", "z"]


def test_an_update_is_a_new_version_with_the_old_salt_and_a_job_that_skips_all(
    place: Place, pfs: MakeInput, client: Client
) -> None:
    repo = place.repo()
    place.put(repo, a="1", b="2")
    name = place.pipeline("cp /pfs/*/* /pfs/out/", input=pfs(repo))
    (before,) = client.inspect_pipeline(name, details=True)
    first = next(iter(client.list_job(pipeline_name=name)))
    assert place.job(name, first.job.id).data_processed == 2
    place.pipeline("true", name=name, input=pfs(repo))
    (after,) = client.inspect_pipeline(name, details=True)
    assert (after.version, after.details.salt) == (2, before.details.salt)
    newest = next(iter(client.list_job(pipeline_name=name)))
    job = place.job(name, newest.job.id)
    assert (job.pipeline_version, job.data_processed, job.data_skipped) == (2, 0, 2)
    assert place.read(name, "/a") == "1"


def test_reprocess_draws_a_new_salt_and_runs_everything(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    place.put(repo, a="1", b="2")
    name = place.pipeline("cp /pfs/*/* /pfs/out/", input=pfs(repo))
    (before,) = client.inspect_pipeline(name, details=True)
    place.job(name, next(iter(client.list_job(pipeline_name=name))).job.id)
    place.pipeline("for f in /pfs/in/*; do echo new > /pfs/out/$(basename $f); done", name=name,
                   input=pfs(repo, name="in"), reprocess=True)  # fmt: skip
    (after,) = client.inspect_pipeline(name, details=True)
    assert after.details.salt != before.details.salt
    job = place.job(name, next(iter(client.list_job(pipeline_name=name))).job.id)
    assert (job.data_processed, job.data_skipped) == (2, 0)
    assert place.read(name, "/a") == "new\n"


def test_earlier_versions_can_be_seen(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    name = place.pipeline("echo one", input=pfs(repo))
    place.pipeline("echo two", name=name, input=pfs(repo))
    (old,) = client.inspect_pipeline(name + "^", details=True)
    assert (old.version, list(old.details.transform.stdin)) == (1, ["echo one"])
    assert [info.version for info in client.list_pipeline(history=-1) if info.pipeline.name == name] == [2, 1]
    assert [info.version for info in client.list_pipeline() if info.pipeline.name == name] == [2]
    with pytest.raises(grpc.RpcError, match="has only 2 versions, not enough to find ancestor 5"):
        list(client.inspect_pipeline(name + "~5"))


def test_a_commit_set_has_the_versions_of_its_time(place: Place, pfs: MakeInput, client: Client) -> None:
    repo, apart = place.repo(), place.repo()
    name = place.pipeline("echo one", input=pfs(repo))
    behind = place.pipeline("echo behind", input=pfs(name))
    before = place.put(repo, a="1")
    place.job(behind, before)
    place.pipeline("echo two", name=name, input=pfs(repo))
    after = place.put(repo, b="2")

    def versions(commit: str) -> dict[str, tuple[int, str]]:
        request = pps_pb2.ListPipelineRequest(
            details=True, projects=[pfs_pb2.Project(name="default")], commit_set=pfs_pb2.CommitSet(id=commit)
        )
        infos = pps_pb2_grpc.APIStub(client._channel).ListPipeline(request)
        return {each.pipeline.name: (each.version, each.details.transform.stdin[0]) for each in infos}

    assert versions(before) == {name: (1, "echo one"), behind: (1, "echo behind")}
    assert versions(after) == {name: (2, "echo two"), behind: (1, "echo behind")}
    assert versions(place.put(apart, a="1")) == {}


def test_a_filter_on_the_state_is_evaluated(place: Place, pfs: MakeInput, client: Client) -> None:
    name = place.pipeline("true", input=pfs(place.repo()))
    client.stop_pipeline(name)

    def names(text: str) -> set[str]:
        return {info.pipeline.name for info in client.list_pipeline(jqFilter=text)}

    assert name not in names('.state == "PIPELINE_FAILURE" or .state == "PIPELINE_CRASHING"')
    assert name in names(".stopped")


def test_a_stopped_pipeline_gets_no_jobs_and_catches_up_with_one(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    name = place.pipeline("cp /pfs/*/* /pfs/out/", input=pfs(repo))
    place.job(name, next(iter(client.list_job(pipeline_name=name))).job.id)
    client.stop_pipeline(name)
    assert [info.stopped for info in client.inspect_pipeline(name)] == [True]
    place.put(repo, b="2")
    place.put(repo, c="3")
    assert len(list(client.list_job(pipeline_name=name))) == 1
    client.start_pipeline(name)
    newest, _ = client.list_job(pipeline_name=name)
    job = place.job(name, newest.job.id)
    assert (job.data_processed, job.data_skipped) == (2, 1)
    assert place.paths(name) == ["/a", "/b", "/c"]
    client.start_pipeline(name)  # has no effect on a running pipeline
    assert len(list(client.list_job(pipeline_name=name))) == 2


def test_deleting_removes_the_repos_and_keep_repo_leaves_the_output(
    place: Place, pfs: MakeInput, client: Client
) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    name = place.pipeline("cp /pfs/*/* /pfs/out/", input=pfs(repo))
    place.job(name, next(iter(client.list_job(pipeline_name=name))).job.id)
    client.delete_pipeline(name, keep_repo=True)
    assert place.read(name, "/a") == "1"
    assert name not in {info.pipeline.name for info in client.list_pipeline()}
    place.put(name, b="2")
    client.delete_repo(name)
    assert name not in {info.repo.name for info in listed_repos(client, type="")}


def test_a_pipeline_with_a_pipeline_downstream_is_deleted_only_by_force(
    place: Place, pfs: MakeInput, client: Client
) -> None:
    above = place.pipeline("true", input=pfs(place.repo()))
    below = place.pipeline("true", input=pfs(above))
    with pytest.raises(grpc.RpcError, match="subvenance"):
        client.delete_pipeline(above)
    client.delete_pipeline(above, force=True)
    (info,) = client.inspect_branch(below, "master").direct_provenance
    assert info.repo.type == "spec"


def test_repos_of_a_pipeline_have_their_types_and_descriptions(place: Place, pfs: MakeInput, client: Client) -> None:
    name = place.pipeline("true", input=pfs(place.repo()))
    found = {info.repo.type: info.description for info in listed_repos(client, type="") if info.repo.name == name}
    assert set(found) == {"user", "spec", "meta"}
    assert found["user"] == f"Output repo for pipeline default/{name}."


def test_a_pipeline_without_a_command_fails_with_a_reason(place: Place, pfs: MakeInput, client: Client) -> None:
    repo, name = place.repo(), place.unique("p")
    client.create_pipeline(name, transform=pps_pb2.Transform(image="ubuntu:20.04"), input=pfs(repo))
    commit = place.put(repo, a="1")
    (job,) = client.inspect_job(commit, pipeline_name=name, wait=True)
    assert job.state in (pps_pb2.JOB_FAILURE, pps_pb2.JOB_KILLED, pps_pb2.JOB_UNRUNNABLE)
    until(lambda: next(client.inspect_pipeline(name)).state == pps_pb2.PIPELINE_FAILURE)
    assert next(client.inspect_pipeline(name)).reason == "nothing to run: no transform.cmd"


def test_project_pipelines_stay_in_their_project(place: Place, pfs: MakeInput, client: Client) -> None:
    project = place.unique("proj")
    client.create_project(project)
    repo, name = place.unique("in"), place.unique("p")
    client.create_repo(repo, project_name=project)
    transform = pps_pb2.Transform(image="ubuntu:20.04", cmd=["true"])
    client.create_pipeline(name, transform=transform, project_name=project, input=pfs(repo, project=project))
    (info,) = client.inspect_pipeline(name, project_name=project)
    assert info.pipeline.project.name == project
    with pytest.raises(grpc.RpcError, match="not found"):
        list(client.inspect_pipeline(name))
    client.delete_pipeline(name, project_name=project)
    client.delete_repo(repo, project_name=project)
    client.delete_project(project)
    assert project not in {each.project.name for each in client.list_project()}
    assert isinstance(info.pipeline.project, pfs_pb2.Project)
