"""Two models or metrics side by side: what is computed here is what the pipelines would compute, and nothing is written
to the server."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipelines.analysis.measurement import model_comparison, optional_deployment
from pipelines.client.repository import PutFile
from pipelines.commands.ask.past_query import STEPS
from pipelines.errors import LookalikeError
from tests.e2e.world import MakeWorld, Paint, World

pytestmark = pytest.mark.timeout(600)

LABELS = 4
Compare = Callable[..., Mapping[str, Any]]


@pytest.fixture(scope="module")
def labelled(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> World:
    """Pictures of a few labels, two of a kind almost equal, with the backbone `first`."""
    world = make_world("sides")
    world.deploy()
    world.push(backbones["first"])
    names = [f"{label}/{n}.png" for label in range(LABELS) for n in range(5)]
    world.add({name: paint(int(name[0]) * 10 + int(name[2]) // 2, int(name[2])) for name in names})
    optional_deployment.deploy(world.connection, "evaluate")
    lines = "".join(f"{name},label {name[0]}\n" for name in names)
    world.settle(world.repo("labels").write([PutFile("/labels.csv", f"source,label\n{lines}".encode())]))
    return world


@pytest.fixture
def compare(labelled: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Compares two sides on a server that must not change; the report's values."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def call(*model: str | Path) -> Mapping[str, Any]:
        before = labelled.commits()
        given = [str(each) for each in model]
        done = model_comparison.compare(labelled.connection, given, (), tmp_path / "report", STEPS)
        assert labelled.commits() == before
        assert json.loads((done.directory / "comparison.json").read_bytes()) == done.found
        assert done.found["verdict"]["words"] in (done.directory / "index.html").read_text()
        return done.found

    return call


@pytest.fixture
def named(backbones: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """A file of one's own, with the backbone of that name."""

    def copy(name: str) -> Path:
        (tmp_path / "models").mkdir(exist_ok=True)
        return Path(shutil.copy(backbones[name] / "backbone.keras", tmp_path / "models" / f"{name}.keras"))

    return copy


def measured(world: World) -> Mapping[str, Any]:
    """The measures that the pipelines computed."""
    found: Mapping[str, Any] = json.loads(world.repo("evaluate").read("/metrics.json"))
    return found


def values(found: Mapping[str, Any], side: str) -> dict[str, float]:
    return {name: each[side] for name, each in found["micro"].items()}


def known(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {name: pytest.approx(each["value"], abs=1e-5) for name, each in metrics["micro"].items()}


@pytest.mark.only_in_all
def test_a_file_beside_the_deployed_model(
    labelled: World, compare: Compare, named: Callable[[str], Path], backbones: dict[str, Path], compares: bool
) -> None:
    found = compare(named("second"))
    assert found["queries"] == measured(labelled)["queries"] == 5 * LABELS
    assert values(found, "a") == known(measured(labelled))
    about = found["about"]
    assert (about["a"]["deployed"], about["b"]["deployed"]) == (True, False)
    assert about["a"]["model"] != about["b"]["model"]
    assert about["a"]["stages"]["features"].startswith("features-")
    assert set(about["commits"]) == {"images", "models", "labels", "evaluate"}

    before = labelled.repo("models").good()
    assert before is not None
    labelled.settle(labelled.push(backbones["second"]))
    assert values(found, "b") == known(measured(labelled))
    if not compares:
        return
    again = compare(before.at, "deployed")
    assert values(again, "a") == values(found, "a")
    assert values(again, "b") == values(found, "b")
    assert (again["about"]["a"]["deployed"], again["about"]["b"]["deployed"]) == (False, True)
    assert again["examples"] == found["examples"]


@pytest.mark.only_in_all
def test_a_model_of_another_size_takes_the_pictures_again(compare: Compare, named: Callable[[str], Path]) -> None:
    found = compare(named("large"))
    assert (found["about"]["a"]["image_size"], found["about"]["b"]["image_size"]) == (96, 128)
    assert found["queries"] == 5 * LABELS


def test_two_metrics_of_one_model(labelled: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = labelled.commits()
    said = labelled.lookalike("evaluate", "--metric", "cosine")
    assert labelled.commits() == before
    place = "results/evaluation/euclidean-vs-cosine"
    assert f"report: {place}/index.html" in said
    found = json.loads((labelled.scratch / place / "comparison.json").read_bytes())
    assert [found["about"][side]["metric"] for side in "ab"] == ["euclidean", "cosine"]
    assert found["about"]["a"]["model"] == found["about"]["b"]["model"]
    assert found["queries"] == 5 * LABELS
    assert found["verdict"]["words"] in said


def test_sides_that_cannot_be_compared_are_refused_in_a_sentence(compare: Compare, labelled: World) -> None:
    head = labelled.repo("models").good()
    assert head is not None
    for model, reason in (
        (head.at, "are the same model"),
        ("efficientnet-litte0", "efficientnet-lite0"),
        ("deafbeef", "no commit has an id that begins with deafbeef"),
    ):
        with pytest.raises(LookalikeError, match=reason):
            compare(model)


def test_a_library_without_an_evaluation_is_refused(make_world: MakeWorld, tmp_path: Path) -> None:
    world = make_world("bare-sides")
    world.deploy()
    with pytest.raises(LookalikeError, match="run `lookalike evaluate` first"):
        model_comparison.compare(world.connection, [], ["cosine"], tmp_path, STEPS)
