"""Opt-in pipelines: deployed as the library's others run, with what they read, and deleted again."""

import json
import os
import pty
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer

from pipelines.analysis.measurement import optional_deployment
from pipelines.client.deployment import deployment
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import DeleteFile, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.commands.kit import optional_pipelines
from pipelines.errors import LookalikeError
from pipelines.specifications import drafts, optional_specs, overlays, pipeline_specs, specs_directory
from stages.classify.training import training_parameters
from stages.classify.training.training_parameters import TrainingParameters
from tests.command import Command
from tests.pipelines.stand_ins import copying_spec

pytestmark = pytest.mark.late_alone


def document(name: str, repo: str, image: str = "lookalike-cpu:0.1.0", **fields: Any) -> dict[str, Any]:
    """A specification that copies a repo."""
    found = copying_spec(name, repo)
    found["transform"]["image"] = image
    found["transform"]["env"] |= fields.pop("env", {})
    del found["resource_requests"]
    return {**found, **fields}


GPU = {"resource_limits": {"gpu": {"type": "nvidia.com/gpu", "number": 1}}}
NEAR = {"METRIC": "euclidean", "K": "10", "THRESHOLD": "0.35"}
RAPIDS = "lookalike-rapids:0.1.0"
USUAL = (
    document("index", "images", RAPIDS, env={"METRIC": "euclidean", "K": "3"}, autoscaling=True, **GPU),
    document("render", "index", resource_requests={"cpu": 1.0, "memory": "1Gi"}),
)
OPT_IN = {
    "duplicates/neighbours": document("neighbours", "index", RAPIDS, env=NEAR, autoscaling=True, **GPU),
    "duplicates/duplicates": document("duplicates", "neighbours", resource_requests={"cpu": 1.0, "memory": "2Gi"}),
    "evaluate/evaluate": {
        **document("evaluate", "neighbours"),
        "input": {
            "cross": [
                {"pfs": {"name": "in", "repo": "neighbours", "glob": "/"}},
                {"pfs": {"name": "labels", "repo": "labels", "glob": "/"}},
            ]
        },
    },
}


@pytest.fixture
def here(as_user: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connection:
    """The connection, with specifications in the working directory; none of their pipelines is deployed."""
    write(tmp_path, {each["pipeline"]["name"]: each for each in USUAL} | OPT_IN)
    monkeypatch.chdir(tmp_path)
    return as_user


def write(directory: Path, documents: Mapping[str, Mapping[str, Any]]) -> None:
    for name, each in documents.items():
        path = directory / "specs" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(each, indent=1))


def deploy_usual(connection: Connection, *overlay: str, **environment: str) -> None:
    on_top = [overlays.load(name, environment) for name in overlay]
    found = [each for each in drafts.find([specs_directory.current()]) if not optional_specs.group(each.path)]
    deployment.deploy(connection, [each.spec() for each in overlays.apply(on_top, found)])


def names(connection: Connection) -> set[str]:
    return set(ProjectJobs(connection).pipelines())


def test_a_group_needs_what_its_pipelines_read_in_other_groups(here: Connection) -> None:
    for group in ("duplicates", "evaluate"):
        found = optional_specs.required_specs(specs_directory.current(), group)
        assert [each.name for each in found] == ["neighbours", group]


def test_the_service_of_a_group_is_a_group_of_its_own(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"classify/one": document("one", "images"), "classify/classify-serve": document("classify-serve", "one")},
    )
    here = tmp_path / "specs"
    assert [each.name for each in optional_specs.required_specs(here, "classify")] == ["one"]
    assert [each.name for each in optional_specs.required_specs(here, "classify-serve")] == ["one", "classify-serve"]
    service = here / "classify" / "classify-serve.json"
    assert (optional_specs.group(service), optional_specs.directory(service)) == ("classify-serve", "classify")
    assert optional_specs.command("classify-serve") == "lookalike classify serve --deploy"
    assert optional_specs.removal("classify") == "lookalike classify off"
    assert set(optional_specs.files(here)) == {*here.rglob("*.json")}


def test_a_deployment_leaves_the_opt_in_pipelines_out_until_they_exist(here: Connection, tmp_path: Path) -> None:
    command = Command(tmp_path)
    command.says("deploy")
    assert names(here) == {"index", "render"}
    assert '"missing": []' in command.says("status", "--json").replace("\n", " ").replace("[ ]", "[]")
    done = command.run("deploy", "--set", "K=5")
    assert done.returncode == 0 and "pipeline neighbours" not in done.stdout
    optional_deployment.deploy(here, "duplicates")
    said = command.says("deploy")
    assert "pipeline neighbours: unchanged\n" in said and "evaluate" not in said
    said = command.says("deploy", "--set", "K=7")
    assert "pipeline neighbours: updated, reprocessing everything\n" in said
    assert ProjectJobs(here).pipelines()["neighbours"].details.transform.env["K"] == "7"


def test_a_group_is_deployed_once_and_computes_what_there_is(here: Connection, wait_for_jobs: Any) -> None:
    deploy_usual(here)
    wait_for_jobs(Repository(here, "images").write([PutFile("/a", b"a")]))
    commits = optional_deployment.deploy(here, "duplicates")
    assert {job.pipeline for job in wait_for_jobs(*commits)} >= {"neighbours", "duplicates"}
    assert Repository(here, "duplicates").exists("/a")
    assert names(here) == {"index", "render", "neighbours", "duplicates"}
    assert optional_deployment.deploy(here, "duplicates") == []


def test_labels_get_a_file_so_that_the_cross_has_datums(here: Connection, wait_for_jobs: Any) -> None:
    deploy_usual(here)
    wait_for_jobs(Repository(here, "images").write([PutFile("/a", b"a")]))
    wait_for_jobs(*optional_deployment.deploy(here, "evaluate"))
    assert dict(Repository(here, "labels").read_all("/*")) == {"/labels.csv": b"source,label,name\n"}
    assert Repository(here, "evaluate").exists("/a")
    optional_deployment.remove(here, "evaluate")
    Repository(here, "labels").write([PutFile("/labels.csv", b"source,label\na,1\n")])
    optional_deployment.deploy(here, "evaluate")
    assert Repository(here, "labels").read("/labels.csv") == b"source,label\na,1\n"


def test_parameters_get_the_default_run_so_that_the_cross_has_datums(here: Connection, tmp_path: Path) -> None:
    write(tmp_path, {"classify/train": document("train", "parameters")})
    optional_deployment.deploy(here, "classify")
    (name, content), *more = Repository(here, "parameters").read_all("/*")
    assert (name, more) == ("/linear.json", [])
    assert training_parameters.parse("linear.json", content) == TrainingParameters("linear")
    optional_deployment.remove(here, "classify")
    Repository(here, "parameters").write([DeleteFile("/linear.json"), PutFile("/mine.json", b"{}")])
    optional_deployment.deploy(here, "classify")
    assert [*Repository(here, "parameters").list()] == ["/mine.json"]


def place(connection: Connection, name: str) -> Any:
    return ProjectJobs(connection).pipelines()[name].details


def test_a_group_runs_where_and_as_the_others_were_deployed(here: Connection) -> None:
    deploy_usual(here, "gke", "pull-secret", "registry", "cuda13", REGISTRY="r.io/us", TAG="7", PULL_SECRET="ours")
    optional_deployment.deploy(here, "duplicates")
    neighbours, duplicates = place(here, "neighbours"), place(here, "duplicates")
    assert neighbours.transform.image == "r.io/us/lookalike-rapids-cuda13:7"
    assert duplicates.transform.image == "r.io/us/lookalike-cpu:7"
    assert neighbours.scheduling_spec == place(here, "index").scheduling_spec
    assert neighbours.scheduling_spec.node_selector and not duplicates.scheduling_spec.node_selector
    assert [*neighbours.tolerations] == [*place(here, "index").tolerations] and not duplicates.tolerations
    assert [*duplicates.transform.image_pull_secrets] == [*place(here, "render").transform.image_pull_secrets] != []
    assert neighbours.resource_limits.gpu.number == 1 and neighbours.autoscaling
    assert duplicates.resource_requests.memory == "2Gi"


def test_a_group_has_no_gpus_where_the_others_have_none(here: Connection) -> None:
    deploy_usual(here, *_without_named_pipelines(Path("cpu.json")))
    optional_deployment.deploy(here, "duplicates")
    assert not place(here, "neighbours").resource_limits.gpu.number
    assert place(here, "neighbours").resource_requests.memory == "768Mi"
    assert place(here, "duplicates").resource_requests.memory == "512Mi"


def _without_named_pipelines(to: Path) -> Sequence[str]:
    """The overlay cpu without the pipelines that these specifications lack."""
    written = json.loads((pipeline_specs.SHIPPED_SPECS / "overlays" / "cpu.json").read_text())
    to.write_text(json.dumps({name: each for name, each in written.items() if name != "pipelines"}))
    return [str(to)]


def test_the_metric_is_that_of_the_search_and_k_is_its_own(here: Connection, tmp_path: Path) -> None:
    Command(tmp_path).says("deploy", "--set", "METRIC=cosine", "--set", "K=5")
    optional_deployment.deploy(here, "duplicates")
    env = place(here, "neighbours").transform.env
    assert (env["METRIC"], env["K"], env["LOOKALIKE_STAGE"]) == ("cosine", "10", "neighbours-1")
    assert env["THRESHOLD"] == "0.061"


def test_what_only_a_group_reads_goes_with_it(here: Connection) -> None:
    deploy_usual(here)
    optional_deployment.deploy(here, "duplicates")
    optional_deployment.deploy(here, "evaluate")
    done = {each.name: each.action for each in optional_deployment.remove(here, "duplicates")}
    assert done == {"duplicates": "deleted", "neighbours": "kept for evaluate"}
    assert names(here) == {"index", "render", "neighbours", "evaluate"}
    done = {each.name: each.action for each in optional_deployment.remove(here, "evaluate")}
    assert done == {"evaluate": "deleted", "neighbours": "deleted"}
    assert optional_deployment.remove(here, "evaluate") == []


def test_a_group_needs_the_librarys_pipelines(here: Connection) -> None:
    with pytest.raises(LookalikeError, match="neighbours reads index, which is not deployed: run `lookalike deploy`"):
        optional_deployment.deploy(here, "duplicates")
    assert names(here) == set()


def test_a_group_needs_pipelines_of_this_version(here: Connection, tmp_path: Path) -> None:
    deploy_usual(here)
    write(tmp_path, {"index": document("index", "images", RAPIDS, env={"LOOKALIKE_STAGE": "index-2"}, **GPU)})
    with pytest.raises(LookalikeError, match=r"index was deployed by another version of lookalike \(index-1, not"):
        optional_deployment.deploy(here, "duplicates")
    assert names(here) == {"index", "render"}


def test_a_variable_of_pipelines_that_are_not_deployed(here: Connection, tmp_path: Path) -> None:
    threshold = document("neighbours", "index", RAPIDS, env={"THRESHOLD": "0.1"}, **GPU)
    write(tmp_path, {"duplicates/neighbours": threshold})
    done = Command(tmp_path).run("deploy", "--set", "THRESHOLD=0.2")
    assert done.returncode
    assert "THRESHOLD is a variable of neighbours, which `lookalike duplicates`" in " ".join(done.stderr.split())


def test_an_overlay_of_pipelines_that_are_not_deployed(here: Connection, tmp_path: Path) -> None:
    deploy_usual(here)
    write(tmp_path, {"classify/train": document("train", "parameters")})
    (tmp_path / "mine.json").write_text(json.dumps({"pipelines": {"train": {"transform": {"env": {"A": "1"}}}}}))
    done = Command(tmp_path).run("deploy", "--overlay", "mine.json")
    said = " ".join(done.stderr.replace("│", " ").split())
    assert done.returncode and "mine changes train, which `lookalike classify train` deploys: do that first" in said
    optional_deployment.deploy(here, "classify")
    said = Command(tmp_path).says("deploy", "--overlay", "mine.json")
    assert "pipeline train: updated, reprocessing everything\n" in said


def test_specifications_are_written_with_their_groups(here: Connection, tmp_path: Path) -> None:
    said = Command(tmp_path).says("specs", "-o", "plain")
    assert "wrote plain/duplicates/neighbours.json\n" in said
    assert {each.path.relative_to("plain") for each in drafts.find([Path("plain")])} == {
        path.relative_to(specs_directory.current()) for path in specs_directory.current().rglob("*.json")
    }


def test_a_directory_without_the_groups_has_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "evaluate").mkdir()
    (tmp_path / "evaluate" / "mine.json").write_text(json.dumps(document("mine", "neighbours")))
    others = [each for each in optional_specs.DIRECTORIES if each != "evaluate"]
    shipped = {path for each in others for path in (pipeline_specs.SHIPPED_SPECS / each).glob("*.json")}
    assert shipped
    assert set(optional_specs.optional_files(tmp_path)) == {*shipped, tmp_path / "evaluate" / "mine.json"}


def test_the_work_for_a_large_library_is_told(
    here: Connection, wait_for_jobs: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy_usual(here)
    facts = [PutFile(f"/{each}/index.json", b'{"count": 60000}') for each in "ab"]
    wait_for_jobs(Repository(here, "images").write(facts))
    assert optional_deployment.expected(here) == optional_deployment.ComparisonWork(120_000, 2, 2)
    with optional_pipelines.deployed(here, "duplicates") as ready:
        assert ready
    said = " ".join(capsys.readouterr().out.split())
    assert "120,000 pictures are compared with each other once, as 4 pairs of parts" in said
    assert re.search(
        r"neighbours and duplicates will follow every change, so each later `lookalike add` will take about \d+ "
        r"(?:s|min) longer \(3 of 4 pairs of parts of the library are compared again\); `lookalike duplicates --off` "
        "deletes them again, and --once computes this once and keeps none of them",
        said,
    )
    with optional_pipelines.deployed(here, "duplicates") as ready:
        assert ready
    assert capsys.readouterr().out == ""


def test_what_is_computed_once_leaves_the_pipelines_that_were_there(here: Connection) -> None:
    deploy_usual(here)
    before = names(here)
    with optional_pipelines.deployed(here, "duplicates", once=True) as ready:
        assert ready
        assert names(here) == before | {"neighbours", "duplicates"}
    assert names(here) == before
    optional_deployment.deploy(here, "duplicates")
    with optional_pipelines.deployed(here, "evaluate", once=True) as ready:
        assert ready
        assert "evaluate" in names(here)
    assert names(here) == before | {"neighbours", "duplicates"}
    with optional_pipelines.deployed(here, "duplicates", once=True):
        pass
    assert names(here) == before | {"neighbours", "duplicates"}
    optional_deployment.remove(here, "duplicates")
    with pytest.raises(KeyboardInterrupt), optional_pipelines.deployed(here, "evaluate", once=True):
        raise KeyboardInterrupt
    assert names(here) == before


def test_a_terminal_is_asked_before_pipelines_that_follow_every_change(
    here: Connection, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy_usual(here)
    before = names(here)
    main, its = pty.openpty()
    with os.fdopen(main, "wb", buffering=0) as typed, os.fdopen(its) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        typed.write(b"n\n")
        with pytest.raises(typer.Exit), optional_pipelines.deployed(here, "duplicates"):
            pass
        said = capsys.readouterr()
        assert "neighbours and duplicates will follow every change" in said.out
        assert ("deploy them?" in said.err, names(here)) == (True, before)
        typed.write(b"y\n")
        with optional_pipelines.deployed(here, "duplicates") as ready:
            assert ready
    assert names(here) == before | {"neighbours", "duplicates"}
