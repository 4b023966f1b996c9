"""Records of runs and descriptions of classifiers: values and their JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from stages.classify import classifier_description
from stages.classify.training import run_records
from stages.classify.training.run_records import AccuracyScore, PictureCounts, TrainingRun, format_run, parse
from stages.classify.training.training_parameters import FineTuneParameters, TrainingParameters
from stages.datum.contract import StageError
from stages.quality.wilson_interval import wilson
from stages.record.origin import Origin

BACKBONE = Origin("ab" * 32, "pad", 224, 1280, "efficientnet-lite0 at 224 px")
RUN = TrainingRun(
    name="linear",
    parameters=TrainingParameters("linear", fine_tune=FineTuneParameters(layers=3)),
    labels=("ape", "cat\u00e9"),
    pictures=PictureCounts(80, 20, 3),
    unlearnable={"yak": 1},
    cross_validation=AccuracyScore.counted(70, 80),
    held_out=AccuracyScore.counted(15, 20),
    temperature=1.25,
    ece=0.03125,
    curves={"loss": [1.5, 0.5], "validation_loss": [1.75, 1.0]},
    weights=2562,
    origin=BACKBONE,
    device="cpu",
    held_out_share=0.2,
    notes=("The pictures were scaled up.",),
)


@pytest.mark.parametrize("run", [RUN, TrainingRun("broken", None, failure="broken.json: it is not valid JSON")])
def test_records_are_read_back(run: TrainingRun) -> None:
    assert parse(format_run(run)) == run
    assert format_run(parse(format_run(run))) == format_run(run)


def test_numbers_are_rounded() -> None:
    data = json.loads(format_run(replace(RUN, temperature=1 / 3, ece=2 / 3, curves={"loss": [0.1 + 0.2]})))
    assert (data["temperature"], data["ece"], data["curves"]["loss"]) == (0.333333, 0.666667, [0.3])


@given(st.integers(1, 1000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_scores_have_wilsons_interval(counts: tuple[int, int]) -> None:
    found = AccuracyScore.counted(*counts)
    assert found is not None
    assert (found.accuracy, found.low, found.high) == pytest.approx(wilson(*counts), abs=1e-6)
    assert found.low <= found.accuracy <= found.high


def test_nothing_has_no_score() -> None:
    assert AccuracyScore.counted(0, 0) is None


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"format": 1}', b"\xff", b"[" * 100_000, format_run(RUN)[:-9]]
)
def test_other_files_are_refused(content: bytes) -> None:
    with pytest.raises(StageError, match="run.json is not the record of a run that lookalike wrote"):
        parse(content)
    with pytest.raises(StageError, match="labels.json is not the description of a classifier"):
        classifier_description.parse(content)


def test_another_format_is_named() -> None:
    with pytest.raises(StageError, match="run.json has the format 2, which this version of lookalike does not know"):
        parse(b'{"format": 2}')
    with pytest.raises(StageError, match="labels.json has the format 2"):
        classifier_description.parse(b'{"format": 2}')


def test_a_classifier_is_described_by_its_run() -> None:
    described = classifier_description.of_run(RUN)
    assert classifier_description.parse(classifier_description.format_description(described)) == described
    assert (described.run, described.labels, described.takes) == ("linear", RUN.labels, "vectors")
    assert (described.origin, described.cross_validation, described.held_out) == (
        BACKBONE,
        RUN.cross_validation,
        RUN.held_out,
    )
    with pytest.raises(ValueError, match="has no model"):
        classifier_description.of_run(TrainingRun("broken", None, failure="a reason"))


def test_a_description_without_held_out_pictures_is_read_back() -> None:
    described = classifier_description.of_run(replace(RUN, held_out=None))
    assert classifier_description.parse(classifier_description.format_description(described)) == described


def test_inputs_of_another_kind_are_refused() -> None:
    data = classifier_description.of_run(RUN).as_data() | {"takes": "sounds"}
    with pytest.raises(StageError, match="a field is of the wrong type"):
        classifier_description.parse(json.dumps(data))


def test_a_record_holds_the_contracts_keys() -> None:
    assert set(json.loads(format_run(RUN))) >= {
        "format", "name", "parameters", "failure", "labels", "takes", "pictures", "cross_validation", "held_out",
        "temperature", "ece", "curves", "weights", "backbone", "device", "held_out_share", "notes",
    }  # fmt: skip
    assert run_records.FORMAT == 1
