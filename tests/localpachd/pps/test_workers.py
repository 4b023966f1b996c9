"""The variables of user code, and the number of workers that run at once."""

from pathlib import Path
from typing import Any

from localpachd.pps.datums import Datum, DatumInput
from localpachd.pps.pps_entities import Job, JobState, Pipeline
from localpachd.pps.scheduling.datum_selection import NumberedDatum
from localpachd.pps.scheduling.datum_tasks import environment
from tests.localpachd.pps.engine import Engine


def file(name: str, path: str, **fields: Any) -> DatumInput:
    return DatumInput(name, "default", "repo", "user", "master", path, b"", 0, "c" * 32, **fields)


def variables(*files: DatumInput) -> dict[str, str]:
    return environment(NumberedDatum(0, Datum("d" * 64, files), ""), Job(Pipeline("default", "p"), "1" * 32))


def test_each_input_names_its_path_and_its_commit() -> None:
    assert variables(file("in", "/a/b"), file("all", "/")) == {
        "in": "/pfs/in/a/b", "in_COMMIT": "c" * 32, "all": "/pfs/all", "all_COMMIT": "c" * 32,
        "PACH_DATUM_ID": "d" * 64, "PACH_JOB_ID": "1" * 32, "PACH_OUTPUT_COMMIT_ID": "1" * 32,
    }  # fmt: skip


def test_keys_are_in_variables_and_the_last_file_of_an_input_counts() -> None:
    found = variables(
        file("in", "/x", join_on="j", group_by="g1"), file("in", "/d/", group_by="g2"), file("other", "/y", join_on="k")
    )
    assert (found["in"], found["PACH_DATUM_in_JOIN_ON"], found["PACH_DATUM_in_GROUP_BY"]) == ("/pfs/in/d", "j", "g2")
    assert found["PACH_DATUM_other_JOIN_ON"] == "k"
    assert "PACH_DATUM_other_GROUP_BY" not in found


def test_a_process_knows_its_pipeline_job_and_worker(engine: Engine) -> None:
    engine.repo("texts")
    engine.put("texts", {"/a": "one"})
    names = [
        "PACH_IN_WORKER", "PACH_NAMESPACE", "PPS_PROJECT_NAME", "PPS_PIPELINE_NAME", "PPS_SPEC_COMMIT", "PPS_POD_NAME",
        "PPS_WORKER_IP", "PACH_JOB_ID", "PACH_OUTPUT_COMMIT_ID", "MINE",
    ]  # fmt: skip
    script = "; ".join(f'echo "{name}=${name}"' for name in names)
    tree = {"pfs": {"repo": "texts", "name": "in", "glob": "/*"}}
    engine.create("p", tree, script, transform={"env": {"MINE": "${not} $expanded"}})
    job = engine.settle("p").job.id
    info = engine.pps.inspect_pipeline(Pipeline("default", "p"))
    assert dict(line.split("=", 1) for line in engine.lines("p")) == {
        "PACH_IN_WORKER": "true", "PACH_NAMESPACE": "default", "PPS_PROJECT_NAME": "default", "PPS_PIPELINE_NAME": "p",
        "PPS_SPEC_COMMIT": info.spec_commit.id, "PPS_POD_NAME": "default-p-v1-0", "PPS_WORKER_IP": "127.0.0.1",
        "PACH_JOB_ID": job, "PACH_OUTPUT_COMMIT_ID": job, "MINE": "${not} $expanded",
    }  # fmt: skip


def test_workers_run_at_the_same_time(engine: Engine, tmp_path: Path) -> None:
    """Each of three datums waits until all three are being processed, each by its own worker."""
    engine.repo("texts")
    engine.put("texts", {f"/{number}": "" for number in range(3)})
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    script = f'touch {meeting}/$PPS_POD_NAME; until [ "$(ls {meeting} | wc -l)" = 3 ]; do sleep 0.01; done'
    tree = {"pfs": {"repo": "texts", "glob": "/*"}}
    engine.create("p", tree, script, parallelism_spec={"constant": "3"}, datum_set_spec={"number": "1"})
    assert engine.settle("p").state is JobState.SUCCESS
    assert sorted(path.name for path in meeting.iterdir()) == [f"default-p-v1-{number}" for number in range(3)]
