"""Datums and logs through the official client."""

import base64
import json

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

from tests.parity.places import MakeInput, Place, Refusal, content

Copied = tuple[str, str, str, str]
"""A repo, a pipeline that copies its files, and the commits of its two jobs, the second of which has one new datum."""


@pytest.fixture
def copied(place: Place, pfs: MakeInput) -> Copied:
    """See Copied."""
    repo = place.repo()
    name = place.pipeline("ls /pfs/in\ncp /pfs/in/* /pfs/out/", input=pfs(repo, name="in"), datum_tries=1)
    first = place.put(repo, a="1", b="22")
    place.job(name, first)
    second = place.put(repo, c="333")
    place.job(name, second)
    return repo, name, first, second


def test_datums_that_another_job_processed_are_shown_as_skipped(copied: Copied, client: Client) -> None:
    repo, name, first, second = copied
    listed = list(client.list_datum(name, second))
    assert [each.datum.id for each in listed] == sorted(each.datum.id for each in listed)
    found = {each.data[0].file.path: each for each in listed}
    assert {path: (each.state, each.datum.job.id) for path, each in found.items()} == {
        "/a": (pps_pb2.SKIPPED, first),
        "/b": (pps_pb2.SKIPPED, first),
        "/c": (pps_pb2.SUCCESS, second),
    }
    new = found["/c"]
    assert (new.stats.upload_bytes, new.data[0].size_bytes) == (3, 3)
    assert new.data[0].file.commit.repo.name == new.data[0].file.commit.branch.repo.name == repo
    assert new.data[0].file.commit.id == second


def test_a_datum_names_the_directory_of_its_files(copied: Copied, client: Client) -> None:
    _, name, _, second = copied
    (new,) = client.list_datum(name, second, datum_filter=pps_pb2.ListDatumRequest.Filter(state=[pps_pb2.SUCCESS]))
    info = client.inspect_datum(name, second, new.datum.id)
    assert (info.state, info.datum.id) == (pps_pb2.SUCCESS, new.datum.id)
    assert info.pfs_state.path == f"/pfs/{new.datum.id}"
    assert (info.pfs_state.commit.repo.type, info.pfs_state.commit.id) == ("meta", second)
    below = client.walk_file(info.pfs_state.commit, info.pfs_state.path)
    assert {f"/pfs/{new.datum.id}/{file}" for file in ("in/c", "out/c", ".env")} <= {each.file.path for each in below}
    with client.get_file(info.pfs_state.commit, f"/pfs/{new.datum.id}/out/c") as file:
        assert file.read() == b"333"


def test_pages_of_datums(copied: Copied, client: Client) -> None:
    _, name, _, second = copied
    ids = [each.datum.id for each in client.list_datum(name, second)]
    assert [each.datum.id for each in client.list_datum(name, second, number=2)] == ids[:2]
    assert [each.datum.id for each in client.list_datum(name, second, number=-1)] == ids
    assert [each.datum.id for each in client.list_datum(name, second, pagination_marker=ids[0])] == ids[1:]
    assert [each.datum.id for each in client.list_datum(name, second, number=2, reverse=True)] == ids[:0:-1]


def test_datums_that_an_input_would_make(copied: Copied, client: Client, pfs: MakeInput) -> None:
    repo = copied[0]
    found = list(client.list_datum(input=pps_pb2.Input(cross=[pfs(repo, name="x"), pfs(repo, "/", name="y")])))
    assert {tuple(file.file.path for file in each.data) for each in found} == {("/a", "/"), ("/b", "/"), ("/c", "/")}
    assert {each.state for each in found} == {pps_pb2.UNKNOWN}
    cron = pps_pb2.Input(cron=pps_pb2.CronInput(name="tick", spec="@daily"))
    with pytest.raises(grpc.RpcError, match="can't list datums with a cron input"):
        list(client.list_datum(input=cron))


def test_datums_of_an_input_without_a_branch(client: Client, pfs: MakeInput, refusal: Refusal) -> None:
    assert refusal(client.list_datum, input=pfs("ghost")) == (
        grpc.StatusCode.UNKNOWN,
        'branch "master" not found in repo default/ghost',
    )


def test_invalid_list_requests(copied: Copied, client: Client, pfs: MakeInput, refusal: Refusal) -> None:
    repo, name, _, second = copied
    stub = pps_pb2_grpc.APIStub(client._channel)
    job = pps_pb2.Job(id=second, pipeline=pps_pb2.Pipeline(name=name))
    both = pps_pb2.ListDatumRequest(job=job, input=pfs(repo))
    assert refusal(stub.ListDatum, both)[1] == "cannot specify both job and input"
    endless = pps_pb2.ListDatumRequest(job=job, reverse=True)
    assert refusal(stub.ListDatum, endless)[1] == "number must be > 0 when reverse is set"


def test_an_input_is_sorted_and_given_its_defaults_before_it_is_listed(
    copied: Copied, client: Client, pfs: MakeInput
) -> None:
    """Members are sorted by their names as given; one without a name comes first and is named like its repo."""
    repo = copied[0]
    crossed = pps_pb2.Input(cross=[pfs(repo, name="z"), pfs(repo, "b"), pfs(repo, "/a/", name="y")])
    (datum,) = [each for each in client.list_datum(input=crossed) if each.data[2].file.path == "/c"]
    assert [file.file.path for file in datum.data] == ["/b", "/a", "/c"]


def test_joins_and_groups(place: Place, client: Client) -> None:
    repo = place.repo()
    place.put(repo, left_a="1", left_b="2", right_b="3", right_c="4")

    def leaf(side: str, **fields: object) -> pps_pb2.Input:
        return pps_pb2.Input(pfs=pps_pb2.PFSInput(repo=repo, name=side, glob=f"/{side}/(*)", **fields))

    def paths(combined: pps_pb2.Input) -> set[tuple[str, ...]]:
        return {tuple(file.file.path for file in each.data) for each in client.list_datum(input=combined)}

    both = pps_pb2.Input(join=[leaf("left", join_on="$1"), leaf("right", join_on="$1")])
    assert paths(both) == {("/left/b", "/right/b")}
    outer = pps_pb2.Input(join=[leaf("left", join_on="$1", outer_join=True), leaf("right", join_on="$1")])
    assert paths(outer) == {("/left/b", "/right/b"), ("/left/a",)}
    group = pps_pb2.Input(group=[leaf("left", group_by="$1"), leaf("right", group_by="$1")])
    assert paths(group) == {("/left/a",), ("/left/b", "/right/b"), ("/right/c",)}
    union = pps_pb2.Input(union=[leaf("left"), leaf("right")])
    assert paths(union) == {("/left/a",), ("/left/b",), ("/right/b",), ("/right/c",)}


def test_logs_are_found_by_pipeline_job_and_datum(copied: Copied, client: Client) -> None:
    _, name, first, second = copied
    lines = [line for line in client.get_pipeline_logs(name) if line.user]
    assert sorted(line.message.strip() for line in lines) == ["a", "b", "c"]
    assert {line.pipeline_name for line in lines} == {name}
    assert all(line.ts.seconds and line.worker_id and line.datum_id for line in lines)
    (line,) = [line for line in client.get_job_logs(name, second) if line.user]
    assert (line.message.strip(), line.job_id, line.data[0].path) == ("c", second, "/c")
    of_path = [line for line in client.get_job_logs(name, first, data_filters=["/a"]) if line.user]
    assert [line.message.strip() for line in of_path] == ["a"]


def test_errors_of_logs(client: Client, copied: Copied) -> None:
    with pytest.raises(grpc.RpcError, match='could not get job information for "'):
        list(client.get_job_logs(copied[1], "0" * 12 + "4" + "0" * 19))
    with pytest.raises(grpc.RpcError, match="could not get pipeline information for"):
        list(client.get_pipeline_logs("no-such-pipeline"))


def test_the_record_of_a_datum_in_the_meta_commit(copied: Copied, client: Client) -> None:
    """It stays with the later commits that skip the datum, and names the job that processed it."""
    repo, name, first, second = copied
    listed = {each.data[0].file.path: each.datum.id for each in client.list_datum(name, second)}
    meta = pfs_pb2.Repo(name=name, type="meta", project=pfs_pb2.Project(name="default"))
    for path, job in {"/a": first, "/c": second}.items():
        commit = pfs_pb2.Commit(repo=meta, branch=pfs_pb2.Branch(repo=meta, name="master"), id=second)
        record = json.loads(content(client, commit, f"/meta/{listed[path]}/meta"))
        (given,) = record["inputs"]
        file = given["fileInfo"]["file"]
        assert (record["job"]["id"], record.get("state", "PROCESSED")) == (job, "PROCESSED")
        assert (given["name"], file["path"], file["commit"]["id"]) == ("in", path, job)
        assert (file["commit"].get("repo") or file["commit"]["branch"]["repo"])["name"] == repo
        assert len(base64.b64decode(given["fileInfo"]["hash"])) == 32
        assert {each for each in record["stats"] if each.endswith("Time")} == {
            "downloadTime",
            "processTime",
            "uploadTime",
        }
        (output,) = [each.file for each in client.walk_file((name, "master", second), path)]
        assert output.datum == listed[path]
