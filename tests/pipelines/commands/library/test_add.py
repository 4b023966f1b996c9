"""The commands for pictures and queries as people type them: what is put, refused, left out, removed and stopped."""

import json
import os
import subprocess
from pathlib import Path

import pillow_heif
import pytest
from PIL import Image

from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.library import library_commit
from pipelines.library.datasets.samples import library_crops
from stages.backbone.photographs import open_photograph
from tests.command import Command
from tests.pipelines.library import picture_contents
from tests.pipelines.stand_ins import create_foreign, deploy_specs, shell_spec
from tests.stages import raw_files
from tests.stages.scenes import saved

pytestmark = pytest.mark.late_alone

JPEG = b"\xff\xd8\xff"
"""The beginning of a picture."""


@pytest.fixture
def trip(command: Command) -> Path:
    """A folder with two pictures, in the directory of the command."""
    folder = command.directory / "trip"
    folder.mkdir()
    for number, crop in zip("ab", library_crops(open_photograph("cat"), "cat", 0), strict=False):
        crop.save(folder / f"{number}.png")
    return folder


@pytest.fixture
def repos(as_user: Connection) -> Connection:
    """The user's library with repos only: nothing is computed."""
    for repo in ("images", "masks", "queries"):
        as_user.client.create_repo(repo, project_name=as_user.project)
    return as_user


def library(connection: Connection) -> set[str]:
    return {path.strip("/") for path in Repository(connection, "images").list()}


def test_an_empty_word_is_an_error(repos: Connection, command: Command, trip: Path) -> None:
    for words in (["add", ""], ["query", "a.png", ""], ["remove", ""], ["demo", "--images", ""]):
        done = command.run(*words)
        assert done.returncode == 2
        assert "is empty" in done.stderr
    assert library(repos) == set()


def test_one_unreadable_file_is_left_out_and_named(repos: Connection, command: Command, trip: Path) -> None:
    (trip / "bad.png").symlink_to("/proc/self/mem")  # reading its beginning is an error, for root, too
    done = command.run("add", "trip")
    assert (done.returncode, done.stderr) == (
        1, "lookalike: 1 file could not be read: all others were put\n"
    )  # fmt: skip
    assert "left out trip/bad.png: Input/output error\n" in done.stdout
    assert "\n2 pictures added, searchable after " in done.stdout
    assert library(repos) == {"trip%2Fa.png", "trip%2Fb.png"}
    done = command.run("query", "trip", "--no-wait")
    assert (done.returncode, "its jobs are running" in done.stdout) == (1, True)
    assert "cannot read trip/bad.png: Input/output error: nothing was put" in command.fails("add", "trip/bad.png")


@pytest.mark.late_alone(False)
def test_only_this_commands_files_are_counted(
    as_user: Connection, preprocessing: Connection, command: Command, trip: Path
) -> None:
    (trip / "bad.png").write_bytes(b"")
    said = command.says("add", "trip")
    assert "1 file rejected:\n  images: trip/bad.png: the file is empty\n" in said
    said = command.says("add", "trip/a.png")
    assert "\n1 picture added, searchable" in said
    assert "rejected:" not in said
    (command.directory / "bad.png").write_bytes(b"")
    assert "bad.png cannot be searched for: the file is empty" in command.fails("query", "bad.png")
    assert "1 file rejected:\n  images: bad.png: the file is empty\n" in command.says("add", "bad.png")


def test_pictures_of_phones_and_cameras_are_read_and_drawings_refused(
    as_user: Connection, preprocessing: Connection, command: Command, trip: Path
) -> None:
    picture = Image.open(trip / "a.png").convert("RGB")
    pillow_heif.from_pillow(picture).save(trip / "phone.HEIC")
    picture.save(trip / "web.avif")
    picture.save(trip / "scan.jp2")
    picture.save(trip / "preview.jpg")
    (trip / "camera.nef").write_bytes(raw_files.nef((trip / "preview.jpg").read_bytes(), 1))
    (trip / "logo.svg").write_text('<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>')
    (trip / "letter.pdf").write_bytes(b"%PDF-1.7\n")
    (trip / "a.xmp").write_text("<x:xmpmeta/>")
    (trip / "cut.heic").write_bytes((trip / "phone.HEIC").read_bytes()[:300])
    said = command.says("add", "trip")
    assert "skipped 2 files that are not pictures: 1 .pdf, 1 .xmp\n" in said
    assert "\n7 pictures added, searchable after " in said
    assert (
        "2 files rejected:\n"
        "  images: trip/cut.heic: damaged or truncated HEIC picture, or of an unusual kind: save it as PNG\n"
        "  images: trip/logo.svg: an SVG drawing: save it as PNG\n"
    ) in said


@pytest.mark.parametrize("most_single", [1000, 0], ids=["as files", "in blocks"])
def test_add_says_what_it_replaces_and_offers_names_that_keep_both(
    repos: Connection, command: Command, monkeypatch: pytest.MonkeyPatch, most_single: int
) -> None:
    monkeypatch.setattr(library_commit, "SINGLE_FILES", most_single)
    for card, letters in (("card1", "ab"), ("card2", "abc")):
        (command.directory / card / "DCIM").mkdir(parents=True)
        for letter in letters:
            content = JPEG + (card if letter == "a" else letter).encode()
            (command.directory / card / "DCIM" / f"IMG_{letter}.jpg").write_bytes(content)
    assert "\n2 pictures added, searchable" in command.says("add", "card1/DCIM")
    kept = command.says("add", "card2/DCIM", "--into", "card2/")
    assert "replacing" not in kept and "\n3 pictures added, searchable" in kept
    said = command.says("add", "card2/DCIM").splitlines()
    assert said[1] == "replacing 1 picture by another of the same name (DCIM/IMG_a.jpg): `--into card2` keeps both"
    assert said[-1].startswith("1 picture added, 1 replaced, 1 unchanged, searchable after ")
    assert command.says("add", "card2/DCIM").splitlines()[1:] == ["3 pictures unchanged"]
    assert "replacing" not in command.says("add", "card1/DCIM", "--yes")
    told = json.loads(command.run("add", "card2/DCIM", "--json").stdout)
    assert (told["replaced"], told["put"]) == (["DCIM/IMG_a.jpg"], 1)
    names = {"DCIM/IMG_a.jpg", "DCIM/IMG_b.jpg", "DCIM/IMG_c.jpg"}
    assert picture_contents.library(repos).keys() == names | {f"card2/{each}" for each in names}
    for wrong in ("/card2", "..", "a//b", "a/./b"):
        assert command.run("add", "card2/DCIM", "--into", wrong).returncode == 2


def test_add_asks_on_a_terminal_before_it_replaces(repos: Connection, command: Command) -> None:
    picture = command.directory / "a.jpg"
    picture.write_bytes(JPEG + b"1")
    command.says("add", "a.jpg")
    picture.write_bytes(JPEG + b"2")
    for answer, kept in (("n", b"1"), ("y", b"2")):
        keyboard, terminal = os.openpty()
        os.write(keyboard, f"{answer}\n".encode())
        typed = command.start("add", "a.jpg", stdin=terminal)
        _, asked = typed.communicate(timeout=60)
        assert "replace 1 picture by another of the same name (a.jpg)? `--into " in asked
        assert typed.returncode == (0 if answer == "y" else 1)
        assert picture_contents.library(repos) == {"a.jpg": JPEG + kept}
        os.close(keyboard)
        os.close(terminal)


def test_names_that_look_like_options_or_patterns_are_files_first(repos: Connection, command: Command) -> None:
    for number, name in enumerate(("-1.jpg", "*.jpg", "[a].jpg", "b.jpg")):
        (command.directory / name).write_bytes(saved(Image.new("L", (8, 8), number), "JPEG"))
    command.says("add", "-1.jpg", "*.jpg", "[a].jpg", "--no-wait")
    assert picture_contents.library(repos).keys() == {"-1.jpg", "*.jpg", "[a].jpg"}
    command.says("query", "-1.jpg", "*.jpg", "--no-wait")
    assert {path.strip("/") for path in Repository(repos, "queries").list()} == {"-1.jpg", "%2A.jpg"}
    (command.directory / "*.jpg").unlink()
    assert "1 picture added, 2 unchanged" in command.says("add", "*.jpg")  # as where the shell does not expand it
    command.says("query", "*.jpg", "--no-wait")
    assert Repository(repos, "queries").exists("/b.jpg")
    assert command.fails("add", "*.gif") == "*.gif: not found"
    assert command.fails("query", "*.gif") == "*.gif: no file matches; words with such characters go with --text"
    assert command.run("add", "-x.jpg").returncode == 2


def test_files_folders_globs_and_all_are_removed(repos: Connection, command: Command, trip: Path) -> None:
    command.says("add", "trip", "--no-wait")
    assert "removed 1 file from images" in command.says("remove", "trip/a.png")
    command.says("add", "trip", "--no-wait")
    assert "removed 2 files from images" in command.says("remove", "trip/")
    command.says("add", "trip", "--no-wait")
    assert "removed 2 files from images" in command.says("remove", "trip/*.png")
    command.says("add", trip, "--no-wait")
    assert "removed 2 files from images" in command.says("remove", trip)
    command.says("add", "trip", "--no-wait")
    assert command.fails("remove", "trip", "gone/*.jpg").startswith("not in the library: gone/*.jpg; nothing")
    assert "removed everything from images" in command.says("remove", "--all")
    assert library(repos) == set()
    for wrong in (["remove"], ["remove", "--all", "trip"]):
        assert command.run(*wrong).returncode == 2


def test_the_pictures_of_a_list_are_removed(repos: Connection, command: Command, trip: Path) -> None:
    command.says("add", "trip", "--no-wait")
    names = command.directory / "remove.txt"
    names.write_text('trip/a.png\n"trip/a\\n.png"\ntrip\n')
    asked = command.run("remove", "--from", names)
    assert asked.returncode == 1
    assert asked.stderr == "lookalike: nothing was removed: without a terminal to ask on, --yes removes them\n"
    assert asked.stdout.splitlines()[-1] == "trip/a.png"
    assert library(repos) == {"trip%2Fa.png", "trip%2Fb.png"}
    done = command.run("remove", "--from", names, "--yes")
    assert (done.returncode, done.stderr) == (
        1, "lookalike: 2 names on the list could not be removed; all others were\n"
    )  # fmt: skip
    assert "left out trip/a␊.png: not in the library\n" in done.stdout
    assert "left out trip: not in the library\n" in done.stdout
    assert "removed 1 file from images\n" in done.stdout
    assert library(repos) == {"trip%2Fb.png"}
    assert done.stdout.splitlines()[-1] == "to take this back: lookalike undo"
    assert "took back a change of 1 file" in command.says("undo", "--yes", "--no-wait")
    assert library(repos) == {"trip%2Fa.png", "trip%2Fb.png"}
    names.write_text("trip/a.png\n")
    command.says("remove", "--from", names, "--yes", "--no-wait")
    assert command.fails("remove", "--from", "remove.txt").endswith("could not be removed; nothing was removed")
    names.write_text("\n")
    assert "the list is empty: nothing to remove" in command.says("remove", "--from", names)
    names.write_text('trip/b.png\n"trip')
    assert "remove.txt is not a list of names: line 2 begins" in command.fails("remove", "--from", names)
    assert "cannot read gone: No such file" in command.fails("remove", "--from", "gone")
    for wrong in (["trip"], ["--all"], ["--query"]):
        assert command.run("remove", "--from", names, *wrong).returncode == 2
    assert library(repos) == {"trip%2Fb.png"}


def test_a_list_comes_from_standard_input(repos: Connection, command: Command, trip: Path) -> None:
    command.says("add", "trip", "--no-wait")
    process = command.start("remove", "--from", "-", "--yes", "--json", "--no-wait", stdin=subprocess.PIPE)
    said, _ = process.communicate("trip/b.png\n", timeout=60)
    assert process.returncode == 0
    told = json.loads(said)
    assert (told["removed"], told["missing"]) == (["trip/b.png"], {})
    assert library(repos) == {"trip%2Fa.png"}


def test_queries_are_removed(repos: Connection, command: Command, trip: Path) -> None:
    assert "there are no queries" in command.fails("remove", "--query", "--all")
    command.says("query", "trip", "trip/a.png", "trip/b.png", "--no-wait")
    assert "removed 1 of the queries: trip" in command.says("remove", "--query", "trip")
    assert command.fails("remove", "--query", "trip").startswith("not in the queries: trip;")
    assert "removed 2 of the queries: a.png, b.png" in command.says("remove", "--query", "*.png")
    command.says("query", "trip", "trip/a.png", "--no-wait")
    command.says("remove", "--query", "--all")
    assert not list(Repository(repos, "queries").list())


@pytest.mark.late_alone(False)
def test_stop_ends_running_jobs(as_user: Connection, command: Command, tmp_path: Path) -> None:
    """Here the one that runs and the one that waits for it; the next change computes what they have left. The jobs of
    other people's pipelines go on."""
    waits = f"test -e {tmp_path}/now || sleep 60"
    deploy_specs(as_user, shell_spec("slow", "images", waits))
    create_foreign(as_user, shell_spec("theirs", "images", waits))
    first = ProjectJobs(as_user).newest("slow")
    assert first is not None
    list(as_user.client.inspect_job(first.id, "slow", wait=True, project_name=as_user.project))
    for name in "ab":
        (command.directory / f"{name}.png").write_text(name)
        assert "its jobs are running" in command.says("add", f"{name}.png", "--no-wait")
    said = command.says("stop")
    assert said.count("stopped slow: job ") == 2
    assert "still running: theirs" in said
    assert "no job is running" in command.says("stop")
    assert {ProjectJobs(as_user).newest("theirs").state} <= {"created", "starting", "running"}  # type: ignore[union-attr]
    assert {ProjectJobs(as_user).newest("slow").state} == {"killed"}  # type: ignore[union-attr]
    (tmp_path / "now").touch()
    (command.directory / "c.png").write_text("c")
    assert "slow: success, 3 of 3 datums" in command.says("add", "-v", "c.png")
