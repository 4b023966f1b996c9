"""Vectors of another model with all real pipelines: the datums of each change, equal bytes, and searches by them."""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.client.services import service_discovery
from pipelines.client.services.search_client import QueryPicture, SearchClient, SearchError
from pipelines.client.services.service_discovery import ServiceEndpoint
from pipelines.library.vectors import vector_repo
from tests.command import Command, next_line
from tests.e2e.test_annotations import counts
from tests.e2e.world import MakeWorld, Paint, World

pytestmark = pytest.mark.timeout(600)

NAMES = [f"{seed}/{number}.png" for seed in range(3) for number in range(4)]
DIMENSION = 5

Clip = Callable[[str], list[float]]


@pytest.fixture(scope="module")
def world(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        world = make_world("vectors")
        for name in ("STATE", "CACHE"):
            patch.setenv(f"XDG_{name}_HOME", str(world.scratch / name.lower()))
        world.deploy()
        world.add({name: paint(int(name[0]), int(name[2])) for name in NAMES})
        world.query("red.png", paint(1, 70))
        world.settle(world.push(backbones["first"]))
        yield world


@contextmanager
def serving(world: World) -> Iterator[SearchClient]:
    """A client of a service over the vectors."""
    environment = {"PACHD_ADDRESS": world.pachd.address, "PACH_CONFIG": str(world.scratch / "none")}
    process = Command(world.scratch, environment).start(
        "serve", "--vectors", "--port", "0", "--no-browser", stderr=subprocess.STDOUT
    )
    try:
        url = next_line(process, "http://").split()[-1]
        next_line(process, "ready in ")
        with SearchClient(ServiceEndpoint(url, "the service")) as searches:
            yield searches
    finally:
        process.kill()
        process.communicate()


def clip(name: str, more: int = 0) -> list[float]:
    """Somebody's vector of a picture, in which those of a folder are near each other."""
    drawn = np.random.default_rng([int(name[0]), more]).normal(size=DIMENSION)
    near = np.random.default_rng([*name.encode()]).normal(size=DIMENSION)
    return [float(each) for each in (drawn + near / 50).astype(np.float32)]


def put(world: World, vectors: Mapping[str, Sequence[float]], *options: str | Path, fails: bool = False) -> str:
    """Puts vectors by path; returns what the command says."""
    file = world.scratch / "clip.parquet"
    pq.write_table(pa.table({"path": [*vectors], "vector": [*map(list, vectors.values())]}), file)
    return world.lookalike("vectors", "add", file, "--model", "clip", *options, fails=fails)


def ids(world: World) -> dict[str, str]:
    return vector_repo.read_pictures(world.connection)


def listed(world: World) -> dict[str, object]:
    found: dict[str, object] = json.loads(world.lookalike("vectors", "list", "--json"))
    return found


def test_vectors_compute_their_segments_and_nothing_before_them(world: World, paint: Paint) -> None:
    before = {repo: world.newest(repo) for repo in ("partition", "index", "search")}
    said = put(world, {name: clip(name) for name in NAMES[:8]}, "--yes")
    assert "4 pictures have no vector of clip" in said
    home = {name: ids(world)[name][0] for name in NAMES}
    jobs = world.settle(world.newest("vector-index"))
    assert {repo: world.newest(repo) for repo in before} == before

    put(world, {name: clip(name) for name in NAMES[:10]})  # two more: eight are there
    jobs = world.settle(world.newest("vector-index"))
    assert counts(jobs) == {"vector-index": len({home[name] for name in NAMES[8:10]})}
    assert {repo: world.newest(repo) for repo in before} == before
    whole = world.hashes("vector-index")

    # An added picture without a vector runs its segment, in which thumbnails then have other places.
    jobs = world.settle(world.add({"9/9.png": paint(9, 9)}))
    segment = ids(world)["9/9.png"][0]
    assert counts(jobs)["vector-index"] == (1 if segment in {home[name] for name in NAMES[:10]} else 0)
    without = world.hashes("vector-index")
    world.settle(world.remove("9/9.png"))
    assert world.hashes("vector-index") == whole
    assert {path for path in whole if path.endswith("/")} >= {f"/{home[name]}/" for name in NAMES[:10]}
    changed = {path for path in without if without[path] != whole.get(path)}
    assert not any("/vectors/" in path or path.endswith((".npy", ".json")) for path in changed)


def test_a_removed_picture_goes_and_its_vector_counts_again(world: World, paint: Paint) -> None:
    whole = world.hashes("vector-index")
    world.settle(world.remove("0/0.png"))
    assert world.hashes("vector-index") != whole
    told = listed(world)
    assert (told["gone"], told["deployed"]) == (1, True)
    world.settle(world.add({"0/0.png": paint(0, 0)}))
    assert world.hashes("vector-index") == whole


def test_the_order_and_the_form_of_vectors_change_nothing(world: World) -> None:
    whole, held = world.hashes("vector-index"), ids(world)
    world.lookalike("vectors", "clear")
    assert [path for path in world.hashes("vector-index") if path != "/"] == []
    file = world.scratch / "clip.npy"
    some = NAMES[9::-1]
    np.save(file, np.array([clip(name) for name in some]))  # float64, in another order, by ids
    lines = [json.dumps({"id": held[name]} if name[0] == "0" else {"files": [{"path": name}]}) for name in some]
    file.with_suffix(".jsonl").write_text("\n".join(lines) + "\n")
    world.lookalike("vectors", "add", file, "--model", "clip")
    assert world.hashes("vector-index") == whole
    before = world.repo("vectors").hashes("/")
    put(world, {NAMES[10]: clip(NAMES[10])})
    world.lookalike("undo", "--yes")
    assert world.repo("vectors").hashes("/") == before
    world.settle(world.newest("vector-index"))
    assert world.hashes("vector-index") == whole


def test_what_cannot_be_put_is_said_row_by_row_and_nothing_is_put(world: World) -> None:
    before = world.repo("vectors").hashes("/")
    good, other = clip(NAMES[10]), clip(NAMES[11])
    rows = [
        (NAMES[10], good),
        ("absent.png", good),
        (NAMES[11], good[:3]),
        (NAMES[11], [float("nan"), *good[1:]]),
        (NAMES[11], [1e39, *good[1:]]),
        (NAMES[11], [0.0] * DIMENSION),
        (NAMES[11], None),
        (NAMES[10], other),
        (NAMES[10], good),
        (NAMES[0], other),
        ("", good),
    ]
    file, report = world.scratch / "bad.parquet", world.scratch / "report.tsv"
    table = pa.table({"path": [name for name, _ in rows], "vector": pa.array([each for _, each in rows])})
    pq.write_table(table, file)
    arguments = ("vectors", "add", file, "--model", "clip", "--report", report)
    environment = {"PACHD_ADDRESS": world.pachd.address, "PACH_CONFIG": str(world.scratch / "none")}
    done = Command(world.scratch, environment).run(*arguments)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 10 and "Traceback" not in done.stderr
    assert lines[0] == "bad.parquet, row 2: no picture of the library is called absent.png"
    assert "row 3: it has 3 numbers, and the others have 5" in lines[1]
    assert "row 4: its number 1 is nan" in lines[2] and "row 5: its number 1 is 1e+39" in lines[3]
    assert "row 8: it has another vector than row 1 for the picture" in lines[6]
    assert "another vector already: --replace" in lines[7] and lines[8].endswith("row 11: it names no picture")
    kinds = "2 NaN or infinite, 1 another dimension, 1 another vector there, 1 no vector, 1 two vectors, "
    assert f"nothing was put, for 9 rows ({kinds}2 unknown picture, 1 zero; " in lines[9]
    assert world.repo("vectors").hashes("/") == before
    assert [line.split("\t")[0] for line in report.read_text().splitlines()] == [*"2345678", "10", "11"]

    done = Command(world.scratch, environment).run(*arguments, "--skip-bad", "--replace")
    assert done.returncode == 0 and "left out 8 rows" in done.stdout + done.stderr
    assert "1 row says again what an earlier one says" in done.stdout
    assert listed(world)["missing"] == 1
    put(world, {NAMES[0]: clip(NAMES[0])}, "--replace")
    assert "these vectors are there already" in put(world, {NAMES[0]: clip(NAMES[0])})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"path": ["a"], "other": [[1.0]]}, "has no column vector (path, other)"),
        ({"path": ["a"], "vector": ["x"]}, "the column vector holds string"),
        ({"name": ["a"], "vector": [[1.0]]}, "neither a column id nor a column path"),
        ({"path": ["a"], "vector": pa.array([None], pa.list_(pa.float32()))}, "none of the first rows has a vector"),
    ],
)
def test_other_tables_are_refused(content: dict[str, object], says: str, world: World) -> None:
    file = world.scratch / "other.parquet"
    pq.write_table(pa.table(content), file)
    assert says in world.lookalike("vectors", "add", file, "--model", "clip", fails=True)


def test_other_files_are_refused(world: World) -> None:
    def refused(name: str, *options: str) -> str:
        return world.lookalike("vectors", "add", world.scratch / name, *options, fails=True)

    array = world.scratch / "a.npy"
    np.save(array, np.zeros((2, DIMENSION), np.int64))
    assert "it has to hold floating-point numbers" in refused("a.npy", "--model", "clip")
    np.save(array, np.ones((2, DIMENSION)))
    assert "a.jsonl is missing beside a.npy" in refused("a.npy", "--model", "clip")
    array.with_suffix(".jsonl").write_text('{"path": "0/0.png"}\n')
    assert "does not have a line for each of the 2 rows" in refused("a.npy", "--model", "clip")
    array.write_bytes(b"no array")
    assert "cannot read" in refused("a.npy", "--model", "clip")
    (world.scratch / "a.parquet").write_bytes(b"no table")
    assert "cannot read" in refused("a.parquet", "--model", "clip")
    assert "vectors are read from .parquet" in refused("a.csv", "--model", "clip")
    assert "distances to those of dino would mean nothing" in put_other(world)


def put_other(world: World) -> str:
    file = world.scratch / "dino.parquet"
    pq.write_table(pa.table({"path": [NAMES[0]], "vector": [[1.0, 2.0]]}), file)
    return world.lookalike("vectors", "add", file, "--model", "dino", fails=True)


def nearest(vectors: Mapping[str, Sequence[float]], point: Sequence[float]) -> list[str]:
    return sorted(vectors, key=lambda name: float(np.linalg.norm(np.array(vectors[name]) - np.array(point))))


def test_library_pictures_are_searched_by_these_vectors_and_others_refused(world: World, paint: Paint) -> None:
    vectors = {name: clip(name) for name in NAMES[:11]}
    put(world, vectors, "--replace")
    expected = nearest(vectors, vectors["1/1.png"])[:5]
    with serving(world) as searches:
        assert service_discovery.running(world.connection) is None  # questions to the library are not for it
        held = ids(world)
        found = searches.search([QueryPicture(id=held["1/1.png"])], k=5)
        assert [each["sources"][0]["path"] for each in found["neighbors"]][:5] == expected
        inside = searches.search([QueryPicture(id=held["1/1.png"])], k=5, filter="2/")
        assert {each["sources"][0]["path"][0] for each in inside["neighbors"]} == {"2"}
        assert found["model"]["name"] == found["model"]["sha256"] == "clip"
        by_vector = searches.search([], vector=vectors["1/1.png"], k=5)
        assert [each["id"] for each in by_vector["neighbors"]] == [each["id"] for each in found["neighbors"]]
        assert searches.thumbnail(held["1/1.png"])[:2] == b"\xff\xd8"
        assert searches.status()["embeds"] is False
        for asked, code in (
            (QueryPicture(paint(1, 1)), "no-model"),
            (QueryPicture(id=held["1/1.png"], box=(0.1, 0.1, 0.9, 0.9)), "no-model"),
            (QueryPicture(id=held["2/3.png"]), "no-vector"),
        ):
            with pytest.raises(SearchError) as refused:
                searches.search([asked])
            assert refused.value.code == code


def test_vectors_of_the_model_that_is_there_take_uploads_and_agree_with_the_index(world: World, paint: Paint) -> None:
    exported = world.scratch / "exported.parquet"
    world.lookalike("export", exported, "--vectors")
    world.lookalike("vectors", "clear")
    world.lookalike("vectors", "add", exported)
    for segment in world.repo("index").list("/"):
        for name in ("hashes.npy", "images.parquet"):
            index, mine = (world.repo(repo).read(f"{segment}{name}") for repo in ("index", "vector-index"))
            assert index == mine
        vectors = [world.repo(repo).hashes(f"{segment}vectors/") for repo in ("index", "vector-index")]
        assert vectors[0] == vectors[1] != {}
    with serving(world) as searches:
        found = searches.search([QueryPicture(paint(1, 1))], k=1)
        assert found["neighbors"][0]["id"] == ids(world)["1/1.png"]
    world.lookalike("vectors", "off")
    assert listed(world)["deployed"] is False
