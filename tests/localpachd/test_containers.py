"""`--runner docker` from a client's view: pipelines with /pfs in their code, in their own images."""

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pps import pps_pb2

from tests import containers
from tests.conditions import until
from tests.servers import StartPachd

in_containers = pytest.mark.docker


@pytest.fixture
def image() -> str:
    """The image of tests; skips if there is no engine."""
    containers.found()
    return containers.image()


@pytest.fixture
def late() -> Iterator[str]:
    """The name of an image that does not exist yet."""
    name = f"localpachd-test-late:{uuid.uuid4().hex[:8]}"
    yield name
    containers.unload(name)


def create(client: Client, name: str, repo: str, image: str, script: str, **fields: Any) -> None:
    transform = pps_pb2.Transform(image=image, cmd=["sh", "-e", "-c", script], **fields.pop("transform", {}))
    pfs = pps_pb2.PFSInput(name="in", repo=repo, glob="/*", lazy=fields.pop("lazy", False))
    client.create_pipeline(name, transform, input=pps_pb2.Input(pfs=pfs), **fields)


def put(client: Client, **files: bytes) -> None:
    with client.modify_file_client(("texts", "master")) as writer:
        for name, data in files.items():
            writer.put_file_from_bytes(f"/{name}", data)


def newest(client: Client, name: str) -> pps_pb2.JobInfo:
    return next(iter(client.list_job(name)))


def finished(client: Client, name: str) -> pps_pb2.JobInfo:
    until(lambda: list(client.list_job(name)))
    return next(iter(client.inspect_job(newest(client, name).job.id, name, wait=True)))


def content(client: Client, repo: str, path: str) -> bytes:
    return bytes(client.get_file((repo, "master"), path).read())


def state(client: Client, name: str) -> tuple[str, str]:
    info = next(iter(client.inspect_pipeline(name, details=True)))
    return pps_pb2.PipelineState.Name(info.state), info.reason


@in_containers
def test_pipelines_run_in_their_images_one_after_the_other(start_pachd: StartPachd, tmp_path: Path, image: str) -> None:
    client = start_pachd(tmp_path / "root", "--runner", "docker").client()
    client.create_repo("texts")
    put(client, a=b"one two\n", b=b"three\n")
    words = "cp /etc/of-the-image /pfs/out/image-${in##*/}; wc -w < $in > /pfs/out/${in##*/}"
    create(client, "words", "texts", image, words, parallelism_spec=pps_pb2.ParallelismSpec(constant=2))
    create(client, "copies", "words", image, "cat < $in > /pfs/out/${in##*/}", lazy=True)
    assert finished(client, "copies").state == pps_pb2.JOB_SUCCESS
    assert [content(client, "copies", path).split() for path in ("/a", "/b")] == [[b"2"], [b"1"]]
    assert len([each for each in client.list_file(("copies", "master"), "/") if "/image-" in each.file.path]) == 2
    assert state(client, "words") == ("PIPELINE_RUNNING", "")
    put(client, b=b"three four five\n")
    client.wait_commit(newest(client, "words").job.id)
    assert content(client, "copies", "/b").split() == [b"3"]
    assert newest(client, "words").data_skipped == 1


@in_containers
def test_a_stopped_job_leaves_no_container(start_pachd: StartPachd, tmp_path: Path, image: str) -> None:
    root = tmp_path / "root"
    client = start_pachd(root, "--runner", "docker").client()
    client.create_repo("texts")
    put(client, a=b"")
    create(client, "sleeps", "texts", image, "echo here; sleep 60")
    until(lambda: list(client.list_job("sleeps")))
    job = newest(client, "sleeps").job.id
    assert "here" in (line.message for line in client.get_job_logs("sleeps", job, follow=True))
    assert len(containers.running(f"localpachd.root={root}")) == 1
    client.stop_job(job, "sleeps")
    until(lambda: not containers.running(f"localpachd.root={root}"))


@in_containers
def test_a_killed_server_continues_and_its_containers_are_removed(
    start_pachd: StartPachd, tmp_path: Path, image: str
) -> None:
    root = tmp_path / "root"
    server = start_pachd(root, "--runner", "docker")
    client = server.client()
    client.create_repo("texts")
    put(client, a=b"", b=b"")
    script = "echo at $in; [ $in = /pfs/in/a ] || sleep 60"
    create(client, "sleeps", "texts", image, script, datum_set_spec=pps_pb2.DatumSetSpec(number=1))
    until(lambda: list(client.list_job("sleeps")))
    job = newest(client, "sleeps").job.id
    assert "at /pfs/in/b" in (line.message for line in client.get_job_logs("sleeps", job, follow=True))
    server.kill()
    until(lambda: not containers.running(f"localpachd.root={root}"))
    client = start_pachd(root, "--runner", "docker").client()
    lines = (line.message for line in client.get_job_logs("sleeps", job, follow=True))
    assert "at /pfs/in/b" in lines and "at /pfs/in/b" in lines, "the datum must be processed a second time"
    client.stop_job(job, "sleeps")


@in_containers
def test_a_missing_image_makes_the_pipeline_crash(
    start_pachd: StartPachd, tmp_path: Path, image: str, late: str
) -> None:
    client = start_pachd(tmp_path / "root", "--runner", "docker").client()
    client.create_repo("texts")
    create(client, "late", "texts", late, "echo x > /pfs/out/x")
    put(client, a=b"")
    until(lambda: state(client, "late")[0] == "PIPELINE_CRASHING")
    reason = f"ErrImagePull: image {late} is not on this machine and cannot be pulled: "
    assert state(client, "late")[1].startswith(reason)
    assert newest(client, "late").state in (pps_pb2.JOB_CREATED, pps_pb2.JOB_STARTING)
    containers.tag(image, late)
    assert finished(client, "late").state == pps_pb2.JOB_SUCCESS
    assert state(client, "late") == ("PIPELINE_RUNNING", "")


@in_containers
def test_a_spout_commits_from_its_container(start_pachd: StartPachd, tmp_path: Path, image: str) -> None:
    client = start_pachd(tmp_path / "root", "--runner", "docker").client()
    script = (
        "import json, os, python_pachyderm, time\n"
        "config = json.load(open(os.environ['PACH_CONFIG']))['v2']\n"
        "address = config['contexts'][config['active_context']]['pachd_address']\n"
        "host, port = address.removeprefix('grpc://').split(':')\n"
        "with python_pachyderm.Client(host, int(port)).modify_file_client(('spout', 'master')) as writer:\n"
        "    writer.put_file_from_bytes('/said', open('/etc/of-the-image', 'rb').read())\n"
        "print('done', flush=True)\n"
        "time.sleep(60)\n"
    )
    transform = pps_pb2.Transform(image=image, cmd=["python3", "-c", script])
    client.create_pipeline("spout", transform, spout=pps_pb2.Spout())
    lines = (line.message for line in client.get_pipeline_logs("spout", follow=True))
    assert next(line for line in lines if line == "done" or "starting again" in line) == "done"
    assert content(client, "spout", "/said") == b"made for a test\n"


def test_without_an_engine_the_server_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    asked = subprocess.run(
        [sys.executable, "-m", "localpachd", "--root", str(tmp_path / "root"), "--port", "0", "--runner", "docker"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (asked.returncode, asked.stdout) == (1, "")
    assert asked.stderr.startswith("localpachd: --runner docker: no container engine answers: start Docker or Podman (")
