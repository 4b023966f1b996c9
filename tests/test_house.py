"""The form of the house: how full a room may be, and how its files and classes are named, so that grep finds a concept.

`make lint` runs this file too.
"""

import ast
import functools
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("localpachd", "lookalike", "pipelines", "speclang", "stages")

FULL = 25
"""Modules in one room; rooms in it are not counted."""

PAGE = {
    "page": 4,
    "library": 3,
    "classify": 3,
    "copies": 3,
    "labels": 2,
    "map": 3,
    "search": 2,
    "filters": 1,
    "pictures": 1,
    "kit": 0,
}
"""The rooms of the service's page and their heights: a module imports its own room's and lower ones."""

GRPC_NAMES = {"NotFound", "Unimplemented"}
"""Classes named by a status of gRPC that is no noun."""

_PARTICIPLE = re.compile(
    "(?:.*(?:ing|ed)|Begun|Bought|Broken|Brought|Built|Caught|Chosen|Dealt|Done|Drawn|Found|Given|Gone|Grown|Heard|"
    "Held|Hidden|Hit|Kept|Known|Laid|Led|Left|Lost|Made|Met|Paid|Put|Read|Said|Seen|Sent|Shown|Taken|Told|Understood|Written)"
)
_NOUNS = frozenset({"Embedding", "Feed", "Finding", "Framing", "Listing", "Ranking"})


@dataclass(frozen=True)
class Definition:
    """A public class, and the module that defines it."""

    name: str
    module: str


def _files(package: str) -> list[Path]:
    return sorted(path for path in (ROOT / package).rglob("*.py") if path.name != "__init__.py")


@functools.cache
def _classes(package: str) -> tuple[Definition, ...]:
    return tuple(
        Definition(node.name, path.relative_to(ROOT).with_suffix("").as_posix())
        for path in _files(package)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )


def is_participle(name: str) -> bool:
    """Whether the last word of a class's name is a participle or a gerund: it says what was done, not what it is."""
    word = re.findall(r"[A-Z][a-z0-9]*", name)[-1]
    return word not in _NOUNS and bool(_PARTICIPLE.fullmatch(word))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Answered", True), ("Held", True), ("QueryDecoding", True), ("Embedding", False), ("FileSet", False)],
)
def test_participles_are_told_from_nouns(name: str, expected: bool) -> None:
    assert is_participle(name) is expected


def test_no_room_is_overfull() -> None:
    counted: Counter[str] = Counter()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.suffix in (".py", ".js", ".css", ".html") and path.name != "__init__.py":
                counted[path.parent.relative_to(ROOT).as_posix()] += 1

    assert not {room: count for room, count in counted.items() if count > FULL}


def test_the_modules_of_the_page_import_downwards() -> None:
    page = ROOT / "stages" / "serving" / "page"
    upward = []
    for path in page.rglob("*.js"):
        for name in re.findall(r'^import .* from "(.+)";$', path.read_text(encoding="utf-8"), re.MULTILINE):
            imported = (path.parent / name).resolve()
            assert imported.is_file(), f"{path} imports {name}, which does not exist"
            if path.parent != imported.parent and PAGE[path.parent.name] <= PAGE[imported.parent.name]:
                upward.append(f"{path.relative_to(page)} imports {imported.relative_to(page)}")
    assert not upward


@pytest.mark.parametrize("package", PACKAGES)
def test_classes_are_named_by_nouns(package: str) -> None:
    assert not [each for each in _classes(package) if is_participle(each.name) and each.name not in GRPC_NAMES]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_two_classes_share_a_name(package: str) -> None:
    modules: defaultdict[str, list[str]] = defaultdict(list)
    for each in _classes(package):
        modules[each.name].append(each.module)

    assert not {name: places for name, places in modules.items() if len(places) > 1}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_two_files_share_a_name(package: str) -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in _files(package):
        places[path.name].append(path.parent.relative_to(ROOT).as_posix())

    assert not {name: rooms for name, rooms in places.items() if len(rooms) > 1}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_constant_of_a_module_is_assigned_twice(package: str) -> None:
    """The second value would win wherever the first is meant, as after two modules were merged."""
    twice = []
    for path in _files(package):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
        targets += [node.target for node in body if isinstance(node, ast.AnnAssign)]
        names = Counter(target.id for target in targets if isinstance(target, ast.Name))
        twice += [f"{path.relative_to(ROOT)}: {name}" for name, count in names.items() if count > 1]
    assert not twice


def test_no_test_sets_the_clock_of_the_whole_process() -> None:
    """Threads that other tests have left would sleep for as long as that clock is ahead: give the module a clock."""
    patched = re.compile(r"""(?:setattr|patch(?:\.object)?)\(\s*"?(?:time|asyncio|selectors)(?:,|\.)""")
    found = [path for path in (ROOT / "tests").rglob("*.py") if patched.search(path.read_text(encoding="utf-8"))]
    assert not [path.relative_to(ROOT).as_posix() for path in found]
