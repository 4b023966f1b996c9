"""The command as people type it: its output and its exit status, and never a traceback."""

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.library.datasets.samples import library_crops
from stages.backbone.photographs import open_photograph
from tests.command import Command
from tests.pipelines.stand_ins import deploy_specs, shell_spec
from tests.stages.scenes import saved

pytestmark = pytest.mark.late_alone

SMALL = saved(Image.new("L", (8, 8)))
NO_SERVER = "no Pachyderm answers at grpc://127.0.0.1:"


@pytest.fixture
def picture(command: Command) -> Path:
    path = command.directory / "cat [1] 😀.jpg"
    next(library_crops(open_photograph("cat"), "cat", 0)).save(path)
    return path


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address without a server."""
    with socket.socket() as taken:  # bound but not listening, so that nobody else can listen there
        taken.bind(("127.0.0.1", 0))
        yield f"grpc://127.0.0.1:{taken.getsockname()[1]}"


EVERY = (["status"], ["deploy"], ["add", "x"], ["query", "x"], ["results"], ["model", "push", "resnet50"])


def test_without_a_server_every_command_says_how_to_get_one(command: Command, nowhere: str) -> None:
    assert "start one here with `lookalike up`" in command.fails("status")
    command.environment["PACHD_ADDRESS"] = nowhere
    (command.directory / "x").write_bytes(SMALL)
    for arguments in EVERY:
        assert command.fails(*arguments).startswith(NO_SERVER)
    assert "not running" in command.says("down")
    assert command.as_process.fails("status").startswith(NO_SERVER)


def test_on_an_empty_server(as_user: Connection, command: Command, picture: Path) -> None:
    assert as_user.project in command.says("status")
    assert "no result sheets yet" in command.says("results")
    assert "the repo images does not exist: create the repos" in command.fails("add", picture)
    assert "the repo queries does not exist" in command.fails("query", picture)
    assert "the repo images does not exist" in command.fails("remove", "cat.jpg")
    assert "no result sheet for cat" in command.fails("results", "cat")


def test_wrong_paths_and_names(as_user: Connection, sheets: Connection, command: Command) -> None:
    (command.directory / "empty").mkdir()
    assert command.fails("add", "gone.jpg") == "gone.jpg: not found"
    assert command.fails("query", "gone.jpg") == "gone.jpg: not found"
    assert "nothing was put" in command.fails("add", "empty")
    assert "empty has no pictures" in command.fails("query", "empty")
    assert "no result sheet for nosuch" in command.fails("results", "nosuch")
    assert "'nosuch' is not a valid commit or date" in command.fails("results", "--at", "nosuch")
    done = command.run("deploy", "--specs", "gone")
    assert done.returncode == 2
    assert "gone is neither a specification nor a directory" in done.stderr


def test_from_pictures_to_sheets(
    as_user: Connection, sheets: Connection, preprocessing: Connection, command: Command, picture: Path
) -> None:
    (command.directory / "bad.jpg").write_bytes(b"")
    said = command.says("add", "-v", picture.name, "bad.jpg")
    assert "put 2 files into images: commit " in said
    assert "preprocess: success, 2 of 2 datums" in said
    assert "1 file rejected:\n  images: bad.jpg: the file is empty" in said
    said = command.says("query", picture.name)
    assert f"{picture.name}: results/{picture.name}/index.html, results/{picture.name}/grid.png" in said
    assert (command.directory / "results" / picture.name / "index.html").is_file()
    said = command.says("status")
    assert "images: bad.jpg: the file is empty" in said
    assert "not deployed: features-queries, features, partition, index, search" in said
    assert "the repo models has no backbone" in said
    assert "removed 1 file from images" in command.says("remove", "bad.jpg")
    said = command.says("status")
    assert "bad.jpg" not in said
    assert "file rejected" not in said
    assert command.says("add", "--no-wait", picture.name).endswith("1 picture unchanged\n")
    (command.directory / picture.name).write_bytes(SMALL)
    said = command.says("add", "--no-wait", picture.name)
    assert "1 picture replaced\n" in said
    assert said.endswith("its jobs are running: see `lookalike status`\n")
    assert picture.name in command.says("results", "-o", "elsewhere", picture.name)
    assert (command.directory / "elsewhere" / picture.name / "grid.png").is_file()


def write_spec(command: Command, **fields: Any) -> None:
    document = {
        "pipeline": {"name": "p"},
        "input": {"pfs": {"repo": "queries", "glob": "/"}},
        "transform": {"image": "shell:1", "cmd": ["true"]},
        **fields,
    }
    directory = command.directory / "specs"
    directory.mkdir(exist_ok=True)
    (directory / "p.json").write_text(json.dumps(document, indent=1))


def test_deploy_reports_what_it_does(as_user: Connection, command: Command) -> None:
    write_spec(command)
    assert command.says("deploy", "--specs", "specs").splitlines()[:2] == [
        f"writing to {as_user.address}, pachctl's context test, project {as_user.project}",
        "repo queries: created",
    ]
    write_spec(command, transform={"image": "shell", "cmd": ["false"]})
    said = command.says("deploy", "--specs", "specs")
    assert "warning specs/p.json:12 transform.image\n  does not name a version" in said
    assert "pipeline p: updated, reprocessing everything" in said


def test_deploy_checks_first(as_user: Connection, command: Command) -> None:
    write_spec(command, datum_set_spec={}, parallelism_spec={"constant": 2})
    done = command.run("deploy", "--specs", "specs")
    assert done.returncode == 1
    assert "error specs/p.json:17 datum_set_spec\n  is empty: " in done.stdout
    assert done.stderr == ("lookalike: nothing was deployed: fix the errors, or deploy in spite of them with --force\n")
    assert not ProjectJobs(as_user).pipelines()
    assert "pipeline p: created" in command.says("deploy", "--specs", "specs", "--force")


def test_deploy_applies_overlays(as_user: Connection, command: Command) -> None:
    write_spec(command)
    (command.directory / "mine.json").write_text(json.dumps({"all": {"datumTries": "${TRIES}"}}))
    done = command.run("deploy", "--specs", "specs", "--overlay", "mine.json")
    assert done.returncode == 2
    assert "overlay mine needs TRIES=… in the environment" in done.stderr
    command.environment["TRIES"] = "1"
    command.says("deploy", "--specs", "specs", "--overlay", "mine.json")
    assert ProjectJobs(as_user).pipelines()["p"].details.datum_tries == 1


def test_datums_are_counted_against_repos(as_user: Connection, command: Command) -> None:
    write_spec(command, input={"pfs": {"repo": "queries", "glob": "/*"}})
    assert "neither a directory nor a repo with files" in command.fails("check", "specs", "--against", "queries")
    as_user.client.create_repo("queries", project_name=as_user.project)
    Repository(as_user, "queries").write([PutFile("/a/1", b"1"), PutFile("/a/2", b"2"), PutFile("/b", b"3")])
    assert "  this gives 2 datums\n" in command.says("check", "specs", "--against", "queries")


def test_a_failed_job_is_a_failure(as_user: Connection, command: Command) -> None:
    deploy_specs(as_user, shell_spec("render", "queries", "echo no; exit 1", datum_tries=1))
    (command.directory / "a").write_bytes(SMALL)
    assert "render did not succeed: see `lookalike status` for the reasons" in command.fails("query", "a")
    assert "render failed on /a: " in command.says("status")


def test_names_cannot_write_on_the_terminal(as_user: Connection, sheets: Connection, command: Command) -> None:
    odd = "[red]a :smile: \x1b[31m.jpg"
    (command.directory / odd).write_bytes(SMALL)
    assert "[red]a :smile: ␛[31m.jpg: results/" in command.says("query", odd)


def test_names_that_are_not_valid_text(as_user: Connection, sheets: Connection, command: Command) -> None:
    command.environment["PYTHONIOENCODING"] = "ascii"
    (command.directory / "\udcff😀.jpg").write_bytes(SMALL)
    assert "results" in command.as_process.says("query", "\udcff😀.jpg")


def test_interrupting_the_wait_says_that_the_jobs_continue(as_user: Connection, command: Command) -> None:
    deploy_specs(as_user, shell_spec("render", "queries", "sleep 60"))
    (command.directory / "a").write_bytes(SMALL)
    typed = command.start("query", "-v", "a", interruptible=True)
    assert typed.stdout is not None
    assert "writing to " in typed.stdout.readline()
    assert "put 1 file" in typed.stdout.readline()
    typed.send_signal(signal.SIGINT)
    said, complained = typed.communicate(timeout=60)
    assert (typed.returncode, said) == (130, "")
    assert complained == "lookalike: no longer waiting, but the jobs continue: see `lookalike status`\n"
    assert Repository(as_user, "queries").exists("/a")
