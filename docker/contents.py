"""The files of this project in an image: the stages that the specifications run in it, all modules that these import,
and the data of their packages.

Standard library only, since the Dockerfile runs it before anything is installed:
`python3 docker/contents.py IMAGE --to DIR` copies the files from the project around it.
"""

import argparse
import ast
import json
import shutil
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PREFIX = "lookalike-"
VARIANTS = {"rapids-cuda13": "rapids"}
"""Images that overlays name in place of others, with other packages for the same stages."""


@dataclass(frozen=True)
class Contents:
    """modules: the paths of the project's files that an image needs. imported: top-level names of other packages."""

    modules: frozenset[Path]
    imported: frozenset[str]


def environments(project: Path = PROJECT) -> dict[str, list[str]]:
    """The modules that the specifications run in each image, by the image's short name: {"cpu": ["stages.render"]}. A
    variant runs those of the image that it stands for."""
    found: dict[str, set[str]] = {}
    files = (*(project / "specs").glob("*.json"), *(project / "specs").glob("*/*.json"))
    for file in sorted(path for path in files if path.parent.name != "overlays"):
        transform = json.loads(file.read_text(encoding="utf-8"))["transform"]
        name = transform["image"].rpartition("/")[2].partition(":")[0]
        command = transform["cmd"]
        found.setdefault(name.removeprefix(PREFIX), set()).add(command[command.index("-m") + 1])
    found |= {name: found[VARIANTS[name]] for name in VARIANTS if VARIANTS[name] in found}
    return {name: sorted(modules) for name, modules in sorted(found.items())}


def contents(modules: list[str], project: Path = PROJECT) -> Contents:
    """The import closure of some modules of the project. Imports nothing.

    Includes the __init__.py of packages, modules that are imported when they are needed, by load("package.module"), and
    all of a package whose modules are chosen at run time, by import_module(f"package.{name}") or load with such a text.
    Raises FileNotFoundError for a module that does not exist.
    """
    project_packages = {path.parent.name for path in project.glob("*/__init__.py")}
    waiting, modules_found, imported = list(modules), set(), set()
    while waiting:
        name = waiting.pop()
        if name.partition(".")[0] not in project_packages:
            imported.add(name.partition(".")[0])
            continue
        path = _file(project, name)
        if path in modules_found:
            continue
        modules_found.add(path)
        waiting += [name.rpartition(".")[0]] if "." in name else []
        waiting += _imports(ast.parse(path.read_text(encoding="utf-8")), project)
    return Contents(frozenset(modules_found), frozenset(imported - sys.stdlib_module_names))


def data(modules: Iterable[Path], project: Path = PROJECT) -> frozenset[Path]:
    """The files of data of the packages among some modules, which pyproject.toml lists for the wheel too."""
    listed = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"][
        "package-data"
    ]
    packages = {path.parent for path in modules if path.name == "__init__.py"}
    found: set[Path] = set()
    for package, patterns in listed.items():
        directory = project.joinpath(*package.split("."))
        if directory in packages:
            found.update(path for pattern in patterns for path in directory.glob(pattern))
    return frozenset(found)


def _file(project: Path, module: str) -> Path:
    path = project.joinpath(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(f"no module {module} in {project}")


def _imports(tree: ast.Module, project: Path) -> Iterator[str]:
    """The names of the modules that a file imports. Relative imports, which this project does not use, are refused."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield module
                yield from (f"{module}.{each.name}" for each in names if _is_module(project, f"{module}.{each.name}"))
            case ast.ImportFrom():
                raise ValueError("a relative import: write the module's full name")
            case ast.Call(func=ast.Name(id="load"), args=[ast.Constant(value=str(module))]):
                yield module
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="load"),
                args=[ast.JoinedStr(values=[ast.Constant(value=str(prefix)), *_])],
            ):
                package = prefix.rstrip(".")
                below = project.joinpath(*package.split("."))
                yield from (f"{package}.{each.stem}" for each in sorted(below.glob("[a-z]*.py")))


def _is_module(project: Path, name: str) -> bool:
    path = project.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def main() -> None:
    """Copies an image's files; see the module's docstring."""
    known = environments()
    parser = argparse.ArgumentParser(description="Copy the files of this project that an image needs.")
    parser.add_argument("image", choices=known)
    parser.add_argument("--to", type=Path, required=True, metavar="DIR")
    given = parser.parse_args()
    modules = contents(known[given.image]).modules
    for source in sorted(modules | data(modules)):
        target = given.to / source.relative_to(PROJECT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


if __name__ == "__main__":
    main()
