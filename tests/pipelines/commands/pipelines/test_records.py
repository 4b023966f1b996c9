"""Commits, jobs, datums and logs, as people and programs read them."""

import json
import os
import signal
from typing import Any

import pytest
from PIL import Image

from pipelines.client.jobs.datums import JobDatums
from pipelines.client.jobs.jobs import Job
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from tests.command import Command
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.grpc_proxy import passed_on
from tests.pipelines.stand_ins import deploy_specs, shell_spec
from tests.stages.scenes import saved

pytestmark = pytest.mark.late_alone

SAY = r"""
for file in "$queries"; do
  echo "reading $(basename "$file")"
  case "$file" in *bad*) exit 3;; esac
  cp "$file" "${LOCALPACHD_PFS:-/pfs}/out/"
done
"""


@pytest.fixture
def judged(as_user: Connection, wait_for_jobs: WaitForJobs) -> Job:
    """The second job of a pipeline that fails on files called bad."""
    deploy_specs(as_user, shell_spec("say", "queries", SAY, datum_tries=1))
    queries = Repository(as_user, "queries")
    wait_for_jobs(queries.write([PutFile("/one", b"1")]))
    (job,) = wait_for_jobs(queries.write([PutFile("/bad", b"2")], description="the second [one]"))
    assert job.state == "failure"
    return job


def data(command: Command, *arguments: str) -> Any:
    """The value that a command prints with --json."""
    done = command.run(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout)


def test_commits_are_listed_newest_first_with_their_ids(judged: Job, command: Command, as_user: Connection) -> None:
    head, newest, older = command.says("commits").splitlines()
    assert head.split() == ["commit", "started", "repo", "change"]
    assert newest.startswith(judged.id)
    assert newest.endswith("  queries  the second [one]")
    assert "  queries  " in older
    assert command.says("commits", "--limit", "1").splitlines() == [head, newest]
    (failed,) = command.says("commits", "say", "-n", "1").splitlines()[1:]
    assert "  say   failure: " in failed
    found = data(command, "commits", "queries")
    assert [each["id"] for each in found] == [newest.split()[0], older.split()[0]]
    assert {"repo", "id", "open", "started", "finished", "author", "description", "error", "bytes"} == {*found[0]}
    assert (found[0]["description"], found[0]["error"], found[0]["bytes"]) == ("the second [one]", "", 2)
    assert command.fails("commits", "nosuch") == "there is no repo nosuch: there are queries, say"


def test_a_commit_says_which_command_made_it(sheets: Connection, as_user: Connection, command: Command) -> None:
    (command.directory / "a cat.jpg").write_bytes(saved(Image.new("L", (8, 8))))
    command.says("query", "a cat.jpg", "--no-wait")
    assert command.says("commits", "queries").splitlines()[1].endswith("  queries  query 'a cat.jpg' --no-wait")
    (found,) = data(command, "commits")
    assert found["author"]


def test_jobs_are_grouped_by_their_change(judged: Job, command: Command) -> None:
    head, change, row, _, first, *_ = command.says("jobs").splitlines()
    assert head.split() == ["pipeline", "job", "processed", "skipped", "failed", "seconds"]
    assert change.startswith(f"{judged.id}  ")
    assert change.endswith("  the second [one]")
    assert row.split()[:5] == ["say", "failure", "0", str(judged.skipped), "1"]
    assert first.split()[:5] == ["say", "success", "1", "0", "0"]
    assert command.says("jobs", "say", "-n", "1").splitlines() == [head, change, row]
    newest, *_ = data(command, "jobs", "say")
    assert (newest["id"], newest["state"], newest["failed"]) == (judged.id, "failure", 1)
    assert newest["created"] <= newest["finished"]
    assert command.fails("jobs", "sya") == "there is no pipeline sya: there are say"


def test_the_datums_of_a_job_are_listed_failed_ones_first(judged: Job, command: Command, as_user: Connection) -> None:
    said = command.says("jobs", f"say@{judged.id}").splitlines()
    assert [line.split()[1] for line in said] == ["state", "failed", "skipped"]
    assert said[1].endswith("  /bad")
    limited = command.says("jobs", f"say@{judged.id}", "--limit", "1").splitlines()
    assert limited[1:] == [said[1], "and 1 datum more: --limit 2 shows all"]
    first, second = data(command, "jobs", f"say@{judged.id}")
    assert (first["state"], first["paths"], second["paths"]) == ("failed", ["/bad"], ["/one"])
    assert {first["id"], second["id"]} == {each.id for each in JobDatums(as_user, judged)}
    assert "say has no job nosuch: `lookalike jobs say` lists its jobs" in command.fails("jobs", "say@nosuch")


def test_the_log_has_the_lines_of_user_code(judged: Job, command: Command, as_user: Connection) -> None:
    said = command.says("logs").splitlines()
    assert [line.partition(" ")[2] for line in said] == ["say: reading one", "say: reading bad"]
    assert command.says("logs", "say", "--limit", "1").splitlines() == said[1:]
    assert command.says("logs", "say", "--job", judged.id).splitlines() == said[1:]
    assert command.says("logs", "--datum", "/one").splitlines() == said[:1]
    (bad,) = (each.datum for each in JobDatums(as_user, judged).failed(1))
    assert command.says("logs", "say", "--datum", bad[:12]).splitlines() == said[1:]
    assert len(command.says("logs", "--all").splitlines()) > 2
    lines = [json.loads(line) for line in command.says("logs", "--json").splitlines()]
    assert [(each["message"], each["user"], each["paths"]) for each in lines] == [
        ("reading one", True, ["/one"]),
        ("reading bad", True, ["/bad"]),
    ]
    assert command.says("logs", "--datum", "/two") == "no lines of user code: --all shows the workers' lines, too\n"
    assert "the server has no job nosuch" in command.fails("logs", "--job", "nosuch")


def test_a_log_is_followed_until_ctrl_c(judged: Job, command: Command, as_user: Connection) -> None:
    with command.start("logs", "say", "--follow", interruptible=True) as following:
        assert following.stdout
        assert following.stdout.readline().endswith("say: reading one\n")
        assert following.stdout.readline().endswith("say: reading bad\n")
        Repository(as_user, "queries").write([PutFile("/two", b"2")])
        assert following.stdout.readline().endswith("say: reading bad\n")
        assert following.stdout.readline().endswith("say: reading two\n")
        os.kill(following.pid, signal.SIGINT)
        assert following.wait() == 130
    done = command.run("logs", "--follow")
    assert done.returncode == 2
    assert "name the pipeline to follow" in done.stderr


def test_a_cluster_that_keeps_no_logs_is_explained(judged: Job, command: Command, as_user: Connection) -> None:
    """In words, whether all logs are asked for, one, or one that is followed."""
    deploy_specs(as_user, *(shell_spec(name, "queries") for name in ("a", "b")))
    refused = {"GetLogs": 'no pods belonging to the rc "t-say-v1" were found'}
    words = "cannot be read: no worker of it runs now, and a cluster without Loki keeps no logs of workers that have"
    with passed_on(as_user, refused=refused) as through:
        for arguments, names in (((), "a, b, say"), (("say",), "say"), (("say", "--follow"), "say")):
            said = command.fails("logs", *arguments, "--address", through.address)
            told = sorted(said.removeprefix("the log of ").partition(f" {words}")[0].split(", "))
            assert ", ".join(told) == names and "pods belonging" not in said, said


def test_without_any_the_commands_say_so(as_user: Connection, command: Command) -> None:
    assert command.says("commits") == "no commits yet: add pictures with `lookalike add`\n"
    assert command.says("jobs") == "no jobs yet: add pictures with `lookalike add`\n"
    assert data(command, "commits") == data(command, "jobs") == []
