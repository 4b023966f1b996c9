"""Two evaluations compared: pairs, differences, intervals, McNemar's test, and the stage with its page."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from stages import compare
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files.tables.columns import ListColumn
from stages.files.tables.ranking_table import RankingTable
from stages.quality import ranking_comparison
from stages.quality.ranking_comparison import compare_rankings, differences, firsts, mcnemar, pair, verdict
from stages.quality.ranking_verdicts import RankingVerdicts, judge
from stages.record.origin import Origin
from stages.record.sources import Source
from tests.stages.image_tables import image_table
from tests.stages.report.page_documents import PageDocument
from tests.stages.serving import segments

NAMES = [f"{label}/{number}.png" for label in ("cat", "dog") for number in range(4)]
LABELS = [name.partition("/")[0] for name in NAMES]


def _rankings(nearest: Mapping[int, Sequence[int]], names: Sequence[str] = NAMES) -> RankingTable:
    """Each picture's neighbours; those of pictures that are not given are the next ones of its label."""
    every = [list(nearest.get(row, [each for each in _alike(row) if each < len(names)])) for row in range(len(names))]
    return RankingTable(
        rows=np.arange(len(names), dtype=np.int32),
        ids=[f"{row:064x}" for row in range(len(names))],
        sources=names,
        labels=[name.partition("/")[0] for name in names],
        neighbours=ListColumn.of(every, pa.list_(pa.int32())),
        distances=ListColumn.of(
            [0.1 + 0.1 * np.arange(len(each), dtype=np.float32) for each in every], pa.list_(pa.float32())
        ),
        origin=Origin("m", "pad", 32, backbone="b"),
        metric="euclidean",
        k=3,
    )


def _alike(row: int) -> list[int]:
    start = row // 4 * 4
    return [each for each in range(start, start + 4) if each != row]


def _side(nearest: Mapping[int, Sequence[int]], names: Sequence[str] = NAMES) -> RankingVerdicts:
    return judge(_rankings(nearest, names))


BETTER = _side({})
WORSE = _side({0: [4, 5, 6], 1: [5, 0, 2]})


def test_queries_are_matched_by_their_source() -> None:
    renamed = ["cat/5.png", *NAMES[1:]]
    pairs = pair(BETTER, _side({}, renamed))
    assert len(pairs) == 7
    assert (pairs.only_a, pairs.only_b) == (1, 1)
    assert [BETTER.rankings.sources[row] for row in pairs.a] == [renamed[row] for row in pairs.b]


def test_the_better_side_and_the_labels_that_differ_are_found() -> None:
    found = compare_rankings(WORSE, BETTER)
    assert found["queries"] == 8
    assert found["first"] == {"both": 6, "only_a": 0, "only_b": 2, "neither": 0, "chance": 0.5}
    first = found["micro"]["precision@1"]
    assert (first["a"], first["b"], first["difference"]) == (0.75, 1.0, 0.25)
    assert first["low"] <= 0.25 <= first["high"]
    assert found["micro"][f"MRR@{found['ks'][-1]}"]["a"] == pytest.approx((6 + 0 + 1 / 2) / 8)
    assert [(each["label"], each["only_b"], each["a"]) for each in found["labels"]] == [("cat", 2, 0.5)]
    assert found["verdict"]["better"] == ""
    assert found["verdict"]["words"] == "B finds more at rank 1, but chance can explain it"
    assert [each["source"] for each in found["examples"]["only_b"]] == ["cat/0.png", "cat/1.png"]
    example = found["examples"]["only_b"][0]
    assert (example["a"]["label"], example["b"]["label"]) == ("dog", "cat")
    assert found["examples"]["only_a"] == []


def test_exchanged_sides_have_the_opposite_difference() -> None:
    one, other = compare_rankings(WORSE, BETTER), compare_rankings(BETTER, WORSE)
    for name, values in one["micro"].items():
        assert values["difference"] == -other["micro"][name]["difference"]
    assert one["first"]["chance"] == other["first"]["chance"]


def test_equal_sides_find_the_same() -> None:
    found = compare_rankings(BETTER, BETTER)
    assert found["verdict"] == {"better": "", "words": "A and B find the same", "same": True}
    assert all(each["low"] == each["high"] == 0 for each in found["micro"].values())
    assert found["labels"] == []


def test_sides_without_a_common_query_are_told() -> None:
    found = compare_rankings(BETTER, _side({}, [f"other/{name}" for name in NAMES]))
    assert found["queries"] == 0
    assert "nothing can be compared" in found["note"]


def test_a_difference_beyond_chance_is_named_and_the_interval_holds_it() -> None:
    lot = np.random.default_rng(0)
    a = (lot.random((400, 1)) < 0.5).astype(np.float64)
    b = np.maximum(a, (lot.random((400, 1)) < 0.2).astype(np.float64))
    labels = np.arange(400) % 5
    micro, macro, resamples = differences(a, b, labels)
    assert micro[0]["better"] == macro[0]["better"] == "b"
    assert micro[0]["low"] > 0
    gains = (b - a)[:, 0]
    error = gains.std() / np.sqrt(400)
    assert micro[0]["low"] == pytest.approx(gains.mean() - 1.96 * error, abs=0.2 * error)
    assert micro[0]["high"] == pytest.approx(gains.mean() + 1.96 * error, abs=0.2 * error)
    assert resamples == ranking_comparison._RESAMPLES
    assert differences(a, b, labels) == (micro, macro, resamples)
    order = lot.permutation(400)
    assert differences(a[order], b[order], labels[order]) == (micro, macro, resamples)


@pytest.mark.parametrize(
    ("won", "lost", "probability"), [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (8, 2, 0.109375)]
)
def test_mcnemars_test_is_exact(won: int, lost: int, probability: float) -> None:
    assert mcnemar(won, lost) == mcnemar(lost, won) == pytest.approx(probability)


def test_mcnemars_test_of_many_queries_is_still_a_number() -> None:
    assert 0 < mcnemar(50_500, 49_500) < 0.01


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([1] * 2 + [0] * 8, [1] * 9 + [0], "B finds more at rank 1, beyond chance"),
        ([1] * 9 + [0], [1] * 2 + [0] * 8, "A finds more at rank 1, beyond chance"),
        ([1, 0], [0, 1], "A and B find as many at rank 1"),
    ],
)
def test_verdicts_are_words(a: list[int], b: list[int], words: str) -> None:
    first = firsts(np.asarray(a, bool), np.asarray(b, bool))
    assert verdict(first, same=False)["words"] == words


ABOUT: dict[str, dict[str, Any]] = {
    "a": {
        "named": "deployed",
        "backbone": "small <32>",
        "model": "5eed" * 16,
        "commit_of_models": "c0ffee",
        "image_size": 32,
        "fit": "pad",
        "metric": "euclidean",
        "k": 3,
        "stages": {"features": "features-5"},
        "deployed": True,
    },
    "commits": {"images": "abcdef0123456789"},
}


def _datum(tmp_path: Path, a: RankingTable, b: RankingTable, index: Path | None = None) -> Datum:
    for name, rankings in (("a", a), ("b", b)):
        (tmp_path / name).mkdir(parents=True)
        rankings.write(tmp_path / name / "queries.parquet")
    about: dict[str, Any] = {**ABOUT, "b": {**ABOUT["a"], "named": "other", "deployed": False}}
    (tmp_path / "about.json").write_text(json.dumps(about))
    (tmp_path / "out").mkdir()
    given = {name: tmp_path / name for name in ("a", "b")} | {"about": tmp_path / "about.json"}
    given |= {"index": index} if index else {}
    inputs = {name: DatumInput(name, path, name, "") for name, path in given.items()}
    return Datum(inputs, tmp_path / "out")


def test_the_stage_writes_json_and_a_page_that_loads_nothing(tmp_path: Path) -> None:
    index = tmp_path / "index" / "0"
    index.mkdir(parents=True)
    Image.new("RGB", (8, 8), "red").save(tmp_path / "red.jpg")
    red = (tmp_path / "red.jpg").read_bytes()
    images = image_table(["0" * 64], 4, [[Source("cat/0.png", "0" * 64)]], [red])
    segments.write_table(index, images, np.ones((1, 4)), [red])
    written = []
    for name in ("first", "again"):
        datum = _datum(tmp_path / name, WORSE.rankings, BETTER.rankings, tmp_path / "index")
        compare.start({})(datum)
        written.append([(datum.out / each).read_bytes() for each in ("comparison.json", "index.html")])
    assert written[0] == written[1]
    found = json.loads(written[0][0])
    assert found["about"]["a"]["stages"] == {"features": "features-5"}
    page = written[0][1].decode()
    assert found["verdict"]["words"] in page
    assert "small &lt;32&gt;" in page
    assert page.count('class="example"') == 2
    assert len(PageDocument(page).pictures) == 2  # the query cat/0.png, and the neighbour of cat/1.png


def test_a_page_without_queries_says_so(tmp_path: Path) -> None:
    other = _side({}, [f"other/{name}" for name in NAMES]).rankings
    datum = _datum(tmp_path, BETTER.rankings, other)
    compare.start({})(datum)
    assert "nothing can be compared" in (datum.out / "index.html").read_text()


def test_a_directory_without_rankings_is_refused(tmp_path: Path) -> None:
    datum = _datum(tmp_path, BETTER.rankings, WORSE.rankings)
    (tmp_path / "b" / "queries.parquet").unlink()
    with pytest.raises(StageError, match="b holds no rankings"):
        compare.start({})(datum)
