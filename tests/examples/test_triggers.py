"""Pipelines that wait for a number of commits, an amount of data, or the clock."""

from python_pachyderm.proto.v2.pfs import pfs_pb2

from tests.conditions import until
from tests.examples.example import Example


def digested(example: Example) -> int:
    """The number of datums of the newest job."""
    info = example.job("digest")
    return int(info.data_total)


def test_an_input_that_waits_for_commits(example: Example) -> None:
    example.repo("data")
    example.create("by_input.yaml", words={"TRIGGER": "{branch: master, commits: 3}"})
    for number, seen in enumerate((0, 0, 3, 3, 3, 6), start=1):
        example.put("data", {f"/{number}": str(number)})
        assert digested(example) == seen
    assert example.went("digest") == ("JOB_SUCCESS", {"processed": 3, "skipped": 3, "total": 6})
    assert [*example.files("digest")] == [f"/{number}" for number in range(1, 7)]


def test_an_input_that_waits_for_size(example: Example) -> None:
    example.repo("data")
    example.create("by_input.yaml", words={"TRIGGER": "{size: 1K}"})
    example.put("data", {"/small": 500 * "x"})
    assert digested(example) == 0
    example.put("data", {"/large": 2000 * "x"})
    assert digested(example) == 2


def test_an_input_that_waits_for_the_clock_and_for_commits(example: Example) -> None:
    example.repo("data")
    example.create("by_input.yaml", words={"TRIGGER": '{cron_spec: "@every 1s", commits: 1, all: true}'})
    example.put("data", {"/first": "1"})
    until(lambda: digested(example) == 1)
    example.put("data", {"/second": "2"})
    until(lambda: digested(example) == 2)
    assert example.files("digest") == {"/first": "1", "/second": "2"}


def test_a_production_branch_that_follows_a_staging_branch(example: Example) -> None:
    example.repo("data")
    trigger = pfs_pb2.Trigger(branch="staging", commits=3, size="100")
    example.client.create_branch("data", "staging", project_name=example.project)
    example.client.create_branch("data", "production", trigger=trigger, project_name=example.project)
    example.create("by_branch.json")
    example.put("data", {"/d/a": "a"}, branch="staging")
    assert example.went("release") == ("JOB_SUCCESS", {})
    second = example.put("data", {"/d/b": "b"}, branch="staging")  # the third commit: a branch begins with an empty one
    assert example.went("release") == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    assert example.client.inspect_branch("data", "production", project_name=example.project).head.id == second
    example.put("data", {"/e": 200 * "e"}, branch="staging")
    assert example.went("release") == ("JOB_SUCCESS", {"processed": 1, "skipped": 1, "total": 2})
    # Only the first commit since, but large enough.
    assert [*example.files("release")] == ["/d/a", "/d/b", "/e"]
