"""Egress: a job's output copied elsewhere before the job is over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localpachd.errors import PachError, Unimplemented
from localpachd.pps.log_queries import LogQuery
from localpachd.pps.pps_entities import JobState, Pipeline
from tests.localpachd.pps.engine import Engine
from tests.s3_server import S3Server, s3_server

COPY = 'cp "$PFS"/in/* "$PFS/out/"'


def reads(repo: str) -> dict[str, object]:
    return {"pfs": {"repo": repo, "glob": "/*"}}


def said(engine: Engine, name: str) -> list[str]:
    return [line.message for line in engine.log(LogQuery(Pipeline("default", name), master=True))]


def held(directory: Path) -> dict[str, str]:
    return {each.name: each.read_text() for each in directory.iterdir()}


@pytest.mark.parametrize("field", ["URL", "object_storage"])
def test_output_is_copied_to_a_directory(engine: Engine, tmp_path: Path, field: str) -> None:
    url = f"file://{tmp_path}/elsewhere"
    engine.repo("in")
    engine.put("in", {"/a": "1", "/b": "2"})
    engine.create("p", reads("in"), COPY, egress={field: url if field == "URL" else {"url": url}})
    assert engine.settle("p").state is JobState.SUCCESS
    assert held(tmp_path / "elsewhere") == {"a": "1", "b": "2"}
    assert f"2 bytes copied to {url}" in said(engine, "p")
    engine.put("in", {"/b": "new", "/c": "3"})
    engine.settle("p")
    assert held(tmp_path / "elsewhere") == {"a": "1", "b": "new", "c": "3"}


def test_a_failed_job_copies_nothing(engine: Engine, tmp_path: Path) -> None:
    engine.repo("in")
    engine.put("in", {"/a": "1"})
    engine.create("p", reads("in"), f"{COPY}; false", egress={"URL": f"file://{tmp_path}/elsewhere"})
    assert engine.settle("p").state is JobState.FAILURE
    assert not (tmp_path / "elsewhere").exists()


def test_a_copy_that_fails_is_tried_again_and_after_a_restart(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("a file where a directory should be")
    engine.repo("in")
    engine.put("in", {"/a": "1"})
    engine.create("p", reads("in"), COPY, egress={"URL": f"file://{tmp_path}/elsewhere"})
    engine.until(lambda: any("error processing egress" in line for line in said(engine, "p")))
    assert engine.jobs("p")[0].state is JobState.EGRESSING
    (tmp_path / "elsewhere").unlink()
    engine.restart()
    job = engine.settle("p")
    assert (job.state, job.restart, job.counters.processed) == (JobState.SUCCESS, 1, 1)
    assert held(tmp_path / "elsewhere") == {"a": "1"}


def test_a_job_that_cannot_copy_can_be_stopped(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("a file where a directory should be")
    engine.repo("in")
    engine.put("in", {"/a": "1"})
    engine.create("p", reads("in"), COPY, egress={"URL": f"file://{tmp_path}/elsewhere"})
    engine.until(lambda: engine.jobs("p")[0].state is JobState.EGRESSING)
    engine.stop(engine.jobs("p")[0].job)
    assert engine.settle("p").state is JobState.KILLED


def test_invalid_targets_are_refused(engine: Engine) -> None:
    engine.repo("in")
    with pytest.raises(PachError, match="unrecognized object store: ftp"):
        engine.create("p", reads("in"), COPY, egress={"URL": "ftp://host/x"})
    with pytest.raises(Unimplemented, match="egress to SQL databases"):
        engine.create("p", reads("in"), COPY, egress={"sql_database": {"url": "postgres://x"}})


@pytest.fixture(scope="module")
def moto() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.mark.parametrize(
    ("endpoint", "id", "secret"),
    [
        ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        ("CUSTOM_ENDPOINT", "AMAZON_ID", "AMAZON_SECRET"),  # those of Pachyderm's storage secret
    ],
)
def test_output_is_copied_to_a_bucket(
    engine: Engine, moto: S3Server, monkeypatch: pytest.MonkeyPatch, endpoint: str, id: str, secret: str
) -> None:
    """The bucket is made late: the job waits for it in the state EGRESSING, and says why."""
    for name, value in ((endpoint, moto.url), (id, "key"), (secret, "secret")):
        monkeypatch.setenv(name, value)
    name = endpoint.lower().replace("_", "-")
    engine.repo("in")
    engine.put("in", {"/small": "1", "/large": "2" * (9 << 20)})
    engine.create("p", reads("in"), COPY, egress={"object_storage": {"url": f"s3://{name}/some/dir"}})
    engine.until(lambda: any("error processing egress" in line for line in said(engine, "p")))
    assert engine.jobs("p")[0].state is JobState.EGRESSING
    bucket = moto.bucket(name)
    assert engine.settle("p").state is JobState.SUCCESS
    found = {each["path"]: each["size"] for page in bucket.list() for each in page}
    assert found == {"some/dir/small": 1, "some/dir/large": 9 << 20}
    engine.put("in", {"/small": "new"})
    engine.settle("p")
    assert bytes(bucket.get("some/dir/small").bytes()) == b"new"
