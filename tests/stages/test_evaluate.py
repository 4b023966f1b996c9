"""The stage evaluate as Pachyderm runs it: an index and labels in, a report out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from stages import evaluate
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files.tables.columns import ListColumn
from stages.files.tables.ranking_table import RankingTable
from stages.record.origin import Origin
from tests.pipes import Pipes
from tests.stages import picture_indexes
from tests.stages.picture_indexes import id_of
from tests.stages.report.page_documents import PageDocument

K = 5
LABELS = ("cat", "dog", "ape")
Vector = npt.NDArray[np.float32]


def library(seed: int = 0, pictures: int = 60) -> dict[str, Vector]:
    """Vectors of pictures, by a name that begins with a label."""
    lot = np.random.default_rng(seed)
    centres = lot.normal(size=(len(LABELS), 8))
    return {
        f"{LABELS[at % 3]}/{at:02d}.jpg": (centres[at % 3] + 0.8 * lot.normal(size=8)).astype(np.float32)
        for at in range(pictures)
    }


def written(root: Path, vectors: Mapping[str, Vector], labels: Mapping[str, str]) -> Path:
    """The inputs of evaluate below a directory."""
    by_id = {id_of(name): vector for name, vector in vectors.items()}
    picture_indexes.write(root / "index", by_id, {id_of(name): [name] for name in vectors})
    (root / "labels").mkdir()
    (root / "labels" / "a.csv").write_text("source,label\n" + "".join(f"{name},{of}\n" for name, of in labels.items()))
    return root


def run(root: Path, commit: str = "c0ffee", **environment: str) -> Path:
    """Runs the stage; returns the directory of the report."""
    inputs = {name: DatumInput(name, root / name, "", commit) for name in ("labels", "index")}
    (root / "report").mkdir()
    evaluate.start({"K": str(K), "CUDA_VISIBLE_DEVICES": "", **environment})(Datum(inputs, root / "report"))
    return root / "report"


def metrics(report: Path) -> Any:
    return json.loads((report / "metrics.json").read_bytes())


def calibration(report: Path) -> Any:
    return json.loads((report / "calibration.json").read_bytes())


def own(names: Mapping[str, Any]) -> dict[str, str]:
    """The labels that the names begin with."""
    return {name: name.partition("/")[0] for name in names}


def brute(vectors: Mapping[str, Vector], labels: Mapping[str, str], k: int) -> dict[str, list[str]]:
    """The k nearest labelled names of each labelled name."""
    names = sorted(labels, key=id_of)
    found = {}
    for name in names:
        distances = {other: float(np.linalg.norm(vectors[other] - vectors[name])) for other in names if other != name}
        found[name] = sorted(distances, key=distances.__getitem__)[:k]  # stable: by id
    return found


@pytest.fixture(scope="module")
def vectors() -> dict[str, Vector]:
    return library()


@pytest.fixture(scope="module")
def report(vectors: dict[str, Vector], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on a library in which all pictures have their labels."""
    return run(written(tmp_path_factory.mktemp("whole"), vectors, own(vectors)))


def test_rankings_are_those_of_a_sort_of_all(report: Path, vectors: dict[str, Vector]) -> None:
    found = RankingTable.read(report / "queries.parquet")
    ends = np.cumsum(found.depths)
    lists = np.split(found.neighbours.values, ends[:-1])
    names = {found.sources[row]: [found.sources[each] for each in near.tolist()] for row, near in enumerate(lists)}
    assert names == brute(vectors, own(vectors), K)
    assert found.labels == [source.partition("/")[0] for source in found.sources]
    assert found.ids == sorted(map(id_of, vectors))


def test_measures_are_those_of_a_sort_of_all(report: Path, vectors: dict[str, Vector]) -> None:
    labels, told = own(vectors), metrics(report)
    near = brute(vectors, labels, K)
    right = {name: [labels[each] == labels[name] for each in found] for name, found in near.items()}
    assert told["micro"]["precision@1"]["value"] == pytest.approx(
        np.mean([each[0] for each in right.values()]), abs=1e-6
    )
    assert told["micro"]["precision@5"]["value"] == pytest.approx(np.mean([*right.values()]), abs=1e-6)
    assert told["micro"]["recall@5"]["value"] == pytest.approx(
        np.mean([sum(each) / 19 for each in right.values()]), abs=1e-6
    )
    wrong = Counter((labels[name], labels[each]) for name, found in near.items() for each in found)
    said = {(each["label"], each["taken_for"]): each["among"] for each in told["confusions"]}
    assert said == {pair: count for pair, count in wrong.items() if pair[0] != pair[1]}
    shown = told["matrix"]["labels"]
    assert told["matrix"]["rows"] == [[wrong[of, to] for to in shown] for of in shown]
    assert {row["label"]: row["pictures"] for row in told["per_label"]} == dict.fromkeys(LABELS, 20)
    assert (told["pictures"], told["labelled"], told["queries"], told["note"]) == (60, 60, 60, "")


def test_calibration_is_of_all_pairs_once(report: Path, vectors: dict[str, Vector]) -> None:
    labels, told = own(vectors), calibration(report)
    pairs = {frozenset((name, each)) for name, found in brute(vectors, labels, K).items() for each in found}
    same = sum(len({labels[name] for name in pair}) == 1 for pair in pairs)
    assert (told["pairs"], told["same"]) == (len(pairs), same)
    shares = [share for _, share in told["knots"]]
    assert shares == sorted(shares, reverse=True)
    assert sum(each["pairs"] for each in told["bins"]) == len(pairs)


def test_pictures_without_a_label_are_passed_over(tmp_path: Path, vectors: dict[str, Vector]) -> None:
    labels = {name: of for name, of in own(vectors).items() if int(name[-6:-4]) % 4}
    report = run(written(tmp_path, vectors, labels))
    near = brute(vectors, labels, K)
    told = metrics(report)
    assert (told["pictures"], told["labelled"]) == (60, 45)
    right = [[labels[each] == labels[name] for each in found] for name, found in near.items()]
    assert told["micro"]["precision@5"]["value"] == pytest.approx(np.mean(right), abs=1e-6)


def test_equal_input_gives_equal_bytes(tmp_path: Path, vectors: dict[str, Vector], report: Path) -> None:
    again = run(written(tmp_path / "again", vectors, own(vectors)), commit="")
    files = sorted(path.name for path in report.iterdir())
    assert files == ["calibration.json", "index.html", "metrics.json", "queries.parquet"]
    assert all((again / name).read_bytes() == (report / name).read_bytes() for name in files)


def test_everything_that_is_left_out_is_told(tmp_path: Path) -> None:
    vectors = library(1, 12)
    root = written(tmp_path, vectors, own(vectors))
    (root / "labels" / "b.csv").write_text("source,label\ncat/00.jpg,dog\ngone.jpg,cat\nbroken\n", encoding="utf-8")
    (root / "labels" / "notes.txt").write_text("not labels")
    told = metrics(run(root))["left_out"]
    assert told["conflicts"] == {"count": 1, "examples": [{"source": "cat/00.jpg", "labels": ["cat", "dog"]}]}
    assert told["unknown"] == {"count": 1, "examples": ["gone.jpg"]}
    assert told["problems"]["count"] == 2
    assert told["files"] == {"a.csv": 12, "b.csv": 2, "notes.txt": 0}
    page = (root / "report" / "index.html").read_text()
    assert all(each in page for each in ("gone.jpg", "b.csv, line 4: a line needs", "cat/00.jpg (cat, dog)"))


def test_copies_are_one_picture_with_the_labels_of_all_their_sources(tmp_path: Path) -> None:
    vectors = {id_of(name): vector for name, vector in library(2, 12).items()}
    names = {id_of(name): [name] for name in library(2, 12)}
    names[id_of("cat/00.jpg")] = ["cat/00.jpg", "copies/a.jpg", "copies/b.jpg"]
    names[id_of("dog/01.jpg")] = ["copies/c.jpg", "dog/01.jpg"]
    picture_indexes.write(tmp_path / "index", vectors, names)
    (tmp_path / "labels").mkdir()
    rows = [*own(library(2, 12)).items(), ("copies/b.jpg", "cat"), ("copies/c.jpg", "ape")]
    (tmp_path / "labels" / "a.csv").write_text("source,label\n" + "".join(f"{name},{of}\n" for name, of in rows))
    told = metrics(run(tmp_path))
    assert told["labelled"] == 11
    assert told["left_out"]["mixed"] == {"count": 1, "examples": ["copies/c.jpg"]}


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({}, "no picture of the library has a label: give some with `lookalike evaluate --labels FILE.csv`"),
        (
            {"x.jpg": "cat", "y.jpg": "dog"},
            "none of the labelled sources (2) is in the library: name them as result sheets",
        ),
        ({"cat/00.jpg": "cat", "cat/03.jpg": "cat"}, "all labelled pictures have the label 'cat'"),
        ({"cat/00.jpg": "cat", "dog/01.jpg": "dog"}, "every label has one picture only"),
        ({"cat/00.jpg": "cat"}, "every label has one picture only"),
    ],
)
def test_too_few_labels_are_a_report_that_says_what_to_do(tmp_path: Path, labels: dict[str, str], said: str) -> None:
    report = run(written(tmp_path, library(3, 12), labels))
    assert metrics(report)["note"].startswith(said)
    assert "<h1>Evaluation</h1>" in (report / "index.html").read_text()
    assert calibration(report)["proposed"]["distance"] is None or len(labels) == 2


def test_lazy_inputs_are_read_once(tmp_path: Path) -> None:
    root = written(tmp_path / "files", library(4, 12), own(library(4, 12)))
    assert metrics(run(Pipes(root, tmp_path / "pipes").directory)) == metrics(run(root))


def test_only_vectors_of_segments_with_labelled_pictures_are_read(tmp_path: Path, vectors: dict[str, Vector]) -> None:
    few = {name: of for name, of in own(vectors).items() if id_of(name)[0] in "0123"}
    root = written(tmp_path / "files", vectors, few)
    pipes = Pipes(root, tmp_path / "pipes")
    assert metrics(run(pipes.directory))["labelled"] == len(few) > 3
    read = {name for name in pipes.opened if "/vectors/" in name}
    assert {name.split("/")[1] for name in read} == {id_of(name)[0] for name in few}
    assert not any("/thumbnails/" in name or name.endswith("hashes.npy") for name in pipes.opened)


def test_the_metric_is_the_indexs_unless_another_is_asked_for(tmp_path: Path, vectors: dict[str, Vector]) -> None:
    root = written(tmp_path, vectors, own(vectors))
    for file in root.glob("index/*/index.json"):
        file.write_text(file.read_text().replace('"euclidean"', '"cosine"'))
    assert metrics(run(root))["facts"]["metric"] == "cosine"
    (root / "report").rename(root / "before")
    assert metrics(run(root, METRIC="euclidean"))["facts"]["metric"] == "euclidean"


def test_segments_of_two_models_are_refused(tmp_path: Path, vectors: dict[str, Vector]) -> None:
    root = written(tmp_path, vectors, own(vectors))
    file = sorted(root.glob("index/*/index.json"))[1]
    file.write_text(file.read_text().replace("5eed" * 16, "0dd5" * 16))
    with pytest.raises(StageError, match="segment 0 was computed with the model small 5eed.*meaningless"):
        run(root)


def test_the_inputs_of_an_earlier_version_are_refused(tmp_path: Path) -> None:
    inputs = {name: DatumInput(name, tmp_path, name, "") for name in ("labels", "nearest", "pictures")}
    with pytest.raises(StageError, match="bring the pipelines to this version with `lookalike upgrade`"):
        evaluate.start({})(Datum(inputs, tmp_path))


def test_a_library_without_pictures_is_refused(tmp_path: Path) -> None:
    for name in ("labels", "index"):
        (tmp_path / name).mkdir()
    with pytest.raises(StageError, match="the index has no pictures"):
        run(tmp_path)


def test_the_page_loads_nothing_and_escapes_names(tmp_path: Path) -> None:
    vectors = library(6, 24)
    labels = {name: f"<b>{of}</b>" for name, of in own(vectors).items()}
    page = (run(written(tmp_path, vectors, labels)) / "index.html").read_text()
    assert "<b>" not in page and "&lt;b&gt;cat&lt;/b&gt;" in page
    read = PageDocument(page)
    assert not read.pictures and not read.links
    assert page.count('<svg class="plot" role="img"') == 4


def test_a_wrong_table_of_rankings_is_refused() -> None:
    none = np.empty(0, np.int32)
    with pytest.raises(ValueError, match="differ in length"):
        RankingTable(
            rows=none,
            ids=["a"],
            sources=[],
            labels=[],
            neighbours=ListColumn.divided(none, none),
            distances=ListColumn.divided(none.astype(np.float32), none),
            origin=Origin("", ""),
            metric="",
            k=1,
        )
