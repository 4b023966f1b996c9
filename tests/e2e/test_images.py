"""Every stage in the image that its specification names, on the sample pictures, with /pfs mounted: with the same bytes
as the stages as processes here. Then the whole pipeline, with localpachd running the images.

The environment here and the images have the same versions and, on one machine, the same processor, so nothing may
differ. GPUs are hidden from both: another device may round differently.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from contents import PREFIX, PROJECT, VARIANTS, contents, environments
from images import LARGEST

from pipelines.library.datasets import samples
from pipelines.specifications import pipeline_specs
from stages.record import entry_paths
from stages.zoo import make_backbone
from tests.e2e.world import MakeWorld, World
from tests.servers import StartPachd

VERSION = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
IMAGES = {name: f"{PREFIX}{name}:{VERSION}" for name in LARGEST if name not in VARIANTS}
SPECS = {spec.name: spec.document["transform"] for spec in pipeline_specs.load()}
CPU = {"CUDA_VISIBLE_DEVICES": ""}
SEGMENTS = 3  # of the library's, in the chain: a container each for index and search

Inputs = dict[str, tuple[Path, str]]
"""By the input's name: the repo as a directory, and the path in it that the datum is."""

Run = Callable[[str, Inputs, Path], None]
"""Runs one datum of a pipeline: its name, its inputs, the directory for its outputs."""


def missing() -> str:
    """The reason that the images cannot be run here; "" if they can."""
    if shutil.which("docker") is None or subprocess.run(["docker", "info"], capture_output=True).returncode:
        return "no Docker engine is running"
    absent = [
        tag for tag in IMAGES.values() if subprocess.run(["docker", "inspect", tag], capture_output=True).returncode
    ]
    return f"{', '.join(absent)}: not built here; run make images" if absent else ""


def stale(name: str) -> bool:
    """Whether some module in the image differs from the one here."""
    needed = {str(path.relative_to(PROJECT)): path for path in contents(environments()[name]).modules}
    program = "import sys, pathlib; [sys.stdout.write(pathlib.Path(each).read_text()) for each in sys.argv[1:]]"
    command = ["docker", "run", "--rm", "--workdir=/opt/lookalike/code", IMAGES[name], "python3", "-c", program]
    done = subprocess.run([*command, *needed], capture_output=True, text=True)
    return done.stdout != "".join(path.read_text() for path in needed.values())


WHY_NOT = missing()
pytestmark = [pytest.mark.docker, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT), pytest.mark.timeout(1800)]


def docker(*arguments: str) -> str:
    """The output of a docker command; if it fails, the exception has its messages."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def in_image(pipeline: str, inputs: Inputs, out: Path) -> None:
    """Runs a datum in the pipeline's image, as the image's own user, without a network."""
    out.mkdir(parents=True, exist_ok=True)
    for each in (out, *out.rglob("*")):
        each.chmod(0o777)  # the image's user is another than the one running the tests
    options = [f"--volume={out}:/pfs/out"]
    options += [f"--volume={root}:/pfs/{name}:ro" for name, (root, _) in inputs.items()]
    options += [f"--env={name}={value}" for name, value in {**SPECS[pipeline]["env"], **CPU}.items()]
    given = [f"--input={name}=/pfs/{name}::{path}" for name, (_, path) in inputs.items()]
    command = [*SPECS[pipeline]["cmd"], *given, "--out=/pfs/out"]
    docker("run", "--rm", "--network=none", *options, SPECS[pipeline]["image"], *command)


def as_process(pipeline: str, inputs: Inputs, out: Path) -> None:
    """Runs a datum in a process of this environment."""
    given = [f"--input={name}={root}::{path}" for name, (root, path) in inputs.items()]
    environment = {**os.environ, **SPECS[pipeline]["env"], **CPU}
    command = [sys.executable, *SPECS[pipeline]["cmd"][1:], *given, f"--out={out}"]
    done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def chain(run: Run, pictures: Path, backbone: Path, home: Path) -> dict[str, bytes]:
    """All pipelines' datums by hand, in order; every file that they wrote, by its path below `home`."""
    out = {name: home / name for name in SPECS}
    run("preprocess", {"images": (pictures, "library")}, out["preprocess"])
    run("preprocess-queries", {"queries": (pictures, "queries")}, out["preprocess-queries"])
    model = (backbone, "")
    for part in children(out["preprocess"] / "library"):
        run("features", {"models": model, "pictures": (out["preprocess"], f"library/{part}")}, out["features"])
    for bucket in children(out["features"] / "library"):
        dealt = {
            "features": (out["features"], f"library/{bucket}"),
            "thumbnails": (out["preprocess"], f"thumbnails/{bucket}"),
        }
        run("partition", dealt, out["partition"])
    asked = {"models": model, "pictures": (out["preprocess-queries"], "queries/queries")}
    run("features-queries", asked, out["features-queries"])
    path = entry_paths.directory("queries")
    entry, entries = (out["features-queries"], path), (out["features-queries"], path.rpartition("/")[0])
    for segment in children(out["partition"] / "library")[:SEGMENTS]:
        buckets = {
            "features": (out["partition"], f"library/{segment}"),
            "vectors": (out["partition"], f"vectors/{segment}"),
            "thumbnails": (out["partition"], f"thumbnails/{segment}"),
        }
        run("index", buckets, out["index"])
        run("search", {"index": (out["index"], segment), "queries": entries}, out["search"])
    run("render", {"queries": entry, "search": (out["search"], "queries")}, out["render"])
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def children(directory: Path) -> list[str]:
    """The names in a directory, sorted."""
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture(scope="module", autouse=True)
def fresh() -> None:
    """Skips if an image is older than a change of its stages, which it would not test."""
    old = [IMAGES[name] for name in IMAGES if stale(name)]
    if old:
        pytest.skip(f"{', '.join(old)}: built from older sources; run make images")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directories `library` and `queries` with the sample pictures that a query of three photographs can find."""
    everything, some = tmp_path_factory.mktemp("samples"), tmp_path_factory.mktemp("pictures")
    samples.write_samples(everything)
    for path in (everything / samples.LIBRARY).glob("*-0[1-9].*"):
        target = some / "library" / path.name
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, target)
    (some / "queries").mkdir()
    for label in ("cat", "coffee", "rocket"):
        shutil.copyfile(everything / samples.QUERIES / f"{label}-1.png", some / "queries" / f"{label}-1.png")
    some.chmod(0o755)
    return some


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default backbone's two files."""
    directory = tmp_path_factory.mktemp("backbone")
    make_backbone("efficientnet-lite0", 96, None, directory)
    directory.chmod(0o755)
    return directory


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_is_labelled_small_and_not_roots(name: str) -> None:
    found = json.loads(docker("image", "inspect", IMAGES[name]))[0]
    labels = found["Config"]["Labels"]
    assert labels["org.opencontainers.image.version"] == VERSION
    assert labels["org.opencontainers.image.revision"]
    assert found["Config"]["User"] == "1000:1000"
    assert found["Size"] <= LARGEST[name]


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_holds_its_stages_and_nothing_else_of_ours(name: str) -> None:
    listed = docker("run", "--rm", IMAGES[name], "find", "/opt/lookalike/code", "-name", "*.py")
    held = {line.removeprefix("/opt/lookalike/code/") for line in listed.split()}
    assert held == {str(path.relative_to(PROJECT)) for path in contents(environments()[name]).modules}
    program = "import importlib.util as u; print([m for m in ('localpachd', 'pipelines', 'pip') if u.find_spec(m)])"
    assert docker("run", "--rm", IMAGES[name], "python3", "-c", program) == "[]\n"


def test_every_stage_gives_in_its_image_the_bytes_that_it_gives_here(
    pictures: Path, backbone: Path, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    inside = chain(in_image, pictures, backbone, tmp_path / "inside")
    here = chain(as_process, pictures, backbone, tmp_path / "here")
    assert {name.partition("/")[0] for name in inside} == set(SPECS)
    assert "render/queries/grid.png" in inside
    assert inside.keys() == here.keys()
    assert [name for name in here if inside[name] != here[name]] == []


def test_the_whole_dag_in_containers_gives_what_processes_give(
    make_world: MakeWorld,
    start_shared_pachd: StartPachd,
    pictures: Path,
    backbone: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = tmp_path_factory.mktemp("containers")
    contained = World(lambda root: start_shared_pachd(root, "--runner", "docker"), home / "root", home / "files")
    trees = []
    for world in (contained, make_world("processes")):
        world.deploy()
        library = {path.name: path.read_bytes() for path in sorted((pictures / "library").iterdir())[::10]}
        queries = {path.name: path.read_bytes() for path in sorted((pictures / "queries").iterdir())}
        world.settle(world.push(backbone), world.add(library), world.query("queries", queries))
        trees.append(world.trees())
    assert all(trees[0].values()), "some pipeline wrote nothing"
    assert trees[0] == trees[1]
