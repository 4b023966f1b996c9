"""A writer of the library that dies in the middle: a replaced picture is the old or the new one, never both or none."""

import pytest

from pipelines.library import ingest
from tests.pipelines import forked_writers
from tests.pipelines.client.test_open_commits import STEPS, Pause
from tests.pipelines.grpc_proxy import passed_on
from tests.pipelines.library.filled_library import Place, many

pytestmark = pytest.mark.late_alone


@pytest.mark.parametrize("step", [1, 2, 3, pytest.param(5, marks=pytest.mark.only_in_all)])
@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_a_killed_writer_leaves_nothing_half(place: Place, step: int, replaced: bool) -> None:
    before = {**many(range(20)), "a.jpg": b"one"}
    place.add(before)
    (new,) = place.files({"photos/0007.jpg": b"new"})
    pause = Pause(step)
    with passed_on(place.connection, heard=pause) as through:
        kind, file = ("replaced", [new.path]) if replaced else ("removed", [])
        with forked_writers.start(kind, through, *file) as process:
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
