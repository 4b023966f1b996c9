"""`lookalike serve --deploy` and `--off`: what they create, take over, keep and refuse."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.client.deployment import deployment
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.client.services import service_credentials, service_discovery, service_roles
from pipelines.commands.service import service_deployment
from pipelines.commands.service.service_options import ServiceOptions
from pipelines.errors import LookalikeError
from pipelines.specifications import drafts, overlays, specs_directory
from stages.datum.contract import StageError
from tests.command import Command
from tests.pipelines.stand_ins import copying_spec

pytestmark = pytest.mark.late_alone


@pytest.fixture
def here(as_user: Connection, command: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """The connection, with specifications in the directory of the command, of which none is deployed. The secret, which
    all projects of a server share, is deleted in the end."""
    specs = command.directory / "specs"
    specs.mkdir()
    for name, repo in (("index", "images"), ("render", "index")):
        (specs / f"{name}.json").write_text(json.dumps(copying_spec(name, repo)))
    monkeypatch.chdir(command.directory)
    yield as_user
    if service_roles.SEARCH.pipeline in ProjectJobs(as_user).pipelines():
        as_user.client.delete_pipeline(service_roles.SEARCH.pipeline, project_name=as_user.project)
    if service_credentials.exists(as_user):
        as_user.client.delete_secret(service_roles.SEARCH.secret)


def deploy_usual(connection: Connection, *overlay: str, **environment: str) -> None:
    found = overlays.apply(
        [overlays.load(name, environment) for name in overlay], drafts.find([specs_directory.current()])
    )
    deployment.deploy(connection, [each.spec() for each in found])


def running(connection: Connection) -> Any:
    return ProjectJobs(connection).pipelines()[service_roles.SEARCH.pipeline].details


def test_it_needs_the_pipelines_that_it_reads(here: Connection, command: Command) -> None:
    assert "serve reads index, which is not deployed: run `lookalike deploy` first" in command.fails(
        "serve", "--deploy"
    ).replace("\n", " ")
    assert not service_credentials.exists(here)


def test_it_is_created_once_keeps_its_choices_and_is_deleted_with_its_secret(
    here: Connection, command: Command
) -> None:
    command.says("deploy")
    said = command.says("serve", "--deploy", "--port", "30999")
    assert "pipeline serve: created\n" in said
    assert f"the token that it asks for is in {service_discovery.token_file(here)}\n" in said
    assert said.endswith("the index has no pictures yet: Pachyderm starts the service when it has some\n")
    assert running(here).service.external_port == 30999
    assert "pipeline serve: unchanged\n" in command.says("serve", "--deploy")
    assert "pipeline serve: unchanged\n" in command.says("deploy")
    said = command.says("serve", "--deploy", "--behind-proxy", "pictures.example.org")
    assert "pipeline serve: updated, reprocessing everything\n" in said
    assert (running(here).service.external_port, running(here).transform.env["PROXY"]) == (
        30999,
        "pictures.example.org",
    )
    assert "pipeline serve: unchanged\n" in command.says("deploy")
    found = service_discovery.deployed(here)
    assert found is not None
    assert found.url == "https://pictures.example.org"
    assert "open      https://pictures.example.org\n" in command.says("status")
    (command.directory / "token").write_text("0123456789abcdef")
    said = command.says("serve", "--deploy", "--token-file", "token")
    assert "pipeline serve: updated, reprocessing everything\n" in said
    assert service_discovery.token_file(here).read_text() == "0123456789abcdef\n"
    said = command.says("serve", "--off")
    assert said.splitlines()[1:] == ["pipeline serve: deleted", "secret lookalike-serve: deleted"]
    assert service_discovery.deployed(here) is None
    assert not service_discovery.token_file(here).exists()
    assert command.says("serve", "--off").splitlines()[1:] == ["serve: not deployed, so there is nothing to do"]


def test_options_of_a_service_that_runs_here_are_refused(command: Command) -> None:
    for option in (("--at", "master"), ("--listen", "0.0.0.0:1"), ("--fetch-from", "10.0.0.0/8")):
        done = command.run("serve", "--deploy", *option)
        assert done.returncode == 2
        assert f"{option[0]} is for a service that runs here" in done.stderr


def test_it_takes_registry_nodes_and_secrets_over(here: Connection, command: Command) -> None:
    nodes = {
        "pipelines": {"render": {"scheduling_spec": {"node_selector": {"disk": "fast"}}}},
        "all": {"resource_requests": {"memory": "7Gi"}},
    }
    (command.directory / "nodes.json").write_text(json.dumps({"description": "Nodes.", **nodes}))
    deploy_usual(here, "registry", "pull-secret", "nodes.json", REGISTRY="r.io/t", TAG="7", PULL_SECRET="regcred")
    command.says("serve", "--deploy", "--port", "30997")
    details = running(here)
    assert details.transform.image == "r.io/t/lookalike-serve:7"
    assert list(details.transform.image_pull_secrets) == ["regcred"]
    assert details.scheduling_spec.node_selector == {"disk": "fast"}
    assert details.resource_requests.memory == "4Gi"


def test_another_version_is_to_be_deployed_first(here: Connection, command: Command) -> None:
    deploy_usual(here)
    changed = copying_spec("index", "images")
    changed["transform"]["env"]["LOOKALIKE_STAGE"] = "index-2"
    (Path("specs") / "index.json").write_text(json.dumps(changed))
    said = command.fails("serve", "--deploy", "--port", "30996").replace("\n", " ")
    assert "index was deployed by another version of lookalike (index-1, not index-2): run `lookalike deploy`" in said


def test_a_cluster_needs_tls_or_a_proxy(
    here: Connection, like_a_cluster: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    """localpachd's services are reached from its own machine alone. There is a better way on a cluster, which is
    named."""
    deploy_usual(here)
    with pytest.raises(StageError, match="others can read the requests: name --tls-cert and --tls-key, or the proxy"):
        service_deployment.deploy(like_a_cluster, ServiceOptions(port=30995))
    assert not service_credentials.exists(here)
    service_deployment.deploy(like_a_cluster, ServiceOptions(port=30995, proxy="pictures.example.org"))
    assert running(here).transform.env["PROXY"] == "pictures.example.org"
    assert "a Deployment has no such gap: `lookalike specs` writes it" in capsys.readouterr().out


def test_the_token_of_somebody_else_is_asked_for(here: Connection, command: Command) -> None:
    deploy_usual(here)
    here.client.create_secret(service_roles.SEARCH.secret, {"token": "0123456789abcdef"})
    assert "ask for it and name its file with --token-file" in command.fails("serve", "--deploy").replace("\n", " ")
    assert service_roles.SEARCH.pipeline not in ProjectJobs(here).pipelines()


def test_a_port_that_nodes_do_not_open_is_refused(here: Connection, command: Command) -> None:
    deploy_usual(here)
    with pytest.raises(LookalikeError, match="8080 is outside 30000 to 32767"):
        service_deployment.deploy(here, ServiceOptions(port=8080))
