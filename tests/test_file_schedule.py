"""The scheduling of tests names existing files and puts them first."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.file_schedule import LONGEST, ONLY_IN_ALL, SERVICE, TENSORFLOW, grouped, processes, scope

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("file", sorted({*TENSORFLOW, *SERVICE, *LONGEST, *ONLY_IN_ALL}))
def test_every_named_file_exists(file: str) -> None:
    assert (ROOT / file).exists()


def test_the_longest_come_first_and_the_others_stay_in_order() -> None:
    names = ["tests/a.py::two", "tests/a.py::one", f"{LONGEST[3]}::x", f"{TENSORFLOW[3]}::x", f"{LONGEST[2]}::x[a::b]"]
    items: Any = [SimpleNamespace(nodeid=name) for name in names]
    found = [[item.nodeid for item in group] for group in grouped(items)]
    assert found == [names[3:4], names[4:], names[2:3], names[:2]]


def test_files_of_tensorflow_and_of_the_service_are_groups_and_others_stay_whole() -> None:
    assert scope(f"{TENSORFLOW[0]}::one") == scope(f"{TENSORFLOW[1]}::two[a::b]") == "TensorFlow"
    assert scope(f"{SERVICE[0]}::one") == scope(f"{SERVICE[1]}::two[a::b]") == "service"
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
