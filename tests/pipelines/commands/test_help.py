"""Helps: whole, in words, with -h; the version; completion by the shells themselves."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipelines.commands.command_registry import COMMANDS, load
from pipelines.commands.program import app
from tests.command import Command


def helps() -> list[list[str]]:
    """The words of every command and group."""
    found: list[list[str]] = [[]]
    for name in COMMANDS:
        found += [[name], *([name, below] for below in getattr(load(name), "commands", ()))]
    return found


def test_helps_are_whole_and_have_types_in_words() -> None:
    for words in helps():
        said = CliRunner().invoke(app, [*words, "-h"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
        assert said.exit_code == 0
        assert "-h, --help" in said.stdout
        _, *rest = said.stdout.splitlines()
        assert not re.search(r"<\w+>|<list|\w\.\.\.(\s|$)", "\n".join(rest)), said.stdout
        assert max(map(len, said.stdout.splitlines())) <= 80, said.stdout


def test_the_list_of_a_group_has_whole_summaries() -> None:
    group: Any = load("model")
    said = " ".join(CliRunner().invoke(app, ["model", "-h"]).stdout.split())
    for each in group.commands.values():
        assert " ".join(each.help.partition("\n\n")[0].split()) in said


def test_the_version(command: Command) -> None:
    assert command.says("--version") == f"lookalike {metadata.version('lookalike')}\n"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["up", "--port", "many"], "Invalid value for '--port': it takes a whole number"),
        (["add", "x", "--split", "half"], "Invalid value for '--split': it takes a number"),
        (["up", "--runner", "pod"], "Invalid value for '--runner': 'pod' is not one of 'process', 'docker'."),
        (["add"], "Missing argument 'PATH'"),
        (["status", "--bogus"], "No such option: --bogus"),
    ],
)
def test_a_wrong_value_is_answered_in_words(command: Command, typed: list[str], said: str) -> None:
    done = command.run(*typed)
    assert done.returncode == 2
    assert said in done.stderr


COMPLETE = """
source ~/.bashrc
while read typed; do
    COMP_WORDS=($typed) COMP_CWORD=$(($(wc -w <<< "$typed") - 1))
    _lookalike_completion lookalike
    echo "$typed: ${COMPREPLY[*]}"
done <<END
lookalike sta
lookalike model pu
lookalike add --no-
lookalike up --runner d
lookalike add pic
END
"""


@pytest.mark.only_in_all
def test_bash_completes_commands_options_and_values(tmp_path: Path) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("BASH")},
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }

    def bash(script: str) -> str:
        done = subprocess.run(["bash", "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert "bash completion installed" in bash("lookalike --install-completion; exit $?")
    (tmp_path / "pictures").mkdir()
    assert bash(COMPLETE).splitlines() == [
        "lookalike sta: status",
        "lookalike model pu: push",
        "lookalike add --no-: --no-wait",
        "lookalike up --runner d: docker",
        "lookalike add pic: ",  # left to bash, which completes names of files
    ]


@pytest.mark.parametrize(
    ("shell", "environment", "said"),
    [
        ("zsh", {"_TYPER_COMPLETE_ARGS": "lookalike sta"}, '"status":"Show'),
        ("fish", {"_TYPER_COMPLETE_ARGS": "lookalike sta", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}, "status\tShow"),
    ],
)
def test_the_other_shells_are_answered(command: Command, shell: str, environment: dict[str, str], said: str) -> None:
    command.environment |= {"_LOOKALIKE_COMPLETE": f"complete_{shell}", **environment}
    assert said in command.says()
