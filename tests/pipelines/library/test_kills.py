"""A writer of the library that dies in the middle: a replaced picture is the old or the new one, never both or none."""

import subprocess
import sys

import pytest

from pipelines.library import ingest
from tests.pipelines.client.test_open_commits import STEPS, Pause
from tests.pipelines.grpc_proxy import passed_on
from tests.pipelines.library.filled_library import Place, many

pytestmark = pytest.mark.late_alone

WRITER = """
import sys
from pathlib import Path
from pipelines.client.server.connection import ServerTarget, connect
from pipelines.library import ingest
from pipelines.library.picture_sources import PictureSource

connection = connect(ServerTarget(sys.argv[1], sys.argv[2]))
if len(sys.argv) > 3:
    ingest.add(connection, [PictureSource("photos/0007.jpg", Path(sys.argv[3]), 3)])
else:
    ingest.remove(connection, ["photos/0007.jpg", "a.jpg"])
"""


@pytest.mark.parametrize("step", [1, 2, 3, pytest.param(5, marks=pytest.mark.only_in_all)])
@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_a_killed_writer_leaves_nothing_half(place: Place, step: int, replaced: bool) -> None:
    before = {**many(range(20)), "a.jpg": b"one"}
    place.add(before)
    (new,) = place.files({"photos/0007.jpg": b"new"})
    pause = Pause(step)
    with passed_on(place.connection, heard=pause) as through:
        arguments = [sys.executable, "-c", WRITER, through.address, place.connection.project]
        with subprocess.Popen([*arguments, *([str(new.path)] if replaced else [])]) as process:
            assert pause.reached.wait(60)
            process.kill()
            pause.ended.set()
    ingest.add(place.connection, place.files({"z.jpg": b"last"}))
    if replaced:
        after = {**before, "photos/0007.jpg": b"new"}
    else:
        after = {name: of for name, of in before.items() if name not in ("photos/0007.jpg", "a.jpg")}
    possible = [before] if step < STEPS.index("FinishCommit") - 1 else [before, after]
    assert place.library() in [{**each, "z.jpg": b"last"} for each in possible]
