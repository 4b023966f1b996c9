"""Deferred processing: results gather on one branch until the branch that is read is moved to it."""

import pytest
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.examples.example import Example


@pytest.fixture
def deferred(example: Example) -> Example:
    """Images in two repos; the outlines of the first repo's wait on a branch `dev`."""
    example.repo("images_dp_1", "images_dp_2")
    example.create("edges_dp.json", "montage_dp.json")
    example.put("images_dp_1", {"/a": "abc\n"})
    example.put("images_dp_2", {"/z": "zzz\n"})
    return example


def jobs(example: Example, pipeline: str) -> list[pps_pb2.JobInfo]:
    return list(example.client.list_job(pipeline_name=pipeline, project_name=example.project))


def test_moving_the_branch_by_hand_processes_all_that_waited(deferred: Example) -> None:
    second = deferred.put("images_dp_1", {"/b": "def\n"})
    assert deferred.went("edges_dp", second) == ("JOB_SUCCESS", {"processed": 1, "skipped": 1, "total": 2})
    assert deferred.files("edges_dp", branch="dev") == {"/a": "cba\n", "/b": "fed\n"}
    # The montage has had two jobs, for its creation and for the other repo, with no outlines to cross it with.
    assert [each.job.id == second for each in jobs(deferred, "montage_dp")] == [False, False]
    assert deferred.went("montage_dp") == ("JOB_SUCCESS", {})

    deferred.client.create_branch(
        "edges_dp", "master", head_commit=deferred.at("edges_dp", "dev"), project_name=deferred.project
    )
    assert deferred.went("montage_dp") == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    assert deferred.files("montage_dp") == {"/montage": "cba\nfed\nzzz\n"}

    # Back to the first picture: a branch can be moved to an older commit.
    deferred.client.create_branch(
        "edges_dp", "master", head_commit=deferred.at("edges_dp", "", "dev^"), project_name=deferred.project
    )
    deferred.job("montage_dp")
    assert deferred.files("montage_dp") == {"/montage": "cba\nzzz\n"}


def test_a_transaction_makes_one_job_of_two_changes(deferred: Example) -> None:
    client, project = deferred.client, deferred.project
    deferred.job("edges_dp")
    before = len(jobs(deferred, "montage_dp"))
    with client.transaction():
        client.create_branch("edges_dp", "master", head_commit=deferred.at("edges_dp", "dev"), project_name=project)
        commit = client.start_commit("images_dp_2", "master", project_name=project)
        client.finish_commit(commit)
    assert len(jobs(deferred, "montage_dp")) == before + 1
    assert deferred.went("montage_dp") == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    assert deferred.files("montage_dp") == {"/montage": "cba\nzzz\n"}


def test_a_cron_pipeline_moves_the_branch(deferred: Example) -> None:
    deferred.job("edges_dp")
    deferred.create("branch-mover.json")
    deferred.went("branch-mover")
    assert deferred.went("branch-mover", deferred.tick("branch-mover")) == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    deferred.job("montage_dp")
    assert deferred.files("montage_dp") == {"/montage": "cba\nzzz\n"}
    moved = deferred.client.inspect_branch("edges_dp", "master", project_name=deferred.project)
    assert isinstance(moved, pfs_pb2.BranchInfo)
    assert moved.head.id == deferred.client.inspect_branch("edges_dp", "dev", project_name=deferred.project).head.id
