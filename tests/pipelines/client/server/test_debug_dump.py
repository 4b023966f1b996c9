"""The server's dump as a file."""

import tarfile

import pytest

from pipelines.client.server.connection import Connection
from tests.command import Command

pytestmark = pytest.mark.late_alone


def test_a_dump_is_one_new_file(as_user: Connection, command: Command) -> None:
    done = command.run("debug", "dump", "report.tgz")
    said = "wrote report.tgz: look through it before you send it"
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, said)
    with tarfile.open(command.directory / "report.tgz") as archive:
        assert "database/tables.json" in archive.getnames()
    again = command.run("debug", "dump", "report.tgz")
    assert (again.returncode, "exists already" in again.stderr) == (1, True)
    assert [path.name for path in command.directory.iterdir()] == ["report.tgz"]
