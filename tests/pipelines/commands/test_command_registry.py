"""The list of commands matches their modules, and reading it imports no large package."""

import importlib
import json
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


NOT_LOADED = {
    "program": HEAVY,
    **{f"library.{name}": {*HEAVY, "fastapi", "obstore"} for name in ("add", "compact", "remove", "sync", "undo")},
    "pipelines.models": {"tensorflow", "keras", "h5py"},
}
"""Packages that modules of commands do without, so that they start at once."""

IMPORTS = """
import importlib, json, sys
for each in sys.argv[1:]:
    importlib.import_module(f"pipelines.commands.{each}")
    print(json.dumps([each, *{name.partition('.')[0] for name in sys.modules}]))
"""


def test_commands_start_without_large_packages() -> None:
    """In one process, in which packages that one loads are seen with all after it, too."""
    command = [sys.executable, "-P", "-c", IMPORTS, *NOT_LOADED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = {module: names for module, *names in map(json.loads, done.stdout.splitlines())}
    assert loaded.keys() == NOT_LOADED.keys()
    assert not {module: found for module, names in loaded.items() if (found := NOT_LOADED[module].intersection(names))}


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
