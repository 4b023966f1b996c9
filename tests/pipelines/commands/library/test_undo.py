"""`lookalike undo`: the last change taken back, whatever made it, and refusals."""

import json
import os
import pty
import re

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from PIL import Image

from pipelines.client.commit_history import CommitHistory
from pipelines.client.repository import DeleteFile, PutFile, Repository, write_set
from pipelines.client.server.connection import Connection
from pipelines.library import ingest, last_change
from pipelines.library.picture_sources import PictureSource
from tests.command import Command
from tests.example_counts import examples
from tests.pipelines.conftest import WaitForJobs

pytestmark = [pytest.mark.timeout(300), pytest.mark.late_alone, pytest.mark.usefixtures("own_cache")]

TIME = r"\d{1,2} [A-Z][a-z]+ \d\d:\d\d"


@pytest.fixture
def images(as_user: Connection) -> Repository:
    for repo in ("images", "masks"):
        as_user.client.create_repo(repo, project_name=as_user.project)
    return Repository(as_user, "images")


def content(images: Repository) -> dict[str, bytes]:
    return dict(images.read_all("/**"))


def commits(connection: Connection) -> list[str]:
    return [each.id for each in CommitHistory(connection).commits("images")]


def test_an_addition_is_named_taken_back_and_made_again(
    as_user: Connection, preprocessing: Connection, command: Command, wait_for_jobs: WaitForJobs
) -> None:
    images = Repository(as_user, "images")
    added = []
    for number in range(6):
        path = command.directory / f"{number}.png"
        Image.new("RGB", (8, 8), (40 * number, 0, 0)).save(path)
        added.append(PictureSource(f"trip/{path.name}", path, path.stat().st_size))
    wait_for_jobs(ingest.add(as_user, added[:1]).commit)
    wait_for_jobs(ingest.add(as_user, added[1:], most_single=1).commit)
    before, history = content(images), commits(as_user)
    done = json.loads(command.run("undo", "--yes", "--json").stdout)
    assert (done["undone"], len(done["pictures"]["added"])) == (history[-1], 5)
    assert list(content(images)) == ["/trip%2F0.png"]
    assert commits(as_user) == [*history, done["commit"]]
    said = command.says("undo", "--yes")
    assert re.search(rf"takes back: 5 pictures removed on {TIME} \(.+: undo --yes --json\)\n", said)
    assert said.endswith("to make the change again: lookalike undo\n")
    assert "processed" not in said  # the table of jobs, which -v shows
    assert content(images) == before


def test_labels_that_were_put_with_pictures_go_with_them(
    as_user: Connection, images: Repository, command: Command
) -> None:
    as_user.client.create_repo("labels", project_name=as_user.project)
    labels = Repository(as_user, "labels")
    labels.write([PutFile("/mine.csv", b"old")])
    images.write([PutFile("/a.png", b"1")])
    edits = {"images": [PutFile("/b.png", b"2")], "labels": [PutFile("/mine.csv", b"new"), PutFile("/more.csv", b"")]}
    write_set(as_user, edits)
    states = [(content(images), content(labels))]
    said = command.says("undo", "--yes", "--no-wait")
    assert re.search(rf"takes back: a change of 1 file, a change of 2 files of labels on {TIME} \(", said)
    assert (content(images), content(labels)) == ({"/a.png": b"1"}, {"/mine.csv": b"old"})
    command.says("undo", "--yes", "--no-wait")
    assert (content(images), content(labels)) == states[0]
    labels.write([PutFile("/mine.csv", b"newer")])
    shown = last_change.read(as_user)
    assert [each.repo for each in shown] == ["labels"]
    last_change.take_back(as_user, shown)
    assert (content(images), content(labels)) == states[0]


def test_it_asks_and_names_what_goes(as_user: Connection, images: Repository, command: Command) -> None:
    images.write([PutFile("/a.png", b"1")])
    before = content(images)
    assert command.fails("undo") == "nothing was taken back: without a terminal to ask on, --yes takes it back"
    main, its = pty.openpty()
    asked = command.start("undo", "--no-wait", stdin=its)
    os.close(its)
    os.write(main, b"n\n")
    said, complained = asked.communicate(timeout=60)
    assert re.search(rf"takes back: a change of 1 file on {TIME} \(", said), (said, complained)
    assert (asked.returncode, "take this back?" in complained) == (1, True)
    assert (content(images), len(commits(as_user))) == (before, 1)


def test_nothing_is_taken_back_where_nothing_changed_or_the_library_moved_on(
    as_user: Connection, images: Repository, command: Command
) -> None:
    nothing = "there is nothing to take back: no pictures have been added or removed yet"
    assert command.fails("undo") == nothing
    images.write([DeleteFile("/nothing")])
    assert command.fails("undo") == nothing
    images.write([PutFile("/a.png", b"1")])
    shown = last_change.read(as_user)
    later = images.write([PutFile("/b.png", b"2")])
    with pytest.raises(Exception, match=f"the library has changed since this was shown .commit {later}.") as refused:
        last_change.take_back(as_user, shown)
    assert "so nothing was taken back" in str(refused.value)
    assert content(images) == {"/a.png": b"1", "/b.png": b"2"}
    with as_user.client.commit("images", "master", project_name=as_user.project) as opened:
        assert f"images is being written to (commit {opened.id})" in command.fails("undo")


PATHS = st.sampled_from(["/a", "/b", "/dir/a", "/dir/sub/b"])
CHANGES = st.dictionaries(PATHS, st.sampled_from([b"one", b"two", b"", None]), min_size=1, max_size=3)


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CHANGES, min_size=1, max_size=4))
def test_every_change_is_taken_back_and_made_again(
    as_user: Connection, images: Repository, steps: list[dict[str, bytes | None]]
) -> None:
    states = [content(images)]
    for changes in steps:
        images.write([DeleteFile(path) if new is None else PutFile(path, new) for path, new in changes.items()])
        states.append(content(images))
    changed = [place for place in range(1, len(states)) if states[place] != states[place - 1]]
    if changed:
        last_change.take_back(as_user, last_change.read(as_user))
        assert content(images) == states[changed[-1] - 1]
        last_change.take_back(as_user, last_change.read(as_user))
        assert content(images) == states[-1]
