"""`lookalike classify serve`: as a process that ends by itself, and as a pipeline beside the one of searches."""

import http.client
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import lookalike
from pipelines.client import branches
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.client.services import service_credentials, service_discovery
from pipelines.client.services.service_roles import CLASSIFY, SEARCH
from pipelines.errors import LookalikeError
from stages.record.origin import Origin
from tests.command import Command
from tests.pipelines.commands.service.service_processes import asked, serving
from tests.pipelines.stand_ins import copying_spec
from tests.servers import OwnPort
from tests.stages.serving import models
from tests.stages.serving.services import made

pytestmark = pytest.mark.late_alone

SERVE = ("classify", "serve")


def test_without_a_model_it_says_what_to_promote_and_is_no_service_for_others(
    as_user: Connection, command: Command
) -> None:
    with lookalike.Library(as_user, None, print) as library, pytest.raises(LookalikeError, match="no service that"):
        library.classify(made(1))
    with serving(command, SERVE) as (process, url):
        assert process.stdout is not None
        assert process.stdout.readline() == "no model is promoted: promote one with `lookalike classify promote`\n"
        status, said = asked(url, "/classes")
        assert (status, json.loads(said)["error"]["code"]) == (409, "no-model")
        assert asked(url, "/ready")[0] == 200
        assert json.loads(asked(url, "/status")[1])["search"] is False
        assert service_discovery.running(as_user) is None
        assert service_discovery.running(as_user, CLASSIFY) is None
        process.send_signal(signal.SIGINT)
        _, complained = process.communicate(timeout=60)
        assert (process.returncode, complained) == (130, "lookalike: the service has ended\n")


def test_it_ends_with_status_0_when_nobody_asks(as_user: Connection, command: Command) -> None:
    with serving(command, SERVE, "--idle-exit", "2") as (process, url):
        assert asked(url, "/health")[0] == 200
        said, complained = process.communicate(timeout=60)
        assert (process.returncode, complained) == (0, "")
        assert said.endswith("no request for 2 s: the service ends\n")
    assert service_discovery.running(as_user, CLASSIFY) is None


@pytest.mark.parametrize("option", [("--at", "f" * 32), ("--listen", "0.0.0.0:1"), ("--idle-exit", "60")])
def test_options_of_a_service_that_runs_here_are_refused(command: Command, option: tuple[str, str]) -> None:
    done = command.run("classify", "serve", "--deploy", *option)
    assert done.returncode == 2
    assert f"{option[0]} is for a service that runs here" in done.stderr


@pytest.fixture
def here(as_user: Connection, command: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """The connection, with specifications in the directory of the command: those that both services read."""
    specs = command.directory / "specs"
    (specs / "classify").mkdir(parents=True)
    for name, repo in (("index", "images"), ("render", "index"), ("classify/select", "images")):
        (specs / f"{name}.json").write_text(json.dumps(copying_spec(Path(name).name, repo)))
    monkeypatch.chdir(command.directory)
    yield as_user
    there = ProjectJobs(as_user).pipelines()
    for role in (CLASSIFY, SEARCH):
        if role.pipeline in there:
            as_user.client.delete_pipeline(role.pipeline, project_name=as_user.project)
        if service_credentials.exists(as_user, role):
            as_user.client.delete_secret(role.secret)


def test_it_is_deployed_beside_the_search_and_deleted_alone(here: Connection, command: Command) -> None:
    command.says("deploy")
    said = command.says("classify", "serve", "--deploy", "--port", "30994")
    assert "pipeline select: created\n" in said
    assert "pipeline classify-serve: created\n" in said
    assert said.endswith("`lookalike classify promote`; Pachyderm then starts the service\n")
    details = ProjectJobs(here).pipelines()[CLASSIFY.pipeline].details
    assert details.service.external_port == 30994
    assert [(each.name, each.mount_path) for each in details.transform.secrets] == [
        ("lookalike-classify-serve", "/secrets/lookalike-classify-serve")
    ]
    assert ProjectJobs(here).pipelines()["select"].details.service.external_port == 0
    command.says("serve", "--deploy", "--port", "30993")
    assert service_discovery.token_file(here).read_text() != service_discovery.token_file(here, CLASSIFY).read_text()
    found = service_discovery.deployed(here, CLASSIFY)
    assert found is not None
    assert found.url.endswith(":30994")
    assert "pipeline classify-serve: unchanged\n" in command.says("deploy")
    said = command.says("classify", "serve", "--off")
    assert said.splitlines()[1:] == ["pipeline classify-serve: deleted", "secret lookalike-classify-serve: deleted"]
    assert {"select", SEARCH.pipeline} <= ProjectJobs(here).pipelines().keys()
    assert service_credentials.exists(here)


@pytest.mark.timeout(300)
def test_the_deployed_one_answers_once_a_model_is_promoted(
    here: Connection, command: Command, own_port: OwnPort, tmp_path: Path
) -> None:
    """The pipeline runs the real program on a real model, which takes pictures and so needs no backbone."""
    command.says("deploy")
    port = own_port(range(31000, 32000))
    command.says("classify", "serve", "--deploy", "--port", str(port))
    of = Origin("5eed" * 16, "pad", 32, 8, "small at 32 px")
    directory = models.write(tmp_path / "model", of, 1, takes="pictures")
    commit = Repository(here, "images").write(
        [PutFile(f"/{each.name}", each.read_bytes()) for each in directory.iterdir()]
    )
    here.client.wait_commit(commit)
    assert not Repository(here, "select", branches.head(here, "select", "production")).exists("/")
    branches.move(here, "select", "production", commit)
    said = command.says("classify", "serve", "--deploy")
    assert f"lookalike classify serve: http://127.0.0.1:{port}\n" in said
    found = service_discovery.running(here, CLASSIFY)
    assert found is not None
    assert found.status["classify"]["model"]["run"] == "run-1"
    assert found.status["commits"]["select"] == commit
    assert service_discovery.running(here) is None
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/classify", made(1), {"Content-Type": "image/png", **found.headers()})
    answer = json.loads(connection.getresponse().read())
    assert sum(each["probability"] for each in answer["pictures"][0]["labels"]) == pytest.approx(1, abs=1e-5)
    with lookalike.Library(here, None, print) as library:
        labels = library.classify(made(1), top=2)
        assert [(each.label, each.probability) for each in labels] == [
            (each["label"], each["probability"]) for each in answer["pictures"][0]["labels"][:2]
        ]
        assert labels.commits["select"] == commit


def test_the_manifests_are_written_for_both_services(command: Command) -> None:
    command.says("specs", "-o", "plain", "--set", "PROXY=labels.example.org")
    written = {path.name for path in (command.directory / "plain").glob("*.yaml")}
    assert written >= {"lookalike-serve.yaml", "lookalike-classify-serve.yaml", "lookalike-classify-serve-knative.yaml"}
    (made,) = yaml.safe_load_all((command.directory / "plain" / "lookalike-classify-serve-knative.yaml").read_text())
    assert made["kind"] == "Service"
