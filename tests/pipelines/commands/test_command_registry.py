"""The list of commands matches their modules, and reading it imports no large package."""

import importlib
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from pipelines.commands.command_registry import COMMANDS, GROUPS
from pipelines.commands.program import app

HEAVY = {
    "numpy",
    "pyarrow",
    "PIL",
    "tensorflow",
    "keras",
    "h5py",
    "scipy",
    "skimage",
    "sklearn",
    "faiss",
    "onnxruntime",
}


def test_the_start_of_the_command_imports_no_numerical_package() -> None:
    code = "import sys, pipelines.commands.program; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout
    assert HEAVY.isdisjoint(loaded.split())


@pytest.mark.parametrize("module", sorted({each.module for each in COMMANDS.values()}))
def test_every_command_of_a_module_is_listed(module: str) -> None:
    group = typer.main.get_group(importlib.import_module(f"pipelines.commands.{module}").app)
    assert sorted(group.commands) == sorted(name for name, each in COMMANDS.items() if each.module == module)


def test_the_help_lists_every_summary_whole() -> None:
    said = CliRunner().invoke(app, ["--help"]).stdout
    width = max(map(len, COMMANDS))
    for name, each in COMMANDS.items():
        assert f"{name:<{width}}  {each.summary}\n" in said
    headings = [line.removesuffix(":") for line in said.splitlines() if re.fullmatch(r"[A-Z]\w+:", line)]
    assert headings == ["Options", *GROUPS]
    listed = [line.split()[0] for line in said[said.index("Library:") :].splitlines() if line.startswith("  ")]
    assert listed == [*COMMANDS]


def test_a_mistyped_command_is_answered_with_the_nearest() -> None:
    result = CliRunner().invoke(app, ["shwo"])
    assert result.exit_code == 2
    assert "Did you mean 'show'?" in result.output


@pytest.mark.parametrize("name", ["add", "compact", "remove", "sync", "undo"])
def test_the_commands_of_every_day_start_without_numbers_or_a_service(name: str) -> None:
    code = f"import sys, pipelines.commands.library.{name}; print(*{{each.partition('.')[0] for each in sys.modules}})"
    loaded = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout
    assert (HEAVY | {"pyarrow", "fastapi", "obstore"}).isdisjoint(loaded.split())
