"""The stage promotion: two classifiers on pictures that neither has seen, with real networks and backbones."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from stages import promotion, select, train
from stages.backbone.backbone_spec import WeightsOrigin
from stages.backbone.backbones import describe, save_backbone, save_keras
from stages.classify import classifier_description
from stages.classify.classifier_description import ClassifierDescription
from stages.classify.report import training_words
from stages.classify.training import splits, training_pixels
from stages.datum.contract import Datum, DatumInput, StageError
from stages.record.framing import Framing
from stages.record.origin import Origin
from tests.stages.classify import trainings
from tests.stages.classify.networks import BACKBONE, SIDE, described, network
from tests.stages.classify.trainings import library
from tests.stages.models import SmallModel

PROJECT = Path(__file__).parents[2]
LABELS = ("ape", "cat", "dog")
PICTURES = library(LABELS, 40)


def place(root: Path, name: str, model: keras.Model, about: ClassifierDescription, share: float = 0.2) -> None:
    """A classifier as select writes it."""
    (root / name).mkdir()
    save_keras(model, root / name / "model.keras")
    (root / name / classifier_description.FILE).write_bytes(
        classifier_description.format_description(replace(about, held_out_share=share))
    )


def run(root: Path, names: Sequence[str] = ("candidate", "current"), out: str = "out") -> Any:
    (root / out).mkdir()
    models = [f"{name}_models" for name in names if (root / f"{name}_models").exists()]
    inputs = {name: DatumInput(name, root / name, "", "") for name in (*names, *models, "labelled")}
    promotion.start({})(Datum(inputs, root / out))
    return json.loads((root / out / "promotion.json").read_bytes())


def held_out(share: float = 0.2) -> list[str]:
    """The sources that are held out, in the order of ids."""
    return [source for source, id in PICTURES.ids().items() if splits.held_out(id, share)]


def right(predicted: Sequence[str], sources: Sequence[str]) -> list[bool]:
    return [PICTURES.of[source] == label for source, label in zip(sources, predicted, strict=True)]


def by_vectors(seed: int, sources: Sequence[str], labels: Sequence[str] = LABELS) -> list[str]:
    vectors = np.stack([trainings.vector_of(source) for source in sources])
    return [labels[code] for code in np.asarray(network(seed, len(labels))(vectors)).argmax(axis=1)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    trainings.write_repos(tmp_path, PICTURES, backbone=BACKBONE)
    return tmp_path


def test_both_are_asked_about_the_vectors_of_the_held_out_pictures(root: Path) -> None:
    place(root, "candidate", network(1), described())
    place(root, "current", network(2), replace(described(), run="old"))
    told = run(root)
    run(root, out="again")
    assert (root / "out" / "promotion.json").read_bytes() == (root / "again" / "promotion.json").read_bytes()
    sources = held_out()
    mine, theirs = (np.array(right(by_vectors(seed, sources), sources)) for seed in (1, 2))
    assert told["pictures"] == len(sources) > 15
    assert (told["candidate"]["run"], told["current"]["run"]) == ("linear", "old")
    assert [told[name]["right"] for name in ("candidate", "current")] == [mine.sum(), theirs.sum()]
    assert told["first"] == {
        "both": (mine & theirs).sum(),
        "only_candidate": (mine & ~theirs).sum(),
        "only_current": (theirs & ~mine).sum(),
        "neither": (~mine & ~theirs).sum(),
    }
    assert told["difference"] == pytest.approx(mine.mean() - theirs.mean(), abs=1e-6)
    assert told["low"] <= told["difference"] <= told["high"]
    assert 0 < told["p"] <= 1
    assert {row["label"]: row["pictures"] for row in told["per_label"]} == {
        label: sum(PICTURES.of[source] == label for source in sources) for label in LABELS
    }
    assert told["cautions"] == []
    lines = [*training_words.promotion_lines(told)]
    assert [line.partition(":")[0] for line in lines[:3]] == ["candidate", "current", "difference"]
    assert lines[3].startswith("The candidate ")


def test_pictures_that_one_training_has_seen_do_not_count(root: Path) -> None:
    place(root, "candidate", network(1), described(), 0.5)
    place(root, "current", network(2), described(), 0.1)
    assert run(root)["pictures"] == len(held_out(0.1)) < len(held_out(0.5))


def test_the_first_candidate_has_figures_of_its_own(root: Path) -> None:
    place(root, "candidate", network(1), described())
    told = run(root, ("candidate",))
    sources = held_out()
    assert told["candidate"]["right"] == sum(right(by_vectors(1, sources), sources))
    assert told["candidate"]["low"] < told["candidate"]["accuracy"] < told["candidate"]["high"]
    assert [told[name] for name in ("current", "difference", "p", "first", "note")] == [None, None, None, None, ""]
    assert training_words.verdict(told).endswith("there is no current model to compare it with.")


def test_a_label_that_a_classifier_does_not_know_counts_as_wrong(root: Path) -> None:
    place(root, "candidate", network(1), described())
    place(root, "current", network(2, 2), described(LABELS[:2]))
    told = run(root)
    sources = held_out()
    dogs = sum(PICTURES.of[source] == "dog" for source in sources)
    assert told["current"]["unknown"] == {"pictures": dogs, "count": 1, "labels": ["dog"]}
    assert told["candidate"]["unknown"]["pictures"] == 0
    assert told["current"]["right"] == sum(right(by_vectors(2, sources, LABELS[:2]), sources))
    row = next(row for row in told["per_label"] if row["label"] == "dog")
    assert (row["pictures"], row["current"]) == (dogs, None)


def test_nothing_held_out_is_told(root: Path) -> None:
    place(root, "candidate", network(1), described())
    place(root, "current", network(2), described(), 0.0)
    told = run(root)
    assert told["note"].startswith("no labelled picture is held out from the trainings")
    assert (told["candidate"]["of"], told["candidate"]["accuracy"], told["difference"]) == (0, None, None)
    assert [*training_words.promotion_lines(told)] == [told["note"]]


def test_another_backbone_computes_vectors_of_the_thumbnails(root: Path, small_model: SmallModel) -> None:
    (root / "current_models").mkdir()
    small = small_model(SIDE + 4, BACKBONE.dimension, seed=3)
    spec = save_backbone(
        small, describe(small, "small", "own", WeightsOrigin("a test", "0" * 64)), root / "current_models"
    )
    theirs = Origin(spec.sha256, "crop", spec.image_size, spec.dimension, spec.described)
    place(root, "candidate", network(1), described())
    place(root, "current", network(2), replace(described(), origin=theirs))
    told = run(root)
    sources = held_out()
    framed = training_pixels.frame_thumbnails(
        [trainings.thumbnail(source) for source in sources], Framing(SIDE + 4, "crop")
    )
    probabilities = np.asarray(network(2)(np.asarray(small(framed))))
    expected = right([LABELS[code] for code in probabilities.argmax(axis=1)], sources)
    assert told["current"]["right"] == sum(expected)
    assert [told[name]["input"] for name in ("candidate", "current")] == ["vectors", "thumbnails"]
    assert len(told["cautions"]) == 1
    assert told["cautions"][0].startswith(
        "the current model was trained on pictures of 12 px (crop), and the library now has 8 px (pad)"
    )


def test_a_fine_tuned_network_takes_the_thumbnails(root: Path) -> None:
    place(root, "candidate", network(1, takes="pictures"), described(takes="pictures"))
    place(root, "current", network(2), described())
    told = run(root)
    sources = held_out()
    framed = training_pixels.frame_thumbnails([trainings.thumbnail(source) for source in sources], Framing(SIDE, "pad"))
    probabilities = np.asarray(network(1, takes="pictures")(framed))
    assert told["candidate"]["right"] == sum(right([LABELS[code] for code in probabilities.argmax(axis=1)], sources))
    assert told["candidate"]["input"] == "thumbnails"
    assert told["cautions"] == []


def test_a_real_training_is_chosen_and_measured(root: Path) -> None:
    """All three stages, one after the other: what each writes the next one reads."""
    (root / "parameters").mkdir()
    (root / "models").mkdir()
    process = train.start({})
    for name, content in (("linear", '{"epochs": 5}'), ("mlp", '{"head": "mlp", "hidden": [4], "epochs": 5}')):
        file = root / "parameters" / f"{name}.json"
        file.write_text(content)
        inputs = {each: DatumInput(each, root / each, "", "") for each in ("labelled", "models")}
        process(Datum({**inputs, "parameters": DatumInput("parameters", file, file.name, "")}, root / "train"))
    (root / "candidate").mkdir()
    names = ("labelled", "labels", "models", "train")
    select.start({})(Datum({name: DatumInput(name, root / name, "", "") for name in names}, root / "candidate"))
    metrics, records = (json.loads((root / "candidate" / name).read_bytes()) for name in ("metrics.json", "runs.json"))
    best = records["runs"][0]
    assert best["name"] == metrics["run"]
    assert metrics["cross_validation"]["right"] == best["cross_validation"]["right"]
    assert metrics["cross_validation"]["ece"] == pytest.approx(best["ece"], abs=1e-5)
    told = run(root, ("candidate",))
    assert told["candidate"]["right"] == metrics["held_out"]["right"] > 0
    assert told["pictures"] == metrics["held_out"]["of"]


def test_the_same_fit_is_needed_for_vectors(root: Path) -> None:
    """Vectors of pictures that were framed in another way are not those that the classifier was trained on."""
    other = replace(described(), origin=replace(BACKBONE, fit="crop"))
    place(root, "candidate", network(1), other)
    with pytest.raises(StageError, match=r"the backbone small at 8 px \(abababababababab\) is not there"):
        run(root, ("candidate",))


def test_another_backbone_in_models_is_refused(root: Path, small_model: SmallModel) -> None:
    (root / "candidate_models").mkdir()
    small = small_model(SIDE + 4)
    save_backbone(small, describe(small, "small", "own", WeightsOrigin("a test", "0" * 64)), root / "candidate_models")
    place(root, "candidate", network(1), replace(described(), origin=replace(BACKBONE, model="cd" * 32)))
    with pytest.raises(StageError, match=r"the repo models holds small at 12 px .* not the backbone of the classifier"):
        run(root, ("candidate",))


def test_missing_files_are_named_before_tensorflow_is_imported(root: Path) -> None:
    (root / "candidate").mkdir()
    program = (
        "import sys; from pathlib import Path; from stages import promotion; from stages.datum.contract import *\n"
        f"root = Path({str(root)!r})\n"
        "inputs = {name: DatumInput(name, root / name, '', '') for name in ('candidate', 'labelled')}\n"
        "try:\n    promotion.start({})(Datum(inputs, root))\n"
        "except StageError as error:\n    print(error, 'tensorflow' in sys.modules, 'numpy' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, cwd=PROJECT, capture_output=True, text=True)
    assert done.stdout == (
        "the input candidate has no model.keras: it should be a directory that select wrote False False\n"
    )


def test_a_missing_input_is_named(root: Path) -> None:
    with pytest.raises(StageError, match="the input candidate is missing"):
        run(root, ())


def test_an_empty_repo_is_refused(root: Path) -> None:
    place(root, "candidate", network(1), described())
    for file in (root / "labelled").glob("*.parquet"):
        file.unlink()
    with pytest.raises(StageError, match="the repo labelled holds no pictures"):
        run(root, ("candidate",))
