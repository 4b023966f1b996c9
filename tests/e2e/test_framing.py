"""Pictures of any shape at the default size, in the words that people type: they are compared and shown whole; with
another FIT for the queries than for the library, `status` says what to do; `make experiment` has its own."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from benchmarks.kit.stl10_pieces import write_stl10
from stages.files.tables.index_table import TABLE, IndexTable
from stages.files.thumbnail_files import DIRECTORY, SUFFIX
from tests.command import Command
from tests.e2e.world import MakeWorld, World

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
SIZES = {"wide.png": (800, 200), "tall.png": (150, 600), "square.png": (300, 300)}


def picture(size: tuple[int, int]) -> Image.Image:
    """Stripes with something at both ends, which a crop to the middle loses."""
    drawn = Image.new("RGB", size, "olive")
    draw = ImageDraw.Draw(drawn)
    for each in range(0, max(size), 40):
        draw.line((each, 0, 0, each), fill="white", width=5)
    draw.rectangle((0, 0, size[0] // 8, size[1] // 8), fill="red")
    draw.rectangle((size[0] * 7 // 8, size[1] * 7 // 8, *size), fill="blue")
    return drawn


@dataclass(frozen=True)
class Step:
    """The facts of the index, the sizes of its thumbnails by picture, the answers by query, the output of `status`."""

    facts: dict[str, Any]
    thumbnails: dict[str, tuple[int, int]]
    answers: dict[str, list[Any]]
    status: str


def overlay(world: World, *pipelines: str) -> Path:
    """An overlay that crops the pictures of these pipelines."""
    path = world.scratch / f"{'-'.join(pipelines)}.json"
    patch = {"transform": {"env": {"FIT": "crop"}}}
    path.write_text(json.dumps({"pipelines": dict.fromkeys(pipelines, patch)}))
    return path


def seen(world: World, status: str = "") -> Step:
    """The present state."""
    tables = {
        path.split("/")[1]: IndexTable.read(io.BytesIO(data))
        for path, data in world.repo("index").read_all(f"/*/{TABLE}")
    }
    files = dict(world.repo("index").read_all(f"/*/{DIRECTORY}/*"))
    thumbnails = {
        sources[0].path: Image.open(
            io.BytesIO(files[f"/{segment}/{DIRECTORY}/{part}{SUFFIX}"][begin : begin + size])
        ).size
        for segment, each in tables.items()
        for sources, (part, begin, size) in zip(each.sources, each.thumbnails, strict=True)
    }
    answers = {
        line["sources"][0]: line["neighbors"]
        for data in contents(world, "render", "/*/neighbors.jsonl")
        for line in map(json.loads, data.splitlines())
    }
    return Step(json.loads(contents(world, "index", "/*/index.json")[0]), thumbnails, answers, status)


def contents(world: World, repo: str, pattern: str) -> list[bytes]:
    return [data for _, data in world.repo(repo).read_all(pattern)]


def ended(world: World, pipeline: str) -> str:
    """Waits for a pipeline's newest job; returns its state."""
    commit = str(next(iter(world.client.list_job(pipeline))).job.id)
    return world.end(commit)[pipeline].state


@pytest.fixture(scope="module")
def steps(make_world: MakeWorld, backbones: dict[str, Path], compares: bool) -> dict[str, Step]:
    world = make_world("framing")
    for name, size in SIZES.items():
        picture(size).save(world.scratch / name)
    world.lookalike("deploy")
    world.push(backbones["usual"])
    world.lookalike("add", *SIZES)
    world.lookalike("query", "wide.png", "tall.png")
    found = {"default": seen(world)}

    world.lookalike("deploy", "--overlay", overlay(world, "preprocess-queries"))
    assert ended(world, "search") == "failure"
    found["mismatch"] = seen(world, world.lookalike("status"))

    if compares:
        world.lookalike("deploy", "--overlay", overlay(world, "preprocess", "preprocess-queries"))
        assert ended(world, "render") == "success"
        found["crop"] = seen(world, world.lookalike("status"))
    return found


def test_by_default_pictures_are_compared_and_shown_whole(steps: dict[str, Step]) -> None:
    step = steps["default"]
    assert (step.facts["image_size"], step.facts["fit"]) == (224, "pad")
    assert step.thumbnails == {"wide.png": (240, 60), "tall.png": (60, 240), "square.png": (240, 240)}
    for name in ("wide.png", "tall.png"):
        nearest = step.answers[name][0]
        assert (nearest["sources"], nearest["distance"]) == ([name], 0)


def test_another_fit_for_the_queries_is_a_reason_in_status(steps: dict[str, Step]) -> None:
    status = " ".join(steps["mismatch"].status.split())
    assert "IMAGE_SIZE=224, FIT=pad" in status
    assert "IMAGE_SIZE=224, FIT=crop" in status
    assert "Set the same IMAGE_SIZE and FIT in the specs of preprocess and preprocess-queries" in status
    assert steps["mismatch"].answers == steps["default"].answers, "a job that failed leaves the last answers"


@pytest.mark.only_in_all
def test_crop_on_request_keeps_the_middle_square(steps: dict[str, Step]) -> None:
    step = steps["crop"]
    assert (step.facts["image_size"], step.facts["fit"]) == (224, "crop")
    assert step.thumbnails == {"wide.png": (200, 200), "tall.png": (150, 150), "square.png": (240, 240)}
    assert step.answers["wide.png"][0]["sources"] == ["wide.png"]
    assert "failed on" not in step.status


@pytest.mark.only_in_all
def test_make_experiment_keeps_the_original_size_and_crop(
    backbones: dict[str, Path], tmp_path: Path, own_port: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stl10(tmp_path / "data", 40, (2, 2))
    home, configuration = tmp_path / "home", str(tmp_path / "pachctl.json")
    monkeypatch.setenv("PACH_CONFIG", configuration)
    command = Command(tmp_path, {"LOOKALIKE_ROOT": str(home / ".lookalike")})
    given = {
        "BIN": Path(sys.executable).parent,
        "EXPERIMENT": home,
        "DATA_DIR": tmp_path / "data",
        "MODEL": backbones["first"] / "backbone.keras",
        "PORT": own_port(),
    }
    typed = ["make", "-o", ".venv/.ready", "experiment", *(f"{name}={value}" for name, value in given.items())]
    try:
        done = subprocess.run(typed, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "MAKEFLAGS": ""})
        assert done.returncode == 0, done.stdout + done.stderr
        assert "the original experiment" not in done.stdout, "nothing differs from it"
        assert (home / "results" / "stl10" / "grid.png").is_file()
        lines = (home / "results" / "stl10" / "neighbors.jsonl").read_text().splitlines()
        assert len(lines) == 4
    finally:
        command.says("down")
