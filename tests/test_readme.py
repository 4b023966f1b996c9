"""README.md: its lines for pachctl alone run as they stand, with pachctl where there is one, else over the official
client, and print what it says."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import transcripts
from tests.pachctl import PROGRAMS
from tests.servers import OwnPort
from tests.transcripts import Shell

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = (ROOT / "README.md").read_text(encoding="utf-8")
PORT = "30650"
SUBSTITUTE = f'#!/bin/sh\nexec {sys.executable} -m tests.substitute "$@"\n'
"""A `pachctl` for machines without it."""


def _programs() -> list[str]:
    found = [each for each in PROGRAMS if isinstance(each, str)]
    return found or [SUBSTITUTE]


@pytest.fixture(params=_programs(), ids=lambda each: "substitute" if each == SUBSTITUTE else Path(each).name)
def shell(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shell]:
    """A shell in a checkout, with the `pachctl` of the test's parameter."""
    program = request.param
    if program == SUBSTITUTE:
        substitute = tmp_path / "substitute"
        substitute.write_text(SUBSTITUTE)
        substitute.chmod(0o755)
        program = str(substitute)
    with transcripts.checkout_shell(tmp_path, program, ["specs", "tests"]) as made:
        yield made


@pytest.mark.timeout(600)
def test_lines_for_pachctl_answer_a_query(shell: Shell, own_port: OwnPort, tmp_path: Path) -> None:
    port = str(own_port())
    for step in transcripts.steps(DOCUMENT):
        command = step.command.replace(PORT, port)
        if command.endswith("&"):
            assert shell.run(command, lines=1) == [f"localpachd: listening on grpc://127.0.0.1:{port}"]
            continue
        *printed, status = shell.run(f"{command}; echo $?")
        assert status == "0", (step.command, printed)
        if step.output:
            expected, actual = transcripts.comparable(step.output, printed)
            assert actual == expected, step.command
    (answer,) = (tmp_path / "checkout" / "build" / "sheet").rglob("neighbors.jsonl")
    assert json.loads(answer.read_text())["neighbors"][0]["sources"] == ["photos/chelsea.png"]
