"""Labels for the pictures of query entries, from their vectors."""

import json
from pathlib import Path

import numpy as np
import pytest

from stages import label_vectors
from stages.backbone.backbones import save_keras
from stages.classify import classifier_description
from stages.classify.training import run_records
from stages.classify.training.training_parameters import InputKind
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files.tables.image_table import ImageTable
from stages.record.origin import Origin
from stages.record.sources import Source
from tests.stages.classify import networks
from tests.stages.image_tables import unseen


def classifier(into: Path, takes: InputKind = "vectors") -> DatumInput:
    into.mkdir()
    save_keras(networks.network(takes=takes), into / run_records.MODEL)
    (into / classifier_description.FILE).write_bytes(
        classifier_description.format_description(networks.described(takes=takes))
    )
    return DatumInput("classifier", into, "", "")


def entry(into: Path, model: str = networks.BACKBONE.model) -> DatumInput:
    """Two pictures, the first under two names."""
    into.mkdir()
    vectors = np.random.default_rng(1).normal(size=(2, networks.DIMENSION)).astype(np.float32)
    np.save(into / "vectors.npy", vectors)
    sources = [[Source("b.png", "0" * 64), Source("c.png", "1" * 64)], [Source("a.png", "2" * 64)]]
    ids = ["0" * 64, "1" * 64]
    ImageTable(
        ids=ids,
        sources=sources,
        thumbnail_sizes=[0, 0],
        hashes=[0, 0],
        **unseen(2),
        origin=Origin(model, "pad", networks.SIDE, networks.DIMENSION),
    ).write(into / "images.parquet")
    return DatumInput("vectors", into, "queries/mine", "")


def test_each_source_gets_its_most_probable_labels(tmp_path: Path) -> None:
    process = label_vectors.start({})
    inputs = {"classifier": classifier(tmp_path / "one"), "vectors": entry(tmp_path / "entry")}
    texts = []
    for name in ("out", "again"):
        (tmp_path / name).mkdir()
        process(Datum(inputs, tmp_path / name))
        texts.append((tmp_path / name / label_vectors.FILE).read_text())
    assert texts[0] == texts[1]
    found = json.loads(texts[0])
    assert [each["source"] for each in found] == ["a.png", "b.png", "c.png"]
    assert found[1]["labels"] == found[2]["labels"]
    for each in found:
        probabilities = [label["probability"] for label in each["labels"]]
        assert probabilities == sorted(probabilities, reverse=True) and sum(probabilities) == pytest.approx(1, abs=1e-5)
        assert {label["label"] for label in each["labels"]} == {"ape", "cat", "dog"}


def test_a_classifier_of_pictures_or_another_backbone_is_refused(tmp_path: Path) -> None:
    process = label_vectors.start({})
    of_pictures, ours = classifier(tmp_path / "pictures", "pictures"), classifier(tmp_path / "vectors")
    with pytest.raises(StageError, match="this classifier takes pictures, not vectors"):
        process(Datum({"classifier": of_pictures, "vectors": entry(tmp_path / "one")}, tmp_path))
    with pytest.raises(StageError, match="stands on the backbone small at 8 px abab.*, and the vectors come from"):
        process(Datum({"classifier": ours, "vectors": entry(tmp_path / "other", "cd" * 32)}, tmp_path))
