"""Jobs that must fail: the meta commit keeps the reason, the command shows it, and the pipeline recovers."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pipelines.specifications import pipeline_specs
from stages import features
from stages.backbone.backbone_spec import MODEL_FILE
from tests.e2e.world import Job, MakeWorld, Paint, World, specs, with_environment

pytestmark = pytest.mark.timeout(600)

NO_TENSORFLOW = "libtensorflow_framework.so.2: cannot open shared object file"


@dataclass(frozen=True)
class Step:
    """The jobs by pipeline; the reasons in the meta commits of failed ones; the output of `status`."""

    jobs: dict[str, Job]
    reasons: dict[str, list[str]]
    status: str


def changed(**environment: str) -> list[pipeline_specs.PipelineSpec]:
    """Our specifications with one attempt for each datum, which makes failing faster, and further variables for
    features."""
    found = []
    for spec in specs():
        changed = with_environment(spec, **environment) if spec.name == "features" else spec
        found.append(replace(changed, document={**changed.document, "datum_tries": 1}))
    return found


def reasons(world: World, jobs: Mapping[str, Job]) -> dict[str, list[str]]:
    """The reasons that the meta commits of failed jobs hold."""
    found = {}
    for pipeline, job in jobs.items():
        if job.state == "failure":
            meta = world.repo(pipeline, job.id, type_="meta")
            records = [json.loads(data) for _, data in meta.read_all("/meta/*/meta")]
            found[pipeline] = [record["reason"] for record in records if record.get("reason")]
    return found


@pytest.fixture(scope="module")
def steps(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint, compares: bool) -> dict[str, Step]:
    """Runs all steps once."""
    world = make_world("faults")
    found: dict[str, Step] = {}

    def step(name: str, commit: str) -> None:
        jobs = world.end(commit)
        found[name] = Step(jobs, reasons(world, jobs), world.lookalike("status"))

    world.deploy(changed())
    world.add({"a.png": paint(1)})
    world.query("q.png", paint(2))
    step("wrong size", world.push(backbones["large"]))
    step("fixed", world.push(backbones["first"]))
    world.client.stop_pipeline("features")
    step("mixed", world.push(backbones["second"]))
    world.client.start_pipeline("features")
    step("started", newest(world, "features"))

    broken = world.scratch / "broken"  # where workers see it
    broken.mkdir()
    (broken / "tensorflow.py").write_text(f"raise ImportError({NO_TENSORFLOW!r})\n")
    path = os.pathsep.join(filter(None, (str(broken), os.environ.get("PYTHONPATH"))))
    world.deploy(changed(PYTHONPATH=path))
    step("no tensorflow", newest(world, "features"))
    done = {name: action for name, action in world.deploy(changed()).items() if action != "unchanged"}
    assert done == {"features": "updated, reprocessing everything"}
    step("tensorflow again", newest(world, "features"))
    if compares:
        world.deploy(changed(LOOKALIKE_STAGE=f"features-{features.VERSION - 1}"))
        step("another version", newest(world, "features"))
        world.deploy(changed())
        step("this version", newest(world, "features"))
        said = world.lookalike("model", "push", backbones["large"] / MODEL_FILE)
        step("another size", said.split(" into models: commit ")[1][:32])
    return found


def newest(world: World, pipeline: str) -> str:
    """The commit of a pipeline's newest job."""
    return str(next(iter(world.client.list_job(pipeline))).job.id)


def test_a_wrong_image_size_is_the_reason(steps: dict[str, Step]) -> None:
    step = steps["wrong size"]
    reason = "the pictures are 96 × 96 pixels, but the model large takes 128 × 128: `lookalike model push "
    for pipeline in ("features", "features-queries"):
        assert step.jobs[pipeline].state == "failure"
        (kept,) = step.reasons[pipeline]
        assert kept.startswith(reason)
    assert re.search(
        rf"^features failed on /backbone\.\*, /library/[0-9a-f]{{16}}/: {reason}", step.status, re.MULTILINE
    )
    assert f"features-queries failed on /, /queries/q.png/: {reason}" in step.status
    assert {step.jobs[name].state for name in ("index", "search", "render")} == {"unrunnable"}
    assert "unrunnable because the following upstream pipelines failed" in step.status


def test_another_model_fixes_it(steps: dict[str, Step]) -> None:
    assert {job.state for job in steps["fixed"].jobs.values()} == {"success"}
    assert "failed on" not in steps["fixed"].status


def test_mixed_models_are_the_reason(steps: dict[str, Step]) -> None:
    step = steps["mixed"]
    assert step.jobs["features-queries"].state == "success"
    assert step.jobs["search"].state == "failure"
    (kept,) = step.reasons["search"]
    assert "was computed with the model " in kept
    assert "their distances would be meaningless" in kept
    assert kept in step.status
    assert step.jobs["render"].state == "unrunnable"


def test_a_started_pipeline_catches_up(steps: dict[str, Step]) -> None:
    step = steps["started"]
    assert {step.jobs[name].state for name in ("features", "partition", "index", "search", "render")} == {"success"}


@pytest.mark.only_in_all
def test_a_push_brings_everything_to_another_size(steps: dict[str, Step]) -> None:
    jobs = steps["another size"].jobs
    assert jobs.keys() == {spec.name for spec in pipeline_specs.load()}
    assert {job.state for job in jobs.values()} == {"success"}
    assert {job.counts for name, job in jobs.items() if name.startswith(("preprocess", "features"))} == {(1, 0, 0)}
    assert "takes 128" not in steps["another size"].status


def test_a_failing_import_is_the_reason(steps: dict[str, Step]) -> None:
    step = steps["no tensorflow"]
    assert (step.jobs["features"].state, step.jobs["features"].failed) == ("failure", 1)
    assert step.reasons == {"features": [f"ImportError: {NO_TENSORFLOW}"]}
    assert f"ImportError: {NO_TENSORFLOW}" in step.status


def test_a_fixed_specification_is_computed_again(steps: dict[str, Step]) -> None:
    step = steps["tensorflow again"]
    assert {step.jobs[name].state for name in ("features", "partition", "index", "search", "render")} == {"success"}
    assert step.jobs["features"].counts == (1, 0, 0)


@pytest.mark.only_in_all
def test_code_of_another_version_computes_nothing(steps: dict[str, Step]) -> None:
    """As between the installation of a newer lookalike, whose code localpachd runs, and `lookalike upgrade`."""
    step = steps["another version"]
    assert (step.jobs["features"].state, step.jobs["features"].failed) == ("failure", 1)
    (kept,) = step.reasons["features"]
    asked, own = f"features-{features.VERSION - 1}", f"features-{features.VERSION}"
    assert kept == (
        f"the pipeline was deployed by an earlier version of lookalike, for {asked}, and this code is {own}: "
        "run `lookalike upgrade`, or install the lookalike that deployed it"
    )
    assert kept in step.status
    jobs = steps["this version"].jobs
    assert {jobs[name].state for name in ("features", "partition", "index", "search", "render")} == {"success"}
