"""docs/tutorial.md: its commands print what it says, and its files are those of the example."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from localpachd.worker.machine import namespaces
from tests import transcripts
from tests.pachctl import PROGRAMS
from tests.servers import OwnPort
from tests.transcripts import Ids, Shell

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "tests" / "examples" / "opencv"
PORT = "30650"


@pytest.fixture
def shell(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shell]:
    """A shell where the tutorial begins, with the `pachctl` of the test's parameter."""
    if not namespaces.detect(tmp_path).mounts:
        pytest.skip("/pfs cannot be mounted here, and the tutorial's code reads it")
    with transcripts.checkout_shell(tmp_path, request.param, ["tests"]) as made:
        yield made


@pytest.mark.timeout(300)
@pytest.mark.parametrize("shell", PROGRAMS, indirect=True)
def test_every_command_prints_what_the_document_says(shell: Shell, own_port: OwnPort) -> None:
    port, ids = str(own_port()), Ids()
    for step in transcripts.steps(DOCUMENT):
        said = tuple(line.replace(PORT, port) for line in step.output)
        printed = shell.run(ids.put(step.command).replace(PORT, port), len(said))
        ids.learn("\n".join(said), "\n".join(printed))
        expected, actual = transcripts.comparable(said, printed)
        assert actual == expected, step.command


def test_files_shown_are_those_of_the_example() -> None:
    shown = re.findall(r"^```\w+\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    named = ("edges.json", "edges.py", "montage.json", "edges.jsonnet", "Dockerfile")
    assert shown == [(EXAMPLE / name).read_text() for name in named]


def test_table_of_commands_has_those_of_the_transcripts() -> None:
    table = DOCUMENT.partition("| command | does |")[2]
    listed = set(re.findall(r"`pachctl ([a-z ]+)`", table))
    used = {
        typed for step in transcripts.steps(DOCUMENT) for typed in re.findall(r"pachctl (.*?)(?= [>|]|$)", step.command)
    }
    matches = {typed: {name for name in listed if f"{typed} ".startswith(f"{name} ")} for typed in used}
    assert not [typed for typed, names in matches.items() if not names]
    assert {name for names in matches.values() for name in names} == listed
