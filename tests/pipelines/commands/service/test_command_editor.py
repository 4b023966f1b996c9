"""A service that dies while it labels pictures: the labels are the old or the new ones, and nobody is kept waiting."""

import subprocess
import sys

import pytest

from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.commands.service.command_editor import CommandEditor
from stages.record import label_changes
from stages.record.label_changes import OWN_FILE
from stages.serving.follow.refusals import Refusal
from tests.pipelines.client.test_open_commits import Pause
from tests.pipelines.grpc_proxy import passed_on

pytestmark = pytest.mark.late_alone

WRITER = """
import sys
from pipelines.client.server.connection import ServerTarget, connect
from pipelines.commands.service.command_editor import CommandEditor
from stages.record import label_changes

editor = CommandEditor(connect(ServerTarget(sys.argv[1], sys.argv[2])))
now = editor.labels()
files, _ = label_changes.relabelled(now.files, ["a.png", "b.png"], "cat")
editor.put_labels(files, now, "Label 2 pictures")
"""

MINE = b"source,label\na.png,dog\nc.png,dog\n"


STEPS = ("StartCommit", "AddFileSet", "FinishCommit")
"""Calls of a write to one repo, in order."""


@pytest.mark.parametrize("step", [0, 1, pytest.param(2, marks=pytest.mark.only_in_all)])
def test_a_killed_service_leaves_nothing_half(connection: Connection, step: int) -> None:
    for repo in ("images", "labels"):
        connection.client.create_repo(repo, project_name=connection.project)
    labels = Repository(connection, "labels")
    labels.write([PutFile("/mine.csv", MINE)])
    before = {"mine.csv": MINE}
    after = {**before, **label_changes.relabelled(before, ["a.png", "b.png"], "cat")[0]}
    assert [*after] == ["mine.csv", OWN_FILE]
    pause = Pause(step, STEPS)
    with (
        passed_on(connection, heard=pause) as through,
        subprocess.Popen([sys.executable, "-c", WRITER, through.address, connection.project]) as process,
    ):
        assert pause.reached.wait(60)
        process.kill()
        pause.ended.set()
    editor = CommandEditor(connection)
    now = editor.labels()
    assert now.files in (before, after)
    last = {"z.csv": b"source,label\nz.png,cat\n"}
    try:
        editor.put_labels(last, now, "Label 1 picture")
    except Refusal as moved:  # the open commit was the head, and is finished now
        assert moved.code == "moved"
        editor.put_labels(last, editor.labels(), "Label 1 picture")
    assert editor.labels().files in [{**each, **last} for each in (before, after)]
