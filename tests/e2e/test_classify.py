"""Classifiers trained with all real pipelines: the datums that each change computes, equal bytes, failures of single
runs, promotions, and a server killed in a training."""

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipelines.client import branches
from pipelines.client.repository import DeleteFile, PutFile
from pipelines.cluster import gpu_holders
from pipelines.specifications import optional_specs
from pipelines.specifications.pipeline_specs import SHIPPED_SPECS
from stages.classify.training import run_records
from stages.record.pfs_names import unescape
from tests.conditions import until
from tests.e2e.world import MakeWorld, Paint, World, library_specs
from tests.servers import StartPachd

pytestmark = pytest.mark.timeout(600)

OPT_IN = optional_specs.required_specs(SHIPPED_SPECS, "classify")
NAMES = tuple(spec.name for spec in OPT_IN)
SEEDS = range(3)
PER_PICTURE = ("preprocess", "features", "partition", "index")
QUICK = {"quick.json": {"epochs": 5, "folds": 2}}


def library(paint: Paint, each: int = 10) -> dict[str, bytes]:
    """Near-duplicates of three pictures, in three folders."""
    return {f"set/{seed}/{number}.png": paint(seed, number) for seed in SEEDS for number in range(each)}


def labels_of(names: Iterable[str]) -> bytes:
    rows = "".join(f"{name},{name.split('/')[1]}\n" for name in names)
    return f"source,label\n{rows}".encode()


def put_labels(world: World, names: Iterable[str]) -> str:
    """Labels pictures with their folders; returns the commit."""
    return world.repo("labels").write([PutFile("/mine.csv", labels_of(names))])


def put_parameters(world: World, files: Mapping[str, object]) -> str:
    return world.repo("parameters").write(
        [PutFile(f"/{name}", json.dumps(each).encode()) for name, each in files.items()]
    )


def begun(
    world: World,
    backbone: Path,
    pictures: Mapping[str, bytes],
    parameters: Mapping[str, object] = QUICK,
    labelled: Iterable[str] | None = None,
) -> World:
    """The world with a library in which all pictures, or those named, are labelled; trainings have begun."""
    world.deploy(library_specs())
    for repo in ("labels", "parameters"):
        world.client.create_repo(repo)
    put_labels(world, pictures if labelled is None else labelled)
    put_parameters(world, parameters)
    world.settle(world.add(pictures), world.push(backbone))
    world.deploy([*library_specs(), *OPT_IN])
    return world


def trained(world: World) -> World:
    """The world when the newest trainings have ended."""
    world.settle(*(world.newest(each) for each in NAMES))
    return world


@pytest.fixture(scope="module")
def shared(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> World:
    """A library with one training."""
    return trained(begun(make_world("classifying"), backbones["first"], library(paint)))


@pytest.fixture
def world(shared: World, paint: Paint) -> World:
    """The same, with its first pictures, labels and parameters, whatever other tests have made of them."""
    pictures = library(paint)
    more = [name for path in shared.repo("images").list() if (name := unescape(path[1:])) not in pictures]
    parameters = shared.repo("parameters")
    others = [DeleteFile(path) for path in parameters.list() if path[1:] not in QUICK]
    commits = [shared.remove(*more)] if more else []
    commits += [parameters.write(others)] if others else []
    shared.settle(*commits, put_labels(shared, pictures))
    return shared


def run_of(world: World, name: str = "quick") -> Any:
    return json.loads(world.repo("train").read(f"/{name}/{run_records.FILE}"))


def metrics(world: World) -> Any:
    return json.loads(world.repo("select").read("/metrics.json"))


def counts(jobs: Mapping[str, Any]) -> dict[str, int]:
    """The datums that a change has computed, of those pipelines that computed some."""
    return {name: job.processed for name, job in jobs.items() if job.processed}


def test_a_text_tower_trains_nothing_again(world: World, backbones: dict[str, Path]) -> None:
    before = {name: world.hashes(name) for name in ("train", "select")}
    jobs = world.settle(world.push(backbones["words"]))
    assert {"train", "select"} <= jobs.keys()
    assert counts(jobs) == {}
    assert {name: world.hashes(name) for name in before} == before


@pytest.mark.only_in_all
def test_each_change_computes_what_follows_from_it(
    world: World, make_world: MakeWorld, backbones: dict[str, Path], paint: Paint, compares: bool
) -> None:
    pictures = library(paint)
    first = run_of(world)
    assert (first["failure"], first["labels"]) == ("", ["0", "1", "2"])
    assert sum(first["pictures"].values()) == 30
    assert metrics(world)["run"] == "quick"

    # A picture that nobody labels trains nothing again.
    jobs = world.settle(world.add({"set/loose.png": paint(7)}))
    assert counts(jobs) == dict.fromkeys((*PER_PICTURE, "annotations", "labelled"), 1)

    # One more labelled picture: its label is known first, and reported.
    more = {"set/0/new.png": paint(0, 50)}
    jobs = world.settle(put_labels(world, [*pictures, *more]))
    assert set(counts(jobs)) == {"annotations", "select"} and jobs["select"].processed == 1
    assert metrics(world)["left_out"]["unknown"] == {"count": 1, "examples": ["set/0/new.png"]}
    jobs = world.settle(world.add(more))
    assert counts(jobs) == dict.fromkeys((*PER_PICTURE, "annotations", "labelled", "train", "select"), 1)
    assert sum(run_of(world)["pictures"].values()) == 31

    # Another file of parameters is one run.
    jobs = world.settle(put_parameters(world, {"wide.json": {"head": "mlp", "hidden": [16], "epochs": 5, "folds": 2}}))
    assert counts(jobs) == {"train": 1, "select": 1}
    assert (jobs["train"].skipped, run_of(world, "wide")["failure"]) == (1, "")
    assert world.taken_over(NAMES) == set(NAMES)

    if compares:
        everything = {**pictures, "set/loose.png": paint(7), **more}
        parameters = {**QUICK, "wide.json": {"head": "mlp", "hidden": [16], "epochs": 5, "folds": 2}}
        again = trained(begun(make_world("again"), backbones["first"], everything, parameters, [*pictures, *more]))
        assert {name: world.hashes(name) for name in NAMES} == {name: again.hashes(name) for name in NAMES}


def test_a_run_that_cannot_succeed_leaves_the_others_alone(world: World, paint: Paint) -> None:
    wild = {"learning_rate": 10.0, "weight_decay": 1.0, "epochs": 100, "folds": 2}
    world.settle(put_parameters(world, {"typo.json": {"epoch": 5}, "wild.json": wild}))
    assert run_of(world, "typo")["failure"] == "typo.json: epoch is not a parameter: did you mean epochs?"
    assert "the training diverged in epoch" in run_of(world, "wild")["failure"]
    assert metrics(world)["runs"] == {"succeeded": 1, "failed": 2} and metrics(world)["run"] == "quick"
    said = world.lookalike("classify", "runs")
    assert "failed: typo.json: epoch is not a parameter: did you mean epochs?" in said

    world.settle(put_labels(world, [name for name in library(paint) if name.startswith("set/0/")]))
    assert "label" in run_of(world)["failure"]
    told = metrics(world)
    assert (told["run"], told["runs"]["succeeded"]) == ("", 0) and told["note"]
    assert not world.repo("select").exists("/model.keras")
    world.settle(put_labels(world, []))
    assert run_of(world)["failure"]
    assert "there is no classifier to promote" in world.lookalike("classify", "promote", fails=True)


@pytest.mark.only_in_all
def test_a_classifier_is_promoted_if_it_is_not_worse(world: World, paint: Paint) -> None:
    first = world.repo("select").good()
    assert first is not None
    said = world.lookalike("classify", "promote", "--if-not-worse")
    assert "the first in production" in said
    assert branches.head(world.connection, "select", "production") == first.at
    assert "nothing to do" in world.lookalike("classify", "promote")

    # Trained on labels that are wrong for two of three, and measured with the right ones.
    wrong = "".join(f"{name},{(int(name.split('/')[1]) + 1) % 3}\n" for name in library(paint))
    world.settle(world.repo("labels").write([PutFile("/mine.csv", f"source,label\n{wrong}".encode())]))
    worse = world.repo("select").good()
    assert worse is not None and worse.at != first.at
    world.settle(put_labels(world, library(paint)))
    said = world.lookalike("classify", "promote", worse.at, "--if-not-worse", fails=True)
    assert "was not promoted, since it has fewer pictures right" in said
    assert branches.head(world.connection, "select", "production") == first.at
    world.lookalike("classify", "promote", worse.at)
    said = world.lookalike("classify", "promote", first.at)
    assert ", an older one, in place of quick@" in said
    assert "promoted" in world.lookalike("classify", "runs", "--all")


@pytest.mark.soak
def test_a_server_killed_in_a_training_gives_the_same_bytes(
    make_world: MakeWorld, backbones: dict[str, Path], paint: Paint
) -> None:
    long = {"long.json": {"epochs": 200, "folds": 5, "batch_size": 8}}
    expected = trained(begun(make_world("whole"), backbones["first"], library(paint), long))
    world = begun(make_world("cut", late=True), backbones["first"], library(paint), long)
    commit = world.newest("train")
    lines = world.client.get_job_logs("train", commit, follow=True)
    assert next(str(line.message) for line in lines if line.user).startswith("train: ")
    world = world.killed()
    jobs = world.settle(commit, world.newest("select"))
    assert jobs["select"].state == "success"
    assert {name: world.hashes(name) for name in NAMES} == {name: expected.hashes(name) for name in NAMES}


@pytest.mark.only_in_all
def test_the_gpu_is_held_while_a_training_lasts(
    start_pachd: StartPachd, backbones: dict[str, Path], paint: Paint, tmp_path: Path
) -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine's own GPUs would be counted")
    world = World(lambda root: start_pachd(root, "--gpus", "1"), tmp_path / "root", tmp_path / "files")
    begun(world, backbones["first"], library(paint, 6))

    def train_holds_it() -> bool:
        leases = gpu_holders.local_leases(world.connection)
        assert leases is not None and not run_exists(world)
        return "train" in {each.pipeline for each in leases.holders}

    until(train_holds_it)
    trained(world)
    leases = gpu_holders.local_leases(world.connection)
    assert leases is not None and (leases.total, leases.allocated) == (1, 0)


def run_exists(world: World) -> bool:
    """Whether the run has ended."""
    return world.repo("train").exists(f"/quick/{run_records.FILE}")


def deploy_with(world: World, overlay: str) -> None:
    """Deploys the shipped specifications with an overlay, and waits until its trainings have ended."""
    said = world.lookalike("deploy", "--overlay", overlay, "--set", "IMAGE_SIZE=96")
    assert "pipeline train: updated\n" in said
    trained(world)
    assert not any(info.stopped for info in world.client.list_pipeline())


@pytest.mark.soak
def test_overlays_hold_trainings_back_or_repeat_them(
    make_world: MakeWorld, backbones: dict[str, Path], paint: Paint
) -> None:
    world = trained(begun(make_world("overlays"), backbones["first"], library(paint)))
    expected = world.hashes("train")
    deploy_with(world, "train-on-request")
    assert world.hashes("train") == expected

    more = {"set/1/new.png": paint(1, 50)}
    world.settle(put_labels(world, [*library(paint), *more]))
    jobs = world.settle(world.add(more))
    assert set(counts(jobs)) == {"preprocess", "features", "partition", "index", "annotations", "labelled"}
    said = world.lookalike("classify", "train", "--if-new", "2")
    assert "1 labelled picture that no training has had: 1 fewer than 2, so nothing is trained\n" in said
    said = world.lookalike("classify", "train", "--if-new", "1")
    assert "1 labelled picture that no training has had: training on labelled at " in said
    assert sum(run_of(world)["pictures"].values()) == 31
    (told,) = json.loads(world.lookalike("classify", "runs", "--json"))
    assert told["images"] == world.repo("images").good().at  # type: ignore[union-attr]
    expected = world.hashes("train")

    deploy_with(world, "train-nightly")
    assert world.hashes("train") == expected
    world.client.run_cron("train")
    jobs = world.settle(world.newest("train"))
    assert (jobs["train"].processed, jobs["train"].skipped) == (1, 0)
    assert counts(jobs).get("select", 0) == 0 and world.hashes("train") == expected

    deploy_with(world, "train-triggered")
    assert world.hashes("train") == expected
