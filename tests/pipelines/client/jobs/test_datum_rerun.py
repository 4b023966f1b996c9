"""Running one datum again: its log, the files it leaves, and no effect on anything else."""

from pathlib import Path

import grpc
import pytest

from pipelines.client.jobs import datum_rerun
from pipelines.client.jobs.datums import JobDatums
from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from tests.command import Command
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.stand_ins import deploy_specs, shell_spec, wait_for

pytestmark = pytest.mark.late_alone


SCRIPT = r"""
pfs="${LOCALPACHD_PFS:-/pfs}"
echo "looking at $(basename "$in")"
cat "$pfs/rules/allowed" | grep -q "$(cat "$in")" || exit 3
cp "$in" "$pfs/out/"
date +%s%N > "$pfs/out/when"
"""


def lines(said: list[tuple[str, bool]]) -> list[str]:
    return [text for text, user in said if user]


@pytest.fixture
def judged(connection: Connection, wait_for_jobs: WaitForJobs, tmp_path: Path) -> Job:
    """A job with a datum that succeeded and one that failed; its rules are a lazy input."""
    document = shell_spec("judge", "in", SCRIPT, datum_tries=2)
    rules = {"pfs": {"name": "rules", "repo": "rules", "branch": "master", "glob": "/", "lazy": True}}
    document["input"] = {"cross": [document["input"], rules]}
    document["transform"] |= {"cmd": ["sh"], "env": {"MOOD": "strict"}}
    deploy_specs(connection, document)
    Repository(connection, "rules").write([PutFile("/allowed", b"good\nfine\n")])
    (job,) = wait_for_jobs(Repository(connection, "in").write([PutFile("/a", b"good"), PutFile("/b", b"vile")]))
    assert (job.state, job.processed, job.failed) == ("failure", 1, 1)
    return job


def test_a_failed_datum_fails_again_and_its_inputs_are_kept_as_long_as_there_are_any(
    judged: Job, connection: Connection, tmp_path: Path
) -> None:
    jobs = ProjectJobs(connection)
    before = Repository(connection, "judge", judged.id, type_="meta").hashes("/")
    job, datum = datum_rerun.choose(connection, "judge", "", "")
    assert job == judged
    said: list[tuple[str, bool]] = []
    rerun = datum_rerun.run(connection, job, datum, tmp_path / "kept", lambda *line: said.append(line))
    assert rerun.failed == rerun.failed_before != ""
    assert lines(said) == ["looking at b"]  # once: there is no second attempt
    kept = tmp_path / "kept"
    assert (kept / "pfs" / "in" / "b").read_bytes() == b"vile"
    assert (kept / "pfs" / "rules" / "allowed").read_bytes() == b"good\nfine\n"  # though it is lazy
    assert list((kept / "pfs" / "out").iterdir()) == []
    assert "MOOD=strict\n" in (kept / "env").read_text()
    assert f"PACH_JOB_ID={judged.id}\n" in (kept / "env").read_text()
    assert "looking at b\n" in (kept / "log").read_text()
    assert jobs.newest("judge") == judged
    assert Repository(connection, "judge", judged.id, type_="meta").hashes("/") == before

    connection.client.delete_repo("in", force=True, project_name=connection.project)
    with pytest.raises(grpc.RpcError, match="the commits of in are gone"):
        datum_rerun.run(connection, judged, datum, tmp_path / "gone", lambda text, user: None)
    assert not (tmp_path / "gone").exists()


def test_its_output_is_compared_with_the_record_and_what_is_missing_is_named(
    judged: Job, connection: Connection, tmp_path: Path
) -> None:
    failed = {each.datum for each in JobDatums(connection, judged).failed(2)}
    (good,) = {each.id for each in JobDatums(connection, judged)} - failed
    job, datum = datum_rerun.choose(connection, "judge", judged.id, good[:20])
    assert datum == good
    rerun = datum_rerun.run(connection, job, datum, tmp_path / "kept", lambda text, user: None)
    assert (rerun.failed, rerun.failed_before, rerun.changed) == ("", "", ("/when",))
    assert (tmp_path / "kept" / "pfs" / "out" / "a").read_bytes() == b"good"
    for arguments, text in [
        (("judge", "0" * 32, ""), f"judge has no job {'0' * 32}"),
        (("judge", judged.id, "xyz"), f"judge@{judged.id} has no datum xyz"),
    ]:
        with pytest.raises(LookalikeError, match=text):
            datum_rerun.choose(connection, *arguments)
    with pytest.raises(grpc.RpcError, match='none" not found'):
        datum_rerun.choose(connection, "none", "", "")


def test_the_command_reports_it(judged: Job, as_user: Connection, command: Command) -> None:
    failed = command.run("debug", "datum", "judge")
    assert failed.returncode == 1
    assert failed.stderr.startswith("lookalike: the datum failed: ")
    assert failed.stderr.endswith("; it failed in its job for the same reason\n")
    assert "looking at b" in failed.stdout
    assert len(list((command.directory / "debug").glob("judge-*/pfs/in/b"))) == 1
    again = command.run("debug", "datum", "judge", "--output", "debug")
    assert again.returncode == 1
    assert "debug exists already" in again.stderr
    unknown = command.run("debug", "datum", "none")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr == f'lookalike: pipeline "{as_user.project}/none" not found\n'
    (good,) = {each.id for each in JobDatums(as_user, judged)} - {JobDatums(as_user, judged).failed(1)[0].datum}
    well = command.run("debug", "datum", f"judge@{judged.id}", good)
    assert (well.returncode, well.stderr) == (0, "")
    assert well.stdout.endswith("its output differs from its job's in 1 file:\n  /when\n")


def test_other_servers_are_recognised(stranger: str, command: Command) -> None:
    done = Command(command.directory, {"PACHD_ADDRESS": stranger}).run("debug", "datum", "judge")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"only localpachd can run a datum alone, and {stranger} is another server" in done.stderr


def test_a_job_that_has_not_started_says_what_to_do(
    judged: Job, as_user: Connection, command: Command, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    held = wait_for(gate)
    deploy_specs(as_user, shell_spec("before", "in", held, "/"), shell_spec("after", "before", held, "/"))
    done = command.run("debug", "datum", "after")
    gate.touch()
    assert (done.returncode, done.stdout) == (1, "")
    assert "has not started, so its datums are not known yet: wait for it" in done.stderr
