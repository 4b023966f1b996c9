"""The modules in each image, and the packages in its lock that they import."""

import re
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from contents import PROJECT, Contents, contents, data, environments

from pipelines.specifications import optional_specs

ENVIRONMENTS = ("cpu", "rapids", "rapids-cuda13", "serve", "tensorflow")

GPU_ONLY = {
    "cuml": ["cuml-cu12", "cuml-cu13"],
    "cupy": ["cupy-cuda12x", "cupy-cuda13x"],
    "tensorflow": ["tensorflow"],
}
"""Distributions that only the images and machines with a GPU have installed."""

ABSENT = {
    "rapids": {"onnxruntime"},
    "rapids-cuda13": {"onnxruntime"},
    "serve": {"cuml", "cupy", "jax", "torch"},
    "tensorflow": {"jax", "torch"},
}
"""What an image does without: only the service has copies in 8-bit integers; Keras needs one backend alone; cuML's CUDA
libraries and TensorFlow's exclude each other, and BACKEND=auto does not need it."""


@cache
def image(name: str) -> Contents:
    """The contents of an image."""
    return contents(environments()[name])


@pytest.fixture(scope="module")
def distributions() -> Mapping[str, list[str]]:
    """The distributions of each package, those of a GPU's machine too."""
    return {**packages_distributions(), **GPU_ONLY}


def pins(lock: Path) -> dict[str, set[str]]:
    """The versions of each distribution in a lock file, one for each Python version; names are normalised."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==(\S+)", lock.read_text(), re.MULTILINE):
        found.setdefault(_normal(name), set()).add(version)
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_specifications_name_the_images() -> None:
    assert environments() == {
        "cpu": [
            "stages.annotations",
            "stages.duplicates",
            "stages.evaluate",
            "stages.fetch",
            "stages.labelled",
            "stages.listing",
            "stages.map",
            "stages.neighbours",
            "stages.partition",
            "stages.preprocess",
            "stages.render",
            "stages.select",
            "stages.vector_index",
        ],
        "rapids": ["stages.index", "stages.search"],
        "rapids-cuda13": ["stages.index", "stages.search"],
        "serve": ["stages.classify_serve", "stages.serve"],
        "tensorflow": ["stages.features", "stages.train"],
    }


def test_the_images_tags_are_the_projects_version() -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    for spec in optional_specs.files(PROJECT / "specs"):
        assert f":{version}" in spec.read_text(), spec.name


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_lock_holds_the_imports_of_its_stages(name: str, distributions: Mapping[str, list[str]]) -> None:
    locked = pins(PROJECT / "docker" / f"{name}.lock")
    for module in image(name).imported - ABSENT.get(name, set()):
        assert any(_normal(each) in locked for each in distributions[module]), f"{module} is not in {name}.lock"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_lock_has_the_tested_versions(name: str) -> None:
    tested, locked = pins(PROJECT / "requirements.lock"), pins(PROJECT / "docker" / f"{name}.lock")
    shared = tested.keys() & locked.keys()
    assert {"numpy", "protobuf", "python-pachyderm"} <= shared
    assert not [each for each in shared if not locked[each] <= tested[each]]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_lock_pins_everything_with_hashes(name: str) -> None:
    requirements = re.split(r"\n(?=\S)", (PROJECT / "docker" / f"{name}.lock").read_text().strip())
    assert all(re.match(r"\S+==\S+ \\\n +--hash=sha256:", each) for each in requirements)


def test_a_lock_has_the_libraries_of_one_cuda() -> None:
    for name, own, other in (("rapids", "12", "13"), ("rapids-cuda13", "13", "12")):
        locked = pins(PROJECT / "docker" / f"{name}.lock")
        assert {f"cuml-cu{own}", f"cupy-cuda{own}x"} <= locked.keys()
        assert not [each for each in locked if each.endswith((f"-cu{other}", f"-cuda{other}x"))]
    on_12, on_13 = (pins(PROJECT / "docker" / f"{name}.lock") for name in ("rapids", "rapids-cuda13"))
    for package in ("cuml", "libcuvs"):
        assert on_12[f"{package}-cu12"] == on_13[f"{package}-cu13"]


def test_the_closure_equals_the_imported_modules(tmp_path: Path) -> None:
    modules = contents(["stages.preprocess", "stages.render"]).modules
    for each in modules | data(modules):  # templates are read when their module is imported
        copy = tmp_path / each.relative_to(PROJECT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(each.read_bytes())
    late = "stages.files.question, stages.filters.entry_question, stages.filters.where_clause"  # for entries with one
    late += ", stages.files.remote_files"  # for records
    names = "(m for m in sys.modules if m.startswith('stages'))"
    seen = f"import sys, stages.preprocess, stages.render, {late}; print(*{names})"
    command = [sys.executable, "-c", seen]
    loaded = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": "."}, capture_output=True, text=True, check=True)
    files = {".".join(each.relative_to(PROJECT).with_suffix("").parts) for each in modules}
    assert set(loaded.stdout.split()) == {each.removesuffix(".__init__") for each in files}


def test_the_modules_that_features_imports_late_are_included() -> None:
    names = {each.stem for each in contents(["stages.features"]).modules}
    assert {"features", "feature_extractor", "embedder_factory", "backbone_file", "backbones", "graph_network"} <= names
    assert {"tensorflow_devices", "jax_devices", "torch_devices"} <= names


def test_the_service_has_all_that_it_imports_late() -> None:
    found = contents(["stages.classify_serve"])
    names = {each.stem for each in found.modules}
    assert {"classify_serve", "service_runner", "promotion_source", "classifier", "backbones"} <= names
    found = contents(["stages.serve"])
    names = {each.stem for each in found.modules}
    assert {
        "serve",
        "service_runner",
        "app",
        "embedder_factory",
        "backbone_file",
        "backbones",
        "exact_searcher",
    } <= names
    assert PROJECT / "stages" / "serving" / "page" / "index.html" in data(found.modules)


@pytest.mark.parametrize("name", ["serve", "classify-serve"])
def test_the_service_listens_with_the_files_of_its_image_alone(name: str, tmp_path: Path) -> None:
    copy = [sys.executable, str(PROJECT / "docker" / "contents.py"), "serve", "--to", str(tmp_path / "code")]
    subprocess.run(copy, check=True)
    variables = {"PACHD_ADDRESS": "grpc://127.0.0.1:1", "LISTEN": "127.0.0.1:0", "HOME": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-P", "-m", f"stages.{name.replace('-', '_')}"],
        cwd=tmp_path,
        env={**variables, "PYTHONPATH": str(tmp_path / "code")},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix(f"{name}: ").strip()
        with urllib.request.urlopen(f"{url}/", timeout=60) as answer:
            assert "<title>" in answer.read().decode()
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_modules_chosen_at_run_time_are_included(tmp_path: Path) -> None:
    package = tmp_path / "house"
    (package / "rooms").mkdir(parents=True)
    for each in ("__init__", "rooms/__init__", "rooms/attic", "rooms/cellar", "garden"):
        (package / f"{each}.py").write_text("import json\n")
    (package / "rooms" / "attic.py").write_text("import zstandard.deep\nfrom house import garden\n")
    (package / "door.py").write_text(
        'import importlib\ndef enter(room): return importlib.import_module(f"house.rooms.{room}")\n'
    )
    found = contents(["house.door"], tmp_path)
    names = {str(each.relative_to(package).with_suffix("")) for each in found.modules}
    assert names == {"__init__", "door", "garden", "rooms/__init__", "rooms/attic", "rooms/cellar"}
    assert found.imported == {"zstandard"}


def test_the_data_of_a_package_are_included() -> None:
    page = PROJECT / "stages" / "serving" / "page"
    held = data(contents(["stages.serving"]).modules)
    assert page / "kit" / "address.js" in held
    assert held == frozenset(path for path in page.rglob("*") if path.is_file())


def test_the_data_of_other_packages_are_not_included() -> None:
    assert data(contents(["stages.preprocess"]).modules) == frozenset()


def kept() -> list[str]:
    """What .dockerignore admits to the build context."""
    return [line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")]


def test_the_build_context_needs_no_directory_by_a_pattern() -> None:
    # Docker's builder without BuildKit does not look into directories that it excludes, unless an exception names them.
    assert not [pattern for pattern in kept() if "*" in pattern.rpartition("/")[0]]


def test_the_build_context_is_enough(tmp_path: Path) -> None:
    context = tmp_path / "context"
    found = [path for pattern in kept() for path in PROJECT.glob(pattern)]
    for path in [each for top in found for each in (top.rglob("*") if top.is_dir() else [top]) if each.is_file()]:
        copy = context / path.relative_to(PROJECT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    for name in ENVIRONMENTS:
        made, modules = tmp_path / name, image(name).modules
        subprocess.run([sys.executable, context / "docker" / "contents.py", name, "--to", made], check=True)
        copied = {path.relative_to(made) for path in made.rglob("*") if path.is_file()}
        assert copied == {path.relative_to(PROJECT) for path in modules | data(modules)}, name


def test_a_missing_module_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match=r"no module stages\.nowhere"):
        contents(["stages.nowhere"])
