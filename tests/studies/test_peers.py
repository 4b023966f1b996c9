"""The comparison with DVC and Snakemake: its files, and lookalike's part in it, at a tiny size."""

import json
import os
import re
from functools import partial
from pathlib import Path

import pytest
import yaml

from pipelines.specifications import pipeline_specs
from stages.backbone.backbone_spec import WeightsOrigin
from studies import peers, racing
from studies.kit import environment
from studies.kit.environment import SETUPS, Tool
from studies.racing import OURS
from studies.workflows import Dvc, Lookalike

pytestmark = pytest.mark.soak

LABELS = {"dvc": "DVC 3", "dvc in batches": "DVC 3 in batches", "snakemake": "Snakemake 9"}


@pytest.mark.parametrize("setup", ["dvc", "dvc-batches"])
def test_the_stages_of_dvc_are_ours_and_name_their_inputs(setup: str) -> None:
    stages = yaml.safe_load((SETUPS / setup / "dvc.yaml").read_text())["stages"]
    specifications = {spec.name: spec.document for spec in pipeline_specs.load()}
    commands = {
        name: each["cmd"] if isinstance(each["cmd"], str) else "\n".join(each["cmd"]) for name, each in stages.items()
    }
    for name in ("preprocess", "features", "partition", "index", "search", "render"):
        assert f"stages.{name} " in commands[name]
        for joined in specifications[name]["input"].get("join", []):
            assert re.search(rf"--input '?{joined['pfs']['name']}=", commands[name])
    written = {Path(out).parts[0] for each in stages.values() for out in each["outs"]}
    read = {Path(dep).parts[0] for each in stages.values() for dep in each["deps"]}
    assert read - written == {"images", "queries", "models"}
    assert written - read == {"render"}
    assert all(dep in commands[name] for name, each in stages.items() for dep in each["deps"] if dep != "search")


def test_answers_are_ids_and_distances_and_ignore_the_sources() -> None:
    def text(distance: float, source: str) -> str:
        neighbour = {"id": "1f", "distance": distance, "sources": [source]}
        return json.dumps({"query": "ab", "sources": [source], "neighbors": [neighbour]}) + "\n"

    assert racing.answers(text(0.5, "x")) == racing.answers(text(0.5, "y")) == {"ab": [("1f", 0.5)]}
    assert racing.answers(text(0.5, "x")) != racing.answers(text(0.50001, "x"))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some pictures and a backbone that takes no time to make."""
    import keras  # noqa: PLC0415  takes seconds; the other tests do without

    from stages.backbone.backbones import describe, save_backbone  # noqa: PLC0415

    directory = tmp_path_factory.mktemp("peers") / "inputs"
    racing.write_inputs(directory, 40, 1)
    (directory / "models").mkdir()
    pixels = keras.Input((224, 224, 3), dtype="uint8")  # the size in the specifications
    mean = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(pixels))
    model = keras.Model(pixels, mean, name="mean")
    save_backbone(model, describe(model, "mean", "avg", WeightsOrigin("a test", "")), directory / "models")
    return directory


def test_ours_is_timed_from_nothing_and_failing_peers_are_left_out(
    inputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = partial(Dvc, inputs, tool=Tool(Path("/bin/false"), "0"))
    found = racing.race({OURS: partial(Lookalike, inputs), "dvc": broken}, inputs, 1, ["remove", "again"])
    assert found.failed.keys() == {"dvc"}
    assert "dvc fails and is left out: false ended with status 1" in capsys.readouterr().err
    assert found.seconds.keys() == {("first", OURS), ("remove", OURS), ("again", OURS)}
    assert found.steps["remove", OURS] > 0
    assert found.steps["again", OURS] == 0  # what was removed does not come back
    assert found.steps["first", OURS] > 40
    assert found.disk[OURS] > 1
    (line,) = peers.result("first", found, {}, last=False).lines
    assert re.fullmatch(r"\d+\.\d\d s, \d+ datums", line.ours)


@pytest.mark.timeout(900)
@pytest.mark.skipif(
    "LOOKALIKE_PEERS" not in os.environ, reason="LOOKALIKE_PEERS names no environment with DVC and Snakemake"
)
def test_the_peers_give_the_same_answers(inputs: Path) -> None:
    tools = environment.tools(environment.place(os.environ))
    found = racing.race(peers.makers(inputs, tools), inputs, 1, racing.ACTS)
    assert not found.failed
    assert not found.differing
    assert found.steps["first", "dvc"] == 8
    assert {name: found.steps["again", name] for name in (OURS, *LABELS)} == dict.fromkeys((OURS, *LABELS), 0)
    assert {name: found.steps["add", name] for name in (OURS, *LABELS)} == {
        OURS: 6,
        "dvc": 6,
        "dvc in batches": 7,
        "snakemake": 6,
    }
