"""The stage select as Pachyderm runs it: trainings in, the best of them and a report out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from stages import select
from stages.backbone.backbone_spec import SPEC_FILE, BackboneSpec, WeightsOrigin, format_spec
from stages.classify import classifier_description
from stages.classify.training import run_records, splits
from stages.classify.training.run_records import AccuracyScore, TrainingRun
from stages.datum.contract import Datum, DatumInput, StageError
from tests.pipes import Pipes
from tests.stages.classify import trainings
from tests.stages.classify.trainings import BACKBONE, Library, Predict, library, write_failed, write_repos, write_run
from tests.stages.report.page_documents import PageDocument

INPUTS = ("labelled", "labels", "train")
LABELS = ("ape", "cat", "dog")
FILES = ["index.html", "labels.json", "metrics.json", "model-card.md", "model.keras", "runs.json"]


def run(root: Path, out: str = "out", inputs: Sequence[str] = INPUTS) -> Path:
    (root / out).mkdir()
    given = {name: DatumInput(name, root / name, "", "") for name in inputs}
    select.start({})(Datum(given, root / out))
    return root / out


def read(file: Path) -> Any:
    return json.loads(file.read_bytes())


def only_run(root: Path, predict: Predict, given: Library | None = None, **more: Any) -> Path:
    """Runs the stage on one training."""
    given = library(LABELS) if given is None else given
    write_repos(root, given)
    write_run(root, "only", given, predict, **more)
    return run(root)


def always_right(_: str, label: str) -> tuple[str, float]:
    return label, 0.9


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three labels, three runs and a failed one."""
    write_trainings(tmp_path, library(LABELS))
    return tmp_path


def write_trainings(root: Path, given: Library) -> None:
    write_repos(root, given)
    labels = given.learnable()
    write_run(root, "bad", given, trainings.wrong_now_and_then(labels, 0.5))
    write_run(root, "good", given, trainings.wrong_now_and_then(labels, 0.1), '{"epochs": 7}')
    write_run(root, "middling", given, trainings.wrong_now_and_then(labels, 0.3))
    write_failed(root, "wild", "the training diverged <at once>")


def test_the_best_run_is_copied_byte_for_byte(root: Path) -> None:
    out = run(root)
    assert sorted(path.name for path in out.iterdir()) == FILES
    assert (out / "model.keras").read_bytes() == b"the network of good"
    best = run_records.parse((root / "train" / "good" / run_records.FILE).read_bytes())
    described = classifier_description.parse((out / classifier_description.FILE).read_bytes())
    assert described == classifier_description.of_run(best)
    assert (described.run, described.labels, described.held_out_share) == ("good", LABELS, trainings.SHARE)


def test_measures_are_those_of_the_predictions(root: Path) -> None:
    given = library(LABELS)
    predict = trainings.wrong_now_and_then(given.learnable(), 0.1)
    right = {True: [0, 0], False: [0, 0]}
    for source, id in given.ids().items():
        of = right[splits.held_out(id, trainings.SHARE)]
        of[0] += predict(source, given.of[source])[0] == given.of[source]
        of[1] += 1
    told = read(run(root) / "metrics.json")
    for name, held in (("cross_validation", False), ("held_out", True)):
        assert [told[name]["right"], told[name]["of"]] == right[held]
    assert told["runs"] == {"succeeded": 3, "failed": 1}
    assert told["pictures"] == {
        "labelled": 60,
        "training": right[False][1],
        "held_out": right[True][1],
        "unlearnable": 0,
    }
    assert sum(row["pictures"] for row in told["per_label"]) == right[False][1]
    f1 = [row["f1"] for row in told["per_label"]]
    assert f1 == sorted(f1)
    wrong = [each for each in told["mistakes"] if each["split"] == "cross-validation"]
    assert sum(each["pictures"] for each in told["confusions"]) == right[False][1] - right[False][0] == len(wrong)


def test_all_runs_are_recorded_the_best_first(root: Path) -> None:
    out = run(root)
    told = read(out / "runs.json")
    assert told["chosen"] == "good"
    assert [each["name"] for each in told["runs"]] == ["good", "middling", "bad", "wild"]
    page = (out / "index.html").read_text()
    assert "the training diverged &lt;at once&gt;" in page
    assert "<i>epochs</i> 7" in page


def test_equal_inputs_give_equal_bytes(root: Path) -> None:
    first = run(root, "first")
    write_trainings(root / "again", library(LABELS))
    second = run(root / "again")
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in FILES)


def test_the_page_shows_mistakes_and_loads_nothing(root: Path) -> None:
    page = (run(root) / "index.html").read_text()
    told = read(root / "out" / "metrics.json")
    assert page.count("data:image/jpeg") == len(told["mistakes"]) > 0
    assert "no preview" not in page
    assert not PageDocument(page).links
    assert page.count('<svg class="plot" role="img"') == 5


def test_lazy_inputs_are_read_once_and_vectors_never(root: Path) -> None:
    expected = run(root, "expected")
    lazy = {name: Pipes(root / name, root / "lazy" / name) for name in INPUTS}
    out = run(root / "lazy")
    assert all((out / name).read_bytes() == (expected / name).read_bytes() for name in FILES)
    opened = [f"{name}/{file}" for name, pipes in lazy.items() for file in pipes.opened]
    assert not [name for name in opened if name.endswith(".npy")]
    assert [name for name in opened if name.endswith("model.keras")] == ["train/good/model.keras"]


def test_without_a_run_there_is_a_report_that_says_what_to_do(tmp_path: Path) -> None:
    write_repos(tmp_path, library(LABELS))
    out = run(tmp_path)
    assert sorted(path.name for path in out.iterdir()) == ["index.html", "metrics.json", "runs.json"]
    assert read(out / "metrics.json")["note"].startswith("there is no run: put parameters into")
    assert "there is no run" in (out / "index.html").read_text()


def test_only_failed_runs_are_a_report_without_a_model(tmp_path: Path) -> None:
    write_repos(tmp_path, library(LABELS[:1]))
    write_failed(tmp_path, "one", "only one label, ape, has 2 training pictures")
    out = run(tmp_path)
    assert not (out / "model.keras").exists()
    assert read(out / "metrics.json")["note"] == "the run failed: only one label, ape, has 2 training pictures"
    write_failed(tmp_path, "two", "the training diverged")
    told = read(run(tmp_path, "later") / "metrics.json")
    assert told["note"] == "all 2 runs failed, for 2 reasons: see them in the report"
    assert (told["run"], told["cross_validation"], told["labels"]) == ("", None, 1)


def test_one_run_without_mistakes(tmp_path: Path) -> None:
    out = only_run(tmp_path, always_right)
    told = read(out / "metrics.json")
    assert (told["cross_validation"]["accuracy"], told["mistakes"], told["confusions"]) == (1.0, [], [])
    page = (out / "index.html").read_text()
    assert "None: every prediction is right." in page
    assert "the best of" not in page + (out / "model-card.md").read_text()


def test_the_notes_of_the_chosen_run_are_told(tmp_path: Path) -> None:
    out = only_run(tmp_path, always_right, notes=["It saw <thumbnails> of 96 px."])
    assert "<li><bdi>It saw &lt;thumbnails&gt; of 96 px.</bdi></li>" in (out / "index.html").read_text()
    limits = (out / "model-card.md").read_text().split("## Limits")[1].split("## Use")[0]
    assert r"- It saw \<thumbnails\> of 96 px." in limits.splitlines()


def test_a_convolutional_network_tells_its_augmentation_and_the_fold_that_validates_it(tmp_path: Path) -> None:
    out = only_run(tmp_path, always_right, parameters='{"convolutional": {"cross_validation": false}}')
    page, card = ((out / name).read_text() for name in ("index.html", "model-card.md"))
    assert "<dt>Augmentation</dt><dd>moved by up to 10 % of the side, scaled by up to 10 %, turned by up to 11°" in page
    assert "the network is trained on all folds but one" in page
    assert "a convolutional network of its own is trained" in card
    assert "| label | validated pictures | held out |" in card


def test_a_label_that_is_never_predicted_is_the_worst(tmp_path: Path) -> None:
    out = only_run(tmp_path, lambda _, label: ("cat" if label == "ape" else label, 0.9))
    worst = read(out / "metrics.json")["per_label"][0]
    assert (worst["label"], worst["predicted"], worst["precision"], worst["recall"]) == ("ape", 0, None, 0.0)
    assert "never predicted" in (out / "index.html").read_text()
    assert "- Never predicted in the cross-validation: ape." in (out / "model-card.md").read_text()


def test_everything_that_is_left_out_is_told(tmp_path: Path) -> None:
    given = Library({**library(LABELS).of, "lone/1.jpg": "lone", "cat/\udcff.jpg": "cat"})
    write_repos(tmp_path, given, {"0": ["second/name.jpg"]})
    rows = b"source,label\ncat/000.jpg,dog\nsecond/name.jpg,cat\ngone/\xff.jpg,cat\ngone/1.jpg,ape\nbroken\n"
    (tmp_path / "labels" / "b.csv").write_bytes(rows)
    (tmp_path / "labels" / "notes.txt").write_text("not labels")
    write_run(tmp_path, "only", given, always_right)
    out = run(tmp_path)
    told = read(out / "metrics.json")["left_out"]
    assert told["unknown"] == {"count": 2, "examples": ["gone/1.jpg", "gone/\udcff.jpg"]}
    assert told["conflicts"] == {"count": 1, "examples": [{"source": "cat/000.jpg", "labels": ["cat", "dog"]}]}
    assert told["problems"]["count"] == 2
    assert [each["label"] for each in told["unlearnable"]["examples"]] == ["lone"]
    page = (out / "index.html").read_text()
    assert all(each in page for each in ("gone/\\xff.jpg", "b.csv, line 6: a line needs", "cat/000.jpg (cat, dog)"))


def test_hostile_labels_are_escaped(tmp_path: Path) -> None:
    labels = ["<script>alert(1)</script>", '" onload="x', "a|b`c*d_e", "ab\u202ecd", "# title", "שלום"]
    out = only_run(tmp_path, trainings.wrong_now_and_then(labels, 0.4), library(labels))
    assert read(out / "labels.json")["labels"] == sorted(labels)
    page, card = ((out / name).read_text() for name in ("index.html", "model-card.md"))
    assert "<script" not in page and "\u202e" not in page + card
    assert '"" onload' not in page and "<bdi>שלום</bdi>" in page
    assert r"| a\|b\`c\*d\_e |" in card and r"| \# title |" in card and "<script" not in card.replace(r"\<", "")


@pytest.mark.only_in_all
def test_thousands_of_labels_are_bounded_on_the_page(tmp_path: Path) -> None:
    given = library([f"label-{number:04d}" for number in range(1100)], 4)
    labels = given.learnable()
    out = only_run(tmp_path, trainings.wrong_now_and_then(labels, 0.5), given)
    told = read(out / "metrics.json")
    assert len(told["per_label"]) == told["labels"] == len(labels) > 1000
    assert len(told["matrix"]["rows"]) == 25
    assert sum(map(sum, told["matrix"]["rows"])) == told["cross_validation"]["of"]
    assert len(told["mistakes"]) == 100
    assert (out / "index.html").stat().st_size < 1_000_000
    assert f"{len(labels) - 60:,} more are in metrics.json" in (out / "index.html").read_text()
    assert f"{len(labels) - 1000:,} more labels are in metrics.json" in (out / "model-card.md").read_text()


def test_the_card_has_the_origin_of_the_weights(root: Path) -> None:
    spec = BackboneSpec("resnet50", 32, "max", 6, 32, "float32", WeightsOrigin("keras.applications", "cd" * 32))
    (root / "models").mkdir()
    (root / "models" / SPEC_FILE).write_text(format_spec(spec))
    other = (run(root, "other", (*INPUTS, "models")) / "model-card.md").read_text()
    assert "origin of its weights, and their licence: not known here" in other
    known = BackboneSpec(**{**vars(spec), "sha256": BACKBONE.model})
    (root / "models" / SPEC_FILE).write_text(format_spec(known))
    card = (run(root, "known", (*INPUTS, "models")) / "model-card.md").read_text()
    assert "- weights: keras.applications, sha256 `cdcd" in card
    assert "- licence of the weights: MIT, if they are the published ones of resnet50" in card
    inputs = {name: DatumInput(name, root / name, "", "") for name in INPUTS}
    file = DatumInput("models", root / "models" / SPEC_FILE, SPEC_FILE, "")  # as the specification gives it
    (root / "file").mkdir()
    select.start({})(Datum({**inputs, "models": file}, root / "file"))
    assert (root / "file" / "model-card.md").read_text() == card


def test_a_run_without_its_model_is_refused(root: Path) -> None:
    (root / "train" / "good" / "model.keras").unlink()
    with pytest.raises(StageError, match=r"the run good has no model.keras: train it again"):
        run(root)


def test_a_segment_without_its_report_is_refused(root: Path) -> None:
    (root / "labelled" / "left_out" / "0.json").unlink()
    with pytest.raises(StageError, match=r"labelled has no left_out/0.json: write it again"):
        run(root)


def test_a_missing_input_is_named(root: Path) -> None:
    with pytest.raises(StageError, match="the input labels is missing: select needs labelled, labels and train"):
        run(root, inputs=("labelled", "train"))


def made(name: str, right: int, of: int = 10**6, weights: int = 5) -> TrainingRun:
    return TrainingRun(name, None, cross_validation=AccuracyScore.counted(right, of), weights=weights)


FAILED = TrainingRun("a-failed", None, "it diverged")


def test_rounding_decides_nothing() -> None:
    """The accuracies of the records are equal."""
    runs = [made("a", 5 * 10**6 - 1, 10**7), made("b", 5 * 10**6, 10**7)]
    score = runs[0].cross_validation
    assert score is not None
    assert score.accuracy == 0.5
    assert [run.name for run in select.ranked(runs)] == ["b", "a"]


def test_held_out_pictures_have_no_say() -> None:
    runs = [made("a", 8), replace(made("b", 7), held_out=AccuracyScore.counted(10, 10))]
    found = select.best_run(runs)
    assert found is not None and found.name == "a"


@given(st.permutations([made("a", 8), made("b", 8), made("c", 9), made("d", 9, weights=1), FAILED]))
def test_the_order_of_runs_does_not_matter(runs: list[TrainingRun]) -> None:
    assert [run.name for run in select.ranked(runs)] == ["d", "c", "a", "b", "a-failed"]


def test_without_a_model_a_note_says_why() -> None:
    assert select.missing_note([made("a", 8), FAILED]) == ""
    assert select.missing_note([]) == select.NO_RUNS
    assert select.missing_note([FAILED]) == "the run failed: it diverged"
    assert select.missing_note([FAILED, FAILED]) == "all 2 runs failed: it diverged"
    assert select.best_run([FAILED]) is None
