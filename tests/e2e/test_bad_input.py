"""Missing, broken and oddly named inputs, on an initially empty server: the command's messages and the results."""

import gzip
import io
import json
import re
import struct
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipelines.library.result_sheets import directory_name
from stages.record.file_kinds import READABLE
from tests.e2e.world import MakeWorld, Paint, World

pytestmark = pytest.mark.timeout(600)

NO_MODEL = "the repo models has no backbone, so no features are computed"
NO_LIBRARY = "the library is empty"
NO_QUERIES = "the repo queries is empty"

BAD = {
    "archive.zip/../up.png": 'an archive member with ".." in its path',
    "archive.zip//absolute.png": "an archive member with an absolute path",
    "archive.zip/notes.jpg": f"neither {READABLE}",
    "bomb.tar.gz": "expands to more than 1,073,741,824 bytes",
    "bomb.png": "60,000 × 60,000 pixels: a PNG picture may have at most 100,000,000",
    "cut.png": "damaged or truncated PNG picture",
    "cut.zip": "damaged or truncated zip archive",
    "empty.jpg": "the file is empty",
    "links.tar/hard": "an archive member that is a link",
    "links.tar/soft": "an archive member that is a link",
    "text.jpg": f"neither {READABLE}",
}
GOOD = ("archive.zip/fine.png", "picture called.txt")

STRANGE = (
    "with space.png",
    "quo\"te's.png",
    "#1 & 2.png",
    "back\\slash.png",
    "br[ack]{et}(s)*?!@+^.png",
    "100%25.png",
    "\N{GRINNING FACE}é.png",
    "no\udcffutf8\x07.png",
    "...",
    "<b>bold</b>.png",
    "/".join(["deep and long"] * 21) + "/300 characters.png",
    "l" * 255,
)

LONG = "é" * 100 + " 100%.png"
"""The name of an entry that escaped is too long for one component."""


def png_bomb() -> bytes:
    """A small file that claims to be a picture of 3.6 gigapixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(100))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def tar_bomb() -> bytes:
    """A small tar archive with a member of 1,100 MiB."""
    member = tarfile.TarInfo("zeros.png")
    member.size = 1100 << 20
    return gzip.compress(member.tobuf()) + 1100 * gzip.compress(bytes(1 << 20)) + gzip.compress(bytes(1024))


def bad_files(paint: Paint) -> dict[str, bytes]:
    """Files with everything in BAD, and two good pictures."""
    zipped, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        for name, data in {"../up.png": paint(1), "/absolute.png": paint(2), "fine.png": paint(3)}.items():
            archive.writestr(name, data)
        archive.writestr("notes.jpg", "no picture")
    with tarfile.open(fileobj=tarred, mode="w") as archive:
        for name, kind in {"hard": tarfile.LNKTYPE, "soft": tarfile.SYMTYPE}.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
    return {
        "archive.zip": zipped.getvalue(),
        "bomb.png": png_bomb(),
        "bomb.tar.gz": tar_bomb(),
        "cut.png": paint(1)[:-100],
        "cut.zip": zipped.getvalue()[:-30],
        "empty.jpg": b"",
        "links.tar": tarred.getvalue(),
        "picture called.txt": paint(4),
        "text.jpg": b"no picture",
    }


def sheet(world: World, entry: str) -> tuple[str, list[dict[str, Any]]]:
    """The words of an exported result sheet, and the lines of neighbors.jsonl."""
    directory = world.scratch / "results" / directory_name(entry)
    words = re.sub(r"<style>.*?</style>|<[^>]*>", " ", (directory / "index.html").read_text(), flags=re.DOTALL)
    return words, [json.loads(line) for line in (directory / "neighbors.jsonl").read_text().splitlines()]


def write(directory: Path, files: dict[str, bytes]) -> Path:
    """A directory with these files."""
    for name, data in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return directory


@dataclass(frozen=True)
class Story:
    """The command's output at each step, and the sheets by step and entry: words and answers."""

    world: World
    said: dict[str, str]
    sheets: dict[str, tuple[str, list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def story(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> Story:
    """Runs all steps once, with the command that people type."""
    world = make_world("bad", late=True)
    write(world.scratch / "bad", bad_files(paint))
    write(world.scratch / "hopeless", {"notes.jpg": b"no picture", "cut.png": paint(1)[:-100]})
    write(world.scratch, {"query.png": paint(10)})
    write(world.scratch / "strange", {name: paint(seed) for seed, name in enumerate(STRANGE, start=20)})
    (world.scratch / "#ask [me].png").write_bytes(paint(20))
    (world.scratch / LONG).write_bytes(paint(20))
    said, sheets = {}, {}

    def run(step: str, *arguments: str | Path, fails: bool = False) -> None:
        said[step] = world.lookalike(*arguments, fails=fails)

    run("undeployed status", "status")
    run("undeployed add", "add", "query.png", fails=True)
    run("undeployed query", "query", "query.png", fails=True)
    run("deploy", "deploy")
    run("query without anything", "query", "-v", "query.png", fails=True)
    run("push", "model", "push", backbones["usual"] / "backbone.keras")
    run("results without library", "results")
    sheets["without library"] = sheet(world, "query.png")
    run("bad", "add", "-v", "bad")
    run("results", "results", "query.png")
    sheets["small library"] = sheet(world, "query.png")
    run("strange", "add", "strange")
    run("queries", "query", "hopeless", "strange", "#ask [me].png", LONG)
    sheets |= {entry: sheet(world, entry) for entry in ("hopeless", "strange", "#ask [me].png", LONG)}
    run("status", "status")
    run("remove", "remove", *(f"strange/{name}" for name in STRANGE))
    return Story(world, said, sheets)


def test_without_pipelines_the_command_says_how_to_create_them(story: Story) -> None:
    assert "not deployed: " in story.said["undeployed status"]
    assert (
        "the repo images does not exist: create the repos and pipelines with `lookalike deploy`"
        in story.said["undeployed add"]
    )
    assert "the repo queries does not exist" in story.said["undeployed query"]


def test_missing_parts_are_reported(story: Story) -> None:
    for step, missing in {
        "deploy": (NO_MODEL, NO_LIBRARY, NO_QUERIES),
        "query without anything": (NO_MODEL, NO_LIBRARY),
        "push": (NO_LIBRARY,),
        "bad": (),
    }.items():
        assert {note for note in (NO_MODEL, NO_LIBRARY, NO_QUERIES) if note in story.said[step]} == set(missing)
    assert "no result sheet for query.png" in story.said["query without anything"]


def test_jobs_with_nothing_to_do_succeed(story: Story) -> None:
    for pipeline in ("features-queries", "search", "render"):
        assert f"{pipeline}: nothing to do" in story.said["query without anything"]


def test_the_sheet_says_that_the_library_is_empty(story: Story) -> None:
    words, (answer,) = story.sheets["without library"]
    note = "The library is empty, so there are no pictures to compare with yet."
    assert note in words
    assert note in story.said["results without library"]
    assert (answer["sources"], answer["neighbors"]) == (["query.png"], [])


def test_bad_files_are_rejected_and_the_jobs_succeed(story: Story) -> None:
    assert "preprocess: success, 9 of 9 datums" in story.said["bad"]
    assert f"{len(BAD)} files rejected:\n" in story.said["bad"]
    assert re.search(rf"^preprocess +success +9 +0 +0 +[\d.]+ +{len(BAD)} *$", story.said["bad"], flags=re.MULTILINE)
    assert f"{len(BAD) + 2} files rejected:" in story.said["status"]
    rejected = re.findall(r"^  images: bad/(.*?): (.*)$", story.said["status"], flags=re.MULTILINE)
    assert {source for source, _ in rejected} == set(BAD)
    assert all(reason.startswith(BAD[source]) for source, reason in rejected)


def test_rejections_are_records_in_the_output(story: Story) -> None:
    repo = story.world.repo("preprocess")
    lines = [json.loads(line) for _, data in repo.read_all("/rejected/images/*") for line in data.splitlines()]
    assert {(line["source"], line["stage"]) for line in lines} == {(f"bad/{name}", "preprocess") for name in BAD}


def test_a_library_smaller_than_k_gives_fewer_neighbours_and_a_note(story: Story) -> None:
    words, (answer,) = story.sheets["small library"]
    note = "The library has only 2 pictures, but 3 neighbours were requested."
    assert note in words
    assert note in story.said["results"]
    assert {source for each in answer["neighbors"] for source in each["sources"]} == {f"bad/{name}" for name in GOOD}


def test_an_entry_without_a_good_picture_gets_a_sheet_that_says_why(story: Story) -> None:
    words, answers = story.sheets["hopeless"]
    note = "This entry has no pictures to search for."
    assert note in words
    assert note in story.said["queries"]
    assert "hopeless/notes.jpg" in words
    assert "damaged or truncated PNG picture" in words
    assert answers == []
    assert "hopeless: results/hopeless/index.html" in story.said["queries"]


def test_strange_names_are_kept(story: Story) -> None:
    _, answers = story.sheets["strange"]
    assert len(answers) == len(STRANGE)
    for answer in answers:
        (name,) = answer["sources"]
        assert answer["neighbors"][0]["sources"] == [name]
        assert answer["neighbors"][0]["distance"] == 0
    assert {answer["sources"][0] for answer in answers} == {f"strange/{name}" for name in STRANGE}


def test_the_sheet_of_a_strange_entry_has_its_name(story: Story) -> None:
    words, (answer,) = story.sheets["#ask [me].png"]
    assert "Nearest pictures for “#ask [me].png”" in words
    assert answer["neighbors"][0]["sources"] == [f"strange/{STRANGE[0]}"]
    assert "#ask [me].png: " in story.said["queries"]


def test_strange_names_can_be_removed(story: Story) -> None:
    assert f"removed {len(STRANGE)} files from images" in story.said["remove"]
    kept = {f"/bad%2F{path.name}" for path in (story.world.scratch / "bad").iterdir()}
    assert set(story.world.repo("images").list()) == kept


def test_the_sheet_of_an_entry_with_a_long_name_has_all_of_it(story: Story) -> None:
    words, (answer,) = story.sheets[LONG]
    assert f"Nearest pictures for “{LONG}”" in words
    assert (answer["sources"], answer["neighbors"][0]["sources"]) == ([LONG], [f"strange/{STRANGE[0]}"])
