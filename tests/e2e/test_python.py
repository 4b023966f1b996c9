"""The package for Python, and `lookalike query`, with real pipelines and a real service."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import lookalike
from lookalike import LookalikeError
from pipelines.client.commit_writer import CommitWriter
from pipelines.client.repository import Repository
from pipelines.client.services import service_discovery
from pipelines.client.services.service_discovery import ServiceEndpoint
from tests.command import Command, next_line
from tests.conditions import until
from tests.e2e.world import MakeWorld, Paint, World

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Services and caches of these tests alone."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("STATE", "CACHE"):
            patch.setenv(f"XDG_{name}_HOME", str(tmp_path_factory.mktemp(name.lower())))
        yield


@pytest.fixture(scope="module")
def world(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> World:
    """A library of twelve pictures, and a query that is near one of them."""
    made = make_world("python")
    made.deploy()
    made.push(backbones["first"])
    made.add({f"trip/{n}.png": paint(n) for n in range(12)})
    made.settle(made.query("mine.png", paint(3, 1)))
    return made


@pytest.fixture(scope="module")
def served(world: World) -> Iterator[World]:
    """The same while `lookalike serve` runs."""
    command = Command(world.scratch, {"PACHD_ADDRESS": world.pachd.address, "PACH_CONFIG": str(world.scratch / "none")})
    process = command.start("serve", "--port", "0", "--no-browser", stderr=subprocess.STDOUT)
    try:
        next_line(process, "ready in ")
        yield world
    finally:
        process.kill()
        process.communicate()


def in_batch(world: World) -> dict[str, Any]:
    """The line of the pipelines' answer to mine.png."""
    ((_, content),) = world.repo("render").read_all("/mine.png/neighbors.jsonl")
    found: dict[str, Any] = json.loads(content)
    return found


def test_a_library_is_searched_with_anything_that_is_a_picture(served: World, paint: Paint, tmp_path: Path) -> None:
    file = tmp_path / "mine.png"
    file.write_bytes(paint(3, 1))
    with lookalike.Library.open(served.pachd.address) as library:
        found = library.search(file, k=4)
        batch = in_batch(served)["neighbors"]
        assert [(each.id, np.float32(each.distance), list(each.paths)) for each in found[:3]] == [
            (each["id"], np.float32(each["distance"]), each["sources"]) for each in batch
        ]
        assert (len(found), found[0].path, found.metric, found.exact) == (4, "trip/3.png", "euclidean", True)
        assert found.commits["index"] == served.newest("index")
        with file.open("rb") as opened, Image.open(file) as picture:
            pixels = np.asarray(picture)
            for given in (str(file), file.read_bytes(), opened, picture, pixels):
                assert [each.id for each in library.search(given, k=4)] == [each.id for each in found]
        for known in (found[1], found[1].id, [found[1]]):
            again = library.search(known, k=2)
            assert (again[0].id, again[0].distance, again[0].same) == (found[1].id, 0, True)
        both = library.search([file, found[1]], k=3, combine="all")
        assert both.answer["combine"] == "all"
        assert library.search(file, box=(0, 0, 0.5, 0.5)).answer["pictures"][0]["known"] is False
        assert library.search(file, filter="nowhere/").to_arrow().num_rows == 0
        assert library.original(found[0]) == paint(3)
        library.original(found[0].id, tmp_path / "original.png")
        assert (tmp_path / "original.png").read_bytes() == paint(3)
        assert found[0].thumbnail.startswith(b"\xff\xd8")


def test_what_cannot_be_searched_for_is_said(served: World, tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("no picture")
    with lookalike.Library.open(served.pachd.address) as library:
        for given, reason in (
            (tmp_path / "none.png", "none.png: No such file"),
            (tmp_path / "text.png", "neither JPEG, PNG"),
            ([], "no picture to search for in an empty list"),
            (12, "a int is not a picture"),
            (np.zeros((3, 3)), "float64"),
            ("f" * 64, "does not have a picture"),
        ):
            with pytest.raises(LookalikeError, match=reason):
                library.search(given)  # type: ignore[arg-type]
        with pytest.raises(LookalikeError, match="k"):
            library.search(b"", k=0)


def test_the_library_is_changed_and_asked_as_it_was(served: World, paint: Paint, tmp_path: Path) -> None:
    (tmp_path / "later.png").write_bytes(paint(40))
    with lookalike.Library.open(served.pachd.address, report=lambda _: None) as library:
        commit = library.add(tmp_path / "later.png")
        assert served.newest("index") == commit
        history = library.history(limit=3)
        table = history.to_arrow()
        assert table["commit"][0].as_py() == commit
        assert table["added"][0].as_py() == 1
        assert commit[:12] in repr(history)
        assert commit[:12] in history._repr_html_()
        with library.at(f"{commit}^") as before:
            found = before.search(paint(40), k=20)
            assert "later.png" not in [each.path for each in found]
            assert len(found) == 12
            assert commit[:12] not in repr(before)
    served.settle(served.remove("later.png"))


@pytest.fixture
def unregistered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No service is registered on this machine."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))


@pytest.mark.usefixtures("unregistered")
def test_a_library_without_a_service_starts_its_own_and_another_when_it_has_ended(world: World, paint: Paint) -> None:
    said: list[str] = []
    with lookalike.Library.open(world.pachd.address, report=said.append) as library:
        assert library.search(paint(5), k=1)[0].path == "trip/5.png"
        first = library._own
        assert first is not None
        assert said[0].startswith("starting a service for this library")
        first._process.kill()
        first._process.wait()
        assert library.search(paint(6), k=1)[0].path == "trip/6.png"
        assert len([line for line in said if line.startswith("starting a service")]) == 2
        second = library._own
        assert second is not None
        library.close()
        assert second._process.poll() is not None


_ASKING = """
import lookalike, sys
library = lookalike.Library.open(sys.argv[1], report=lambda _: None)
library.search("{}", k=1)
print(library._searching().service.url, flush=True)
sys.stdin.read()
"""


@pytest.mark.usefixtures("unregistered")
def test_a_service_of_its_own_ends_with_a_python_that_is_killed(world: World, paint: Paint, tmp_path: Path) -> None:
    picture = tmp_path / "mine.png"
    picture.write_bytes(paint(5))
    arguments = [sys.executable, "-c", _ASKING.format(picture), world.pachd.address]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        service = ServiceEndpoint(process.stdout.readline().strip(), "the service")
        assert service_discovery.status(service) is not None
        process.kill()
    until(lambda: service_discovery.status(service) is None)


def test_files_that_are_not_pictures_are_said_when_they_are_added(served: World, paint: Paint, tmp_path: Path) -> None:
    added = tmp_path / "added"
    added.mkdir()
    (added / "kept.png").write_bytes(paint(41))
    (added / "broken.png").write_bytes(paint(42)[:200])
    with lookalike.Library.open(served.pachd.address) as library:
        with pytest.raises(LookalikeError, match=r"broken\.png is rejected: .+"):
            library.add(added)
        assert library.search(paint(41), k=1)[0].path == "added/kept.png"
    served.settle(served.remove("added/kept.png", "added/broken.png"))


def test_a_library_by_the_address_of_its_service(served: World, paint: Paint) -> None:
    with lookalike.Library.open(served.pachd.address) as found:
        url = found._searching().service.url
    with lookalike.Library.open(url) as library:
        assert library.search(paint(5), k=1)[0].path == "trip/5.png"
        assert url in repr(library)
        for forbidden in (library.history, lambda: library.at("master^"), lambda: library.add("x.png")):
            with pytest.raises(LookalikeError, match="name Pachyderm's address"):
                forbidden()
    with pytest.raises(LookalikeError, match=r"http://127\.0\.0\.1:1 does not answer"):
        lookalike.Library.open("http://127.0.0.1:1")


def test_a_query_is_answered_by_the_service_at_once_and_its_sheet_follows(served: World, paint: Paint) -> None:
    (served.scratch / "asked.png").write_bytes(paint(3, 1))
    before = CommitWriter(served.connection, "queries").newest()
    said = served.lookalike("query", "asked.png", "-k", "2", "--service")
    assert said.splitlines()[0] == "asked.png:"
    assert CommitWriter(served.connection, "queries").newest() == before, "--service stores something"
    said = served.lookalike("query", "asked.png", "-k", "2")
    lines = said.splitlines()
    assert lines[0] == "asked.png:"
    assert lines[1].endswith("  trip/3.png")
    assert lines[3].startswith("answered by the service at http://127.0.0.1:")
    assert lines[5] == "asked.png: results/asked.png/index.html, results/asked.png/grid.png"
    assert "asked.png" in served.lookalike("trace", "asked.png")
    command = Command(served.scratch, {"PACHD_ADDRESS": served.pachd.address, "PACH_CONFIG": "none"})
    told = json.loads(command.run("query", "asked.png", "--json").stdout)
    batch = in_batch(served)
    (line,), (sheet,) = told["queries"], told["sheets"]
    assert line == batch | {"sources": ["asked.png"]} == sheet["queries"][0]
    assert told["commits"]["index"] == served.newest("index")
    command.run("query", "asked.png", "-k", "2", "--service", "--parquet", "found.parquet")
    with lookalike.Library.open(served.pachd.address) as library:
        files = library.search(served.scratch / "asked.png", k=2, filter="trip/").files()
    written = pq.read_table(served.scratch / "found.parquet")
    assert written["path"][0].as_py() == files["path"][0].as_py() == "trip/3.png"
    assert written["width"].null_count == 0


@pytest.mark.parametrize(
    "options",
    [
        {"filter": "1*.png"},
        {"metric": "cosine", "max_distance": 1.5},
        {"box": [0, 0, 0.5, 0.75]},
        {"combine": "all", "filter": "trip/"},
    ],
)
def test_every_option_of_a_question_reaches_the_service(options: dict[str, Any], served: World, paint: Paint) -> None:
    """The command, Python and the service's own answer agree."""
    files = [served.scratch / f"asked-{n}.png" for n in range(2 if "combine" in options else 1)]
    for number, each in enumerate(files):
        each.write_bytes(paint(3 + number, 1))
    texts = {name: ",".join(map(str, each)) if name == "box" else str(each) for name, each in options.items()}
    flags = [text for name, each in texts.items() for text in (f"--{name.replace('_', '-')}", each)]
    told = json.loads(
        served.lookalike("query", *(each.name for each in files), "-k", "5", "--service", "--json", *flags)
    )
    (line,) = told["queries"]
    assert line["sources"] == [each.name for each in files]
    with lookalike.Library.open(served.pachd.address) as library:
        asked = {**options, "box": tuple(options["box"])} if "box" in options else options
        found = library.search(files, k=5, **asked)
    assert [(each["id"], each["distance"]) for each in line["neighbors"]] == [
        (each.id, each.distance) for each in found[:5]
    ]
    assert {name: found.answer[name] for name in options if name != "box"} == {
        name: each for name, each in options.items() if name != "box"
    }
    with pytest.raises(LookalikeError, match=r"metric: input should be 'euclidean' or 'cosine'"):
        library.search(files, metric="manhattan")  # type: ignore[arg-type]


@pytest.mark.only_in_all
@pytest.mark.parametrize(
    ("filters", "words"),
    [
        (("--filter", "1*.png"), "matching 1*.png"),
        (("--where", "name LIKE '1%.png' AND width > 0"), "with name LIKE '1%.png' AND width > 0"),
    ],
)
def test_the_pipelines_answer_a_filtered_question_as_the_service_does(
    filters: tuple[str, ...], words: str, served: World, paint: Paint
) -> None:
    (served.scratch / "few.png").write_bytes(paint(3, 1))
    flags = ("few.png", *filters, "--max-distance", "1000", "--json")
    command = Command(served.scratch, {"PACHD_ADDRESS": served.pachd.address, "PACH_CONFIG": "none"})
    line, sheet, past = (
        json.loads(command.run("query", *flags, *way).stdout) for way in ((), ("--pipeline",), ("--at", "master"))
    )
    (line,), (sheet,), (past,) = line["queries"], sheet["sheets"], past["sheets"]
    assert sheet["queries"] == [line | {"sources": ["few.png/few.png"]}]
    assert {path for each in line["neighbors"] for path in each["sources"]} == {
        "trip/1.png",
        "trip/10.png",
        "trip/11.png",
    }
    assert sheet["notes"] == [f"Only library pictures {words} and within a distance of 1000 are listed."]
    assert past["queries"] == sheet["queries"]


@pytest.mark.only_in_all
def test_a_folder_of_an_odd_name_is_meant_and_its_file_named_first_on_every_way(served: World, paint: Paint) -> None:
    odd = served.add({"odd [1]/3.png": paint(3), "odd 1/5.png": paint(5)})
    served.settle(odd)
    (served.scratch / "odd.png").write_bytes(paint(3, 1))
    command = Command(served.scratch, {"PACHD_ADDRESS": served.pachd.address, "PACH_CONFIG": "none"})
    with lookalike.Library.open(served.pachd.address) as library:
        until(lambda: library.search(served.scratch / "odd.png").commits["index"] == odd)
    two = ["odd [1]/3.png", "trip/3.png"]
    for filter, first, count in (("odd [1]/", two, 1), ("odd [1]", two, 1), ("trip/", two[::-1], 3)):
        with lookalike.Library.open(served.pachd.address) as library:
            (served_from, *_), found = library.search(served.scratch / "odd.png", k=3, filter=filter), []
        for way in ((), ("--pipeline",), ("--at", "master")):
            told = json.loads(command.run("query", "odd.png", "-k", "3", "--filter", filter, "--json", *way).stdout)
            found += [each["neighbors"] for each in told.get("queries") or told["sheets"][0]["queries"]]
        assert [len(each) for each in found] == [count] * 3
        assert [each[0]["sources"] for each in found] == [first] * 3
        assert list(served_from.paths) == first
    served.settle(served.remove("odd [1]", "odd 1"))


def test_a_query_goes_to_the_pipelines_where_the_service_cannot_take_it(served: World, paint: Paint) -> None:
    (served.scratch / "put.png").write_bytes(paint(4, 1))
    assert "put 1 file into queries" in served.lookalike("query", "-v", "put.png", "--pipeline")
    assert "answered by" in served.lookalike("query", "put.png", "--output", "elsewhere")
    assert (served.scratch / "elsewhere" / "put.png" / "index.html").is_file()
    with zipfile.ZipFile(served.scratch / "more.zip", "w") as archive:
        archive.writestr("put.png", bytes(paint(4, 1)))
    assert "single pictures: asking the pipelines" in served.lookalike("query", "more.zip")


@pytest.mark.parametrize("way", [(), ("--pipeline",), ("--service",)], ids=lambda way: "".join(way) or "default")
def test_a_bad_picture_is_refused_and_leaves_no_entry(served: World, paint: Paint, way: tuple[str, ...]) -> None:
    (served.scratch / "text.png").write_text("no picture")
    (served.scratch / "cut.png").write_bytes(bytes(paint(4, 1))[:300])
    (served.scratch / "good.png").write_bytes(paint(4, 1))
    for bad, why in (("text.png", "neither JPEG"), ("cut.png", "damaged or truncated PNG")):
        refused = served.lookalike("query", bad, *way, fails=True)
        assert f"{bad} cannot be searched for: {why}" in refused
    said = served.lookalike("query", "text.png", "good.png", "cut.png", *way, fails=True)
    assert "left out text.png: neither JPEG" in said
    assert "trip/4.png" in said
    assert not any(Repository(served.connection, "queries").exists(f"/{each}") for each in ("text.png", "cut.png"))


def test_a_query_insists_on_the_service_if_told_to(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(world.scratch / "elsewhere"))
    (world.scratch / "asked.png").write_bytes(b"")
    assert "start one with `lookalike serve`" in world.lookalike("query", "asked.png", "--service", fails=True)
