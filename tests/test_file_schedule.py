"""The scheduling of tests names existing files and puts them first."""

import subprocess
import sys
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.file_schedule import FIRST, GROUPS, ONLY_IN_ALL, grouped, processes, scope

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("file", sorted({*chain(*GROUPS.values()), *FIRST, *ONLY_IN_ALL}))
def test_every_named_file_exists(file: str) -> None:
    assert (ROOT / file).exists()


def test_groups_come_first_then_the_longest_and_the_others_stay_in_order() -> None:
    group = GROUPS["service"][0]
    names = [
        "tests/a.py::two",
        "tests/a.py::one",
        f"{FIRST[3]}/b.py::x",
        f"{group}/c.py::x",
        f"{FIRST[2]}/d.py::x[a::b]",
    ]
    items: Any = [SimpleNamespace(nodeid=name) for name in names]
    found = [[item.nodeid for item in group] for group in grouped(items)]
    assert found == [names[3:4], names[4:], names[2:3], names[:2]]


def test_files_of_tensorflow_and_of_the_service_are_groups_and_others_stay_whole() -> None:
    first, *_, last = GROUPS["TensorFlow"]
    assert scope(f"{first}/a.py::one") == scope(f"{last}::two[a::b]") == "TensorFlow"
    assert scope("tests/a.py::one") == scope("tests/a.py::Two::two") == "tests/a.py"


def test_processes_follow_the_cores_and_the_memory() -> None:
    assert processes(2, 16 << 30) == 4
    assert processes(2, 7 << 30) == 3
    assert processes(2, 1 << 30) == 2
    assert processes(16, 32 << 30) == 16


@pytest.mark.parametrize(
    ("arguments", "collected"),
    [(["tests/setup"], False), (["tests/setup", "--all"], True), (["tests/setup/test_environment.py"], True)],
)
def test_what_only_test_all_runs_is_left_out_unless_it_is_named(arguments: list[str], collected: bool) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ("tests/setup/test_environment.py::" in done.stdout) is collected
