"""Trainings, choices and promotions in words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from stages.classify.report import training_words
from stages.classify.training.run_records import AccuracyScore
from stages.classify.training.training_parameters import parse


def scored(right: int, of: int) -> dict[str, Any]:
    found = AccuracyScore.counted(right, of)
    return {"right": 0, "of": 0} if found is None else vars(found)


def model(right: int, of: int, run: str = "linear", unknown: tuple[int, list[str]] = (0, [])) -> dict[str, Any]:
    told = {"pictures": unknown[0], "count": len(unknown[1]), "labels": unknown[1][:20]}
    return {"run": run, **scored(right, of), "unknown": told}


def promotion(**values: Any) -> dict[str, Any]:
    whole = {"candidate": model(90, 100), "current": model(80, 100, "old"), "note": "", "cautions": []}
    first = {"both": 78, "only_candidate": 12, "only_current": 2, "neither": 8}
    return whole | {"first": first, "difference": 0.1, "low": 0.03, "high": 0.17, "p": 0.0129} | values


def test_a_summary_has_the_run_and_both_accuracies() -> None:
    metrics: dict[str, Any] = {
        "run": "linear",
        "note": "",
        "runs": {"succeeded": 3, "failed": 1},
        "cross_validation": scored(466, 500),
        "held_out": scored(110, 120),
    }
    said = (
        "linear, the best of 3 runs: 93.2 % (90.6 to 95.1 %, 466 of 500) right in cross-validation; 91.7 % "
        "(85.3 to 95.4 %, 110 of 120) of held-out pictures"
    )
    assert training_words.summary(metrics) == said
    alone = metrics | {"runs": {"succeeded": 1, "failed": 1}, "held_out": None}
    assert training_words.summary(alone) == "linear: 93.2 % (90.6 to 95.1 %, 466 of 500) right in cross-validation"
    assert training_words.summary({"run": "", "note": "all 2 runs failed"}) == "all 2 runs failed"


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_only_all_and_none_are_said_to_be_so(right: int, of: int) -> None:
    said = training_words.percent(min(right, of) / of)
    assert (said == "100 %") == (right >= of)
    assert (said == "0 %") == (right == 0)
    assert abs(float(said.removesuffix(" %")) - 100 * min(right, of) / of) <= 0.1


def test_only_what_was_left_out_is_listed() -> None:
    none = {"count": 0, "examples": []}
    found = {
        "problems": none,
        "conflicts": {"count": 30, "examples": [{"source": "a.jpg", "labels": ["cat", "dog"]}]},
        "mixed": none,
        "unknown": {"count": 1, "examples": ["gone.jpg"]},
        "unlearnable": {"count": 1, "examples": [{"label": "ape", "training": 1}]},
    }
    assert training_words.left_out({"left_out": found}) == [
        ("sources with several labels", 30, ["a.jpg (cat, dog)"]),
        ("labels for sources that are not in the library", 1, ["gone.jpg"]),
        ("labels with too few training pictures", 1, ["ape (1 training picture)"]),
    ]


def test_runs_differ_in_parameters_by_name() -> None:
    runs: list[dict[str, Any]] = [
        {"parameters": {"head": "linear", "epochs": 5, "fine_tune": None}},
        {"parameters": {"head": "linear", "epochs": 7, "fine_tune": {"epochs": 5, "layers": "all"}}},
        {"parameters": None},
    ]
    assert training_words.settings(runs) == ["epochs", "fine_tune.epochs", "fine_tune.layers"]
    assert training_words.settings(runs[:1]) == []
    assert [training_words.setting(each) for each in (None, True, [256, 64], 0.001, "mlp", 0)] == [
        *("", "yes", "256, 64", "0.001", "mlp", "0")
    ]


def test_only_parameters_that_are_not_the_defaults_are_told() -> None:
    tune = b'{"head": "mlp", "hidden": [256, 64], "fine_tune": {"epochs": 3, "augmentation": {"flip": false}}}'
    assert training_words.changed(parse("a.json", tune).as_data()) == {
        "head": "mlp",
        "hidden": "256, 64",
        "fine_tune.epochs": "3",
        "fine_tune.augmentation.flip": "no",
    }
    for defaults in (b"{}", b'{"fine_tune": {}}', b'{"convolutional": {}}'):
        assert training_words.changed(parse("a.json", defaults).as_data()) == {}
    assert training_words.changed(None) == {}


def test_the_augmentation_of_a_convolutional_network_is_told() -> None:
    small = b'{"convolutional": {"cross_validation": false, "augmentation": {"shift": 0.08, "zoom": 0, "contrast": 1}}}'
    told = {each: parse("a.json", each).as_data() for each in (b"{}", b'{"convolutional": {}}', small)}
    assert [training_words.augmentation(each) for each in told.values()] == [
        "",
        "moved by up to 10 % of the side, scaled by up to 10 %, turned by up to 11°",
        "moved by up to 8 % of the side, turned by up to 11°, of other contrast by up to 100 %",
    ]
    assert [training_words.is_by_one_fold(each) for each in told.values()] == [False, False, True]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "The candidate has more right than the current model, beyond chance (p = 0.012)."),
        ({"p": 0.0499999}, "The candidate has more right than the current model, beyond chance (p = 0.049)."),
        ({"p": 0.3}, "The candidate has more right than the current model, but chance can explain it (p = 0.300)."),
        ({"difference": -0.1}, "The candidate has fewer right than the current model, beyond chance (p = 0.012)."),
        ({"difference": 0.0, "p": 1.0}, "The candidate and the current model have as many right."),
        (
            {"difference": 0.0, "p": 1.0, "first": {"both": 9, "only_candidate": 0, "only_current": 0, "neither": 1}},
            "The candidate and the current model are right on the same pictures.",
        ),
        ({"note": "no picture is held out"}, "no picture is held out"),
    ],
)
def test_verdicts(values: dict[str, Any], said: str) -> None:
    assert training_words.verdict(promotion(**values)) == said


def test_the_first_promotion_has_nothing_to_be_compared_with() -> None:
    alone = promotion(current=None, difference=None, low=None, high=None, p=None, first=None)
    assert [*training_words.promotion_lines(alone)] == [
        "candidate: linear, 90.0 % (82.6 to 94.5 %, 90 of 100)",
        "The candidate has 90.0 % (82.6 to 94.5 %, 90 of 100) right; there is no current model to compare it with.",
    ]


def test_labels_that_a_model_does_not_know_are_told() -> None:
    names = ["ape\u202e", "b", "c", "d", "e", "f"]
    told = [
        *training_words.promotion_lines(promotion(current=model(80, 100, "old", (7, names)), cautions=["it saw some"]))
    ]
    assert told == [
        "candidate: linear, 90.0 % (82.6 to 94.5 %, 90 of 100)",
        "current: old, 80.0 % (71.1 to 86.7 %, 80 of 100); 7 pictures have a label that it does not know, and counted "
        "as wrong: ape\\u{202e}, b, c, d, e, 1 more",
        "difference: +10.0 points (+3.0 to +17.0)",
        "The candidate has more right than the current model, beyond chance (p = 0.012).",
        "caution: it saw some",
    ]
