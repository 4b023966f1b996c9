"""Building the images without a real engine: labels, the revision, and the messages of failures."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import images
import pytest
from contents import PROJECT, environments


def script(*arguments: str, path: str = "") -> "subprocess.CompletedProcess[str]":
    """docker/images.py as `make images` runs it, with another PATH if one is given."""
    return subprocess.run(
        [sys.executable, str(PROJECT / "docker" / "images.py"), *arguments],
        capture_output=True,
        text=True,
        env={"PATH": path},
    )


def executable(directory: Path, name: str, text: str) -> None:
    """Writes an executable shell script."""
    (directory / name).write_text(f"#!/bin/sh\n{text}\n")
    (directory / name).chmod(0o755)


def test_every_image_has_a_limit() -> None:
    assert images.LARGEST.keys() == environments().keys()


def test_without_an_engine_it_names_what_to_install(tmp_path: Path) -> None:
    result = script(path=str(tmp_path))
    assert result.returncode == 1
    assert result.stderr == (
        "images: docker is not on the PATH: building images needs a container engine. Install Docker or Podman "
        "(use Podman with ENGINE=podman)\n"
    )


def test_an_unresponsive_engine_is_reported_in_one_line(tmp_path: Path) -> None:
    executable(tmp_path, "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    result = script(path=str(tmp_path))
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "Cannot connect to the Docker daemon (is the engine running" in result.stderr


def test_an_unknown_image_is_refused_by_name(tmp_path: Path) -> None:
    result = script("--only", "gpu", path=str(tmp_path))
    known = "cpu, rapids, rapids-cuda13, serve, tensorflow"
    assert result.stderr == f"images: 'gpu' is not an image; the images are {known}\n"


def test_labels_have_version_revision_and_date() -> None:
    project = {"version": "1.2.3", "description": "Finds pictures", "license": "Apache-2.0"}
    made = images.labels("cpu", ["stages.render"], project, images.Revision("abc", 315532800), "python:3")
    short = {key.removeprefix("org.opencontainers.image."): value for key, value in made.items()}
    assert short == {
        "title": "lookalike-cpu",
        "description": "Finds pictures: stages.render",
        "version": "1.2.3",
        "revision": "abc",
        "created": "1980-01-01T00:00:00+00:00",
        "licenses": "Apache-2.0",
        "base.name": "python:3",
    }


def test_an_image_over_its_limit_is_refused(tmp_path: Path) -> None:
    executable(tmp_path, "engine", """echo '[{"Size": 600000001}]'""")
    with pytest.raises(images.Refused, match=r"lookalike-cpu:1: 0\.60 GB unpacked, of 0\.6 allowed: .* history"):
        images.measured(str(tmp_path / "engine"), "cpu", "lookalike-cpu:1")


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """A program in place of the engine that logs its calls and reports 0.5 GB for every image."""
    says = """echo '[{"Size": 500000000}]'"""
    executable(tmp_path, "engine", f'echo "$@" >> {tmp_path}/calls; [ "$1" = image ] && {says}; exit 0')
    return tmp_path / "engine"


def test_it_builds_measures_and_pushes_the_named_images(engine: Path) -> None:
    options = ["--engine", str(engine), "--only", "cpu rapids", "--push", "r.example.org/team/", "--base", "python:x"]
    done = script(*options, "--flags=--no-cache --network host", path=os.environ["PATH"])
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"lookalike-cpu:{version}: 0.50 GB unpacked, of 0.6 allowed",
        f"pushed r.example.org/team/lookalike-cpu:{version}",
        f"lookalike-rapids:{version}: 0.50 GB unpacked, of 8 allowed",
        f"pushed r.example.org/team/lookalike-rapids:{version}",
    ]
    calls = (engine.parent / "calls").read_text().splitlines()
    assert [call.split()[0] for call in calls] == ["info", *["build", "image", "tag", "push"] * 2]
    build = calls[1].split()
    assert {"IMAGE=cpu", "BASE=python:x", "--no-cache", "linux/amd64", f"lookalike-cpu:{version}"} <= set(build)
    assert build[-1] == "."
    assert calls[4] == f"push r.example.org/team/lookalike-cpu:{version}"


def test_a_variant_is_built_if_it_is_named(engine: Path) -> None:
    for only, built in (([], ["cpu", "rapids", "serve", "tensorflow"]), (["--only=rapids-cuda13"], ["rapids-cuda13"])):
        done = script("--engine", str(engine), *only, path=os.environ["PATH"])
        assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [f"lookalike-{each}" for each in built]


@pytest.mark.parametrize(
    ("step", "said"),
    [("build", r"lookalike-cpu:\S+ could not be built: see the output above"), ("push", r"is \S+ logged in there")],
)
def test_a_failure_is_one_line(engine: Path, step: str, said: str) -> None:
    engine.write_text(engine.read_text().replace("exit 0", f'[ "$1" != {step} ]'))
    done = script("--engine", str(engine), "--only=cpu", "--push=r.example.org", path=os.environ["PATH"])
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert re.search(said, done.stderr)


def test_the_revision_comes_from_git() -> None:
    if not (PROJECT / ".git").exists():
        pytest.skip("not a git checkout")
    found = images.revision()
    assert len(found.name.removesuffix("-dirty")) == 40
    assert found.epoch > 1_700_000_000
