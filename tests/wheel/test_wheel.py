"""The wheel, installed in an environment of its own outside of the checkout: the command, its specifications, the
server, its workers and the samples come from there."""

import json
import os
import re
import site
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.specifications import optional_specs
from stages.backbone.photographs import open_photograph
from tests import wheels
from tests.command import CommandResult
from tests.wheels import ROOT

_NO_INDEX = re.compile("No matching distribution found|connection broken|Max retries exceeded")


class Installed:
    """The installed command, called as a process in a directory below `home`."""

    def __init__(self, program: Path, home: Path) -> None:
        self.program, self.home = program, home

    def types(self, *words: str, at: str = ".") -> CommandResult:
        mine = ("PYTHONPATH", "PACHD_ADDRESS", "PACH_CONTEXT", "LOOKALIKE_ROOT")
        environment = {name: value for name, value in os.environ.items() if name not in mine}
        environment |= {"PACH_CONFIG": str(self.home / "pachctl.json"), "COLUMNS": "120"}
        directory = self.home / at
        done = subprocess.run(
            [str(self.program), *words], cwd=directory, env=environment, capture_output=True, text=True
        )
        return CommandResult(done.returncode, done.stdout, done.stderr)

    def says(self, *words: str, at: str = ".") -> str:
        typed = self.types(*words, at=at)
        assert typed.returncode == 0, typed.stdout + typed.stderr
        return typed.stdout + typed.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, with its constraints beside it."""
    return wheels.build(tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The wheel in a new environment, which takes all other packages from that of the tests."""
    home = tmp_path_factory.mktemp("home")
    environment = home / "env"
    venv.create(environment, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(environment / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    # A path that a .pth file adds does not have its own .pth files read, so the checkout itself is not on it.
    (packages / "others.pth").write_text("".join(f"{path}\n" for path in site.getsitepackages()))
    command = Installed(environment / "bin" / "lookalike", home)
    yield command
    if (home / "pictures" / ".lookalike").exists():
        command.says("down", at="pictures")


@pytest.fixture
def clone(tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the sources called lookalike, and the Python of an environment in which it is installed in place."""
    directory, environment, tools = wheels.copied(tmp_path / "lookalike"), tmp_path / "env", tmp_path / "tools"
    tools.mkdir()
    (packages,) = (Path(each) for each in site.getsitepackages())
    for found in (*packages.glob("setuptools*"), packages / "_distutils_hack"):
        (tools / found.name).symlink_to(found)
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install", "--quiet"]
    variables = {**os.environ, "PYTHONPATH": str(tools)}
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--editable", directory], env=variables, check=True)
    (own,) = environment.glob("lib/python*/site-packages")
    (own / "others.pth").write_text(f"{packages}\n")
    return directory, python


NOTEBOOKS = """
import os, sys
for place in sys.argv[1:]:
    os.chdir(place)
    for name in [each for each in sys.modules if each.partition(".")[0] in ("lookalike", "pipelines", "stages")]:
        del sys.modules[name]
    import lookalike
    print(lookalike.Library.__module__, os.path.basename(lookalike.__file__))
"""


def test_notebooks_beside_and_in_a_clone_import_the_package(clone: tuple[Path, Path], installed: Installed) -> None:
    """A notebook's directory is the first in which Python looks, and the clone's name is that of the package."""
    directory, in_place = clone
    from_wheel = installed.program.with_name("python")
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    places = [directory.parent, directory, directory / "lookalike", directory / "specs"]
    for python in (in_place, from_wheel):
        said = subprocess.run([python, "-c", NOTEBOOKS, *places], env=variables, capture_output=True, text=True)
        assert said.stdout.split() == ["lookalike.library", "__init__.py"] * len(places), (python, said)


def test_the_wheel_holds_the_specifications_and_the_template(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    held = {Path(name) for name in names}
    assert {path.relative_to(ROOT) for path in (ROOT / "specs").rglob("*.json")} <= held
    template = ROOT / "pipelines" / "specifications" / "template"
    assert {path.relative_to(ROOT) for path in template.iterdir()} <= held
    assert not [
        name for name in names if name.startswith(("tests", "benchmarks", "studies", "docker", "setup", "build"))
    ]


def test_the_wheel_holds_the_pages(wheel: Path) -> None:
    held = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    for directory in (ROOT / "stages" / "serving" / "page", ROOT / "stages" / "report" / "templates"):
        assert {path.relative_to(ROOT) for path in directory.rglob("*") if path.is_file()} <= held


def test_the_installed_command_checks_its_own_specifications(installed: Installed) -> None:
    said = installed.says("check", "--overlay", "cpu", at=".")
    assert f"{len(optional_specs.files(ROOT / 'specs'))} specifications checked" in said
    assert str(ROOT) not in said


def test_a_directory_of_ones_own_is_used_by_the_commands_in_it(installed: Installed) -> None:
    said = installed.says("init", "pictures")
    assert "to pictures/specs/, and Makefile, README.md, .gitignore" in said
    again = installed.types("init", "pictures")
    assert again.returncode == 1
    assert "pictures/specs/" in again.stderr and "nothing was written" in again.stderr

    spec = installed.home / "pictures" / "specs" / "preprocess.json"
    document = json.loads(spec.read_text())
    document["transform"]["env"]["PART"] = "300"
    spec.write_text(json.dumps(document))
    installed.says("up", "--port", "0", at="pictures")
    installed.says("deploy", at="pictures")
    below = installed.home / "pictures" / "photos"
    below.mkdir()
    for label in ("cat", "coffee"):
        open_photograph(label).save(below / f"{label}.png")
    added = installed.says("add", "-v", "cat.png", "coffee.png", at="pictures/photos")
    assert "preprocess" in added and "success" in added
    deployed = installed.says("deploy", at="pictures/photos")
    assert "pipeline preprocess: unchanged" in deployed  # with PART=300
    (shipped,) = installed.program.parents[1].glob("lib/python*/site-packages/specs")
    deployed = installed.says("deploy", "--specs", str(shipped), at="pictures")
    assert "pipeline preprocess: updated" in deployed


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_the_installed_demo_answers_the_sample_queries(installed: Installed) -> None:
    (installed.home / "demo").mkdir()
    try:
        said = installed.says("demo", "--port", "0", at="demo")
    finally:
        installed.types("down", at="demo")
    assert "render: success, 1 of 1 datum\n" in said
    answers = (installed.home / "demo" / "results" / "sample-queries" / "neighbors.jsonl").read_text().splitlines()
    assert len(answers) == 54
    assert all(len(json.loads(line)["neighbors"]) == 3 for line in answers)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_pip_installs_it_with_all_it_needs_into_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """From the index that pip uses on this machine. Then one command, in any directory, makes a library."""
    venv.create(tmp_path / "env", with_pip=True, symlinks=True)
    pip = [str(tmp_path / "env" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    constraints = ["--constraint", str(wheel.with_name("constraints.txt"))]
    done = subprocess.run([*pip, *constraints, str(wheel)], capture_output=True, text=True)
    if done.returncode and _NO_INDEX.search(done.stderr):
        pytest.skip(f"pip reaches no index of packages here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    command, photos = Installed(tmp_path / "env" / "bin" / "lookalike", tmp_path), tmp_path / "here" / "photos"
    photos.mkdir(parents=True)
    for name in ("cat", "coffee"):
        open_photograph(name).save(photos / f"{name}.png")
    try:
        assert "put 2 files into images" in command.says("add", "photos", at="here")
        said = command.says("query", "photos/cat.png", at="here")
        assert "photos/cat.png" in said and "same picture" in said
    finally:
        command.types("down", at="here")
