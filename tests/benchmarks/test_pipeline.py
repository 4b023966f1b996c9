"""The benchmark of the whole pipeline at its smallest size: its measurements, and its checks of the sheet."""

import itertools
import json
import math
import re
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st

from benchmarks import pipeline
from benchmarks.kit.engine import Work, longest, share
from benchmarks.kit.growth import allowed, growth
from benchmarks.kit.plots import Panel, apart, curves
from benchmarks.kit.trees import Tree, members, parents
from benchmarks.whole import runs
from benchmarks.whole.sheets import Answers

SIZE = "60 pictures, 96 px"
PLACE = {"processor": "A & B", "cores": 2, "date": "2026-01-01"}


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a small backbone, small.keras."""
    import keras  # noqa: PLC0415  takes seconds; the other tests do without

    home = tmp_path_factory.mktemp("pipeline")
    pixels = keras.Input((96, 96, 3), dtype="uint8", name="pixels")
    patches = keras.layers.AveragePooling2D(24, name="patches")(keras.layers.Rescaling(1 / 255, name="scaled")(pixels))
    keras.Model(pixels, keras.layers.Flatten(name="vector")(patches), name="small").save(home / "small.keras")
    return home


def arguments(home: Path, *changes: str) -> list[str]:
    small = ["--pictures", "60", "--image-size", "96", f"--model={home}/small.keras", f"--directory={home}"]
    return [*small, "--changes", *changes]


@pytest.fixture(scope="session")
def run(home: Path) -> Path:
    """The directory with the output of a run: figures.json, table.md, growth.svg."""
    assert pipeline.main([*arguments(home, "one", "query"), f"--json={home}/figures.json"]) == 0
    return home


@pytest.mark.soak
def test_a_run_measures_filling_changes_and_storage(run: Path) -> None:
    figures = json.loads((run / "figures.json").read_text())
    assert figures.keys() == {"machine", "versions", "commit", "rows"}
    rows = {(row["section"], row["name"]): row for row in figures["rows"]}
    steps = (
        *("fill", "add one picture", "add one picture, warm", "change one picture, a file"),
        *("remove one picture, a file", "query one picture", "query one picture, warm"),
    )
    for step in steps:
        measured = rows[SIZE, step]
        assert 0 < rows[SIZE, f"{step}, user code"]["seconds"] < measured["seconds"]
        assert 0 < rows[SIZE, f"{step}, put"]["seconds"] < measured["seconds"]
        assert measured["peak_mib"] > rows[SIZE, "server"]["peak_mib"] > 20
        server, everything = (rows[SIZE, f"{step}, processor{of}"]["seconds"] for of in (" of the server", ""))
        assert 0 < server < everything
    for name in ("preprocess", "features", "partition", "index", "search", "render"):
        work = rows[SIZE, f"fill, {name}"]
        assert 0 < rows[SIZE, f"fill, {name}, user code"]["seconds"] < work["seconds"]
    for change in ("add one picture", "query one picture"):
        assert rows[SIZE, f"{change}, warm"]["seconds"] < rows[SIZE, change]["seconds"]
    assert (SIZE, "remove one picture, a file, features") in rows
    for when in ("full", runs.HISTORY, "history forgotten"):
        assert rows[f"{SIZE}, bytes, {when}", "chunks"]["rate"] > 60 * 2 * 96 * 96 * 3
        assert rows[f"{SIZE}, bytes, {when}", "needed"]["rate"] > 60 * 2 * 96 * 96 * 3


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("at", ["put: fill, images", "begun: add one picture"])
def test_a_killed_run_goes_on(at: str, home: Path, tmp_path: Path) -> None:
    given = [*arguments(home, "one"), f"--directory={tmp_path}"]
    journal = tmp_path / "60-96" / "journal.json"
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.pipeline", *given])
    try:
        while not journal.exists() or at not in json.loads(journal.read_text()):
            assert process.poll() is None
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    before = json.loads(journal.read_text())
    assert at in before
    assert pipeline.main([*given, f"--json={tmp_path}/figures.json"]) == 0
    table = (tmp_path / "table.md").read_text()
    assert f"| interruptions | {int(at.endswith('images'))} |" in table
    rows = {row["name"]: row for row in json.loads((tmp_path / "figures.json").read_text())["rows"]}
    assert rows["fill"]["seconds"] > rows["fill, preprocess"]["seconds"] > 0
    assert rows["fill, search, user code"]["seconds"] > 0  # of the queries' own commit, not of a second one
    assert not journal.exists()


@pytest.mark.soak
def test_a_run_is_plotted(run: Path) -> None:
    drawn = ElementTree.fromstring((run / "growth.svg").read_text())
    texts = {each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")}
    named = {"to the sheet", "features", "add one picture", "on disk", "needed", "60"}
    assert {"seconds, 96 px", "MiB, 96 px", *named} <= texts
    assert "| add one picture, warm | " in (run / "table.md").read_text()


def test_the_engines_share_is_the_time_without_user_code() -> None:
    works = [Work("a", 10.0, 9.0, 1, 0), Work("b", 2.0, 0.0, 1, 0)]
    assert share(works) == pytest.approx(0.25)
    assert share(works[:1]) == pytest.approx(0.1)
    assert share([]) == 0


def test_the_longest_chain_follows_the_inputs() -> None:
    reads = {"a": {"in"}, "b": {"a"}, "beside": {"in"}, "c": {"b", "beside"}}
    assert longest({"a": 1, "b": 2, "beside": 2.5, "c": 4}, reads) == 7
    assert longest({"a": 1, "b": 2, "beside": 5, "c": 4}, reads) == 9
    assert longest({"c": 4}, reads) == 4
    assert longest({}, {}) == 0


@given(st.integers(2, 10**6), st.integers(2, 10**6), st.floats(0.1, 1e6))
def test_growth_is_met_up_to_n_log_n(one: int, other: int, first: float) -> None:
    size, larger = sorted((one, other))
    exactly = first * allowed(size, larger)
    for factor, met in ((0.99, "yes"), (1.01, "no")):
        assert [line.met for line in growth({size: first, larger: factor * exactly})] == (
            [met] if larger > size else []
        )


def test_growth_is_between_neighbours() -> None:
    assert allowed(1000, 10_000) == pytest.approx(10 * 4 / 3)
    lines = growth({10_000: 30.0, 1_000: 2.0, 100_000: 300.0}, "growth of it")
    assert [line.what for line in lines] == ["growth of it from 1000 to 10000", "growth of it from 10000 to 100000"]
    assert [line.met for line in lines] == ["no", "yes"]
    assert growth({1_000: 2.0}) == []


def _points(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (each.split(",") for each in line.split())]


def test_curves_are_drawn_on_logarithmic_axes() -> None:
    sizes = (1_000, 10_000, 100_000)
    drawn = curves([Panel("seconds", {"n < m": {n: n / 100 for n in sizes}, "even": dict.fromkeys(sizes, 5.0)})], PLACE)
    lines = [_points(each) for each in re.findall(r'points="([^"]+)"', drawn)]
    assert "n &lt; m" in drawn
    assert "A &amp; B" in drawn
    assert len(lines) == 3
    assert {"n log n", "pictures"} <= set(re.findall(r">([^<]+)</text>", drawn))
    # Equal factors are equal distances, and larger values are higher.
    guide, rising, even = sorted(lines, key=lambda line: line[-1][1])
    assert rising[1][0] - rising[0][0] == pytest.approx(rising[2][0] - rising[1][0], abs=0.2)
    assert rising[0][1] - rising[1][1] == pytest.approx(rising[1][1] - rising[2][1], abs=0.2)
    assert even[0][1] == even[2][1]
    each = (rising[0][1] - rising[2][1]) / 2
    assert guide[0] == rising[0]
    assert (guide[0][1] - guide[2][1]) / each == pytest.approx(math.log10(allowed(1_000, 100_000)), abs=0.01)


def test_a_single_size_can_be_plotted() -> None:
    assert curves([Panel("seconds", {"all": {60: 3.0}})], PLACE).count("<circle") == 1


@given(st.lists(st.floats(30, 350), max_size=20))
def test_names_of_curves_do_not_overlap_and_stay_beside_them(places: list[float]) -> None:
    wanted = {f"line {number}": place for number, place in enumerate(places)}
    found = apart(wanted, 350)
    levels = sorted(found.values())
    assert found.keys() == wanted.keys()
    assert all(below - above > 12.9 for above, below in itertools.pairwise(levels))
    assert all(level <= 350 for level in levels)
    assert sorted(found, key=found.__getitem__) == sorted(wanted, key=lambda name: (wanted[name], name))
    spread = sorted(places)
    if all(below - above >= 13 for above, below in itertools.pairwise(spread)):
        assert found == wanted


ANSWERS = Answers(
    (
        {
            "sources": ["q1", "q2"],
            "neighbors": [{"distance": 0.0, "sources": ["a"]}, {"distance": 2.5, "sources": ["b", "c"]}],
        },
    )
)


def test_an_incomplete_sheet_is_noticed() -> None:
    ANSWERS.check(2, 2)
    with pytest.raises(RuntimeError, match="answers 2 queries, and 3 were put"):
        ANSWERS.check(3, 2)
    with pytest.raises(RuntimeError, match=r"2 neighbours of \['q1', 'q2'\], not the 3 nearest"):
        ANSWERS.check(2, 3)
    (line,) = ANSWERS.lines
    with pytest.raises(RuntimeError, match="not the 2 nearest"):
        Answers(({**line, "neighbors": line["neighbors"][::-1]},)).check(2, 2)


def test_missing_and_unexpected_pictures_are_noticed() -> None:
    ANSWERS.check_nearest("q2", "a", True)
    ANSWERS.check_nearest("q1", "b", False)
    ANSWERS.check_gone("d")
    with pytest.raises(RuntimeError, match="does not find b, asked for q1"):
        ANSWERS.check_nearest("q1", "b", True)
    with pytest.raises(RuntimeError, match="still finds a, asked for q1"):
        ANSWERS.check_nearest("q1", "a", False)
    with pytest.raises(RuntimeError, match="still shows c"):
        ANSWERS.check_gone("c")


def test_the_memory_of_a_tree_counts_children_and_grandchildren() -> None:
    assert members(1, {2: 1, 3: 2, 4: 9, 5: 3}) == {1, 2, 3, 5}
    me = Path("/proc/self").resolve().name
    assert int(me) in parents()
    with Tree(int(me)) as tree:
        assert tree.peak > 20
        before = tree.usage()
        assert 0 <= before.own < 5  # not the time before it was opened
        assert sum(number * number for number in range(3_000_000)) > 0
        spent = tree.usage().own
        assert spent > before.own
        tree.forget()
        assert tree.usage().own < spent
        assert tree.peak > 20


def test_invalid_arguments_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for wrong in (["fill"], ["--pictures", "59"], ["--pictures", "many"], ["--changes", "all"]):
        with pytest.raises(SystemExit):
            pipeline.main(wrong)
    assert "59 is too few: at least 60" in capsys.readouterr().err
    large = ["--pictures", "1000000000000", "--image-size", "96", f"--directory={tmp_path}/new"]
    assert pipeline.main(large) == 1
    assert "benchmarks.pipeline: 1,000,000,000,000 pictures, 96 px need 77,216,002.1 GB in" in capsys.readouterr().err
    assert pipeline.main([*large, "--changes", "one", "query"]) == 1
    assert "pictures, 96 px need 61,216,002.1 GB in" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
