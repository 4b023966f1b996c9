"""The sides of a comparison as they are named, and the estimate of its time."""

import os

import pytest

from pipelines.analysis.measurement.comparison_sides import ComparisonSide, choices, environment
from pipelines.client.backbones import vector_time
from pipelines.errors import LookalikeError


@pytest.mark.parametrize(
    ("model", "metric", "a", "b"),
    [
        (["x"], [], ("deployed", "euclidean"), ("x", "euclidean")),
        (["x", "y"], [], ("x", "euclidean"), ("y", "euclidean")),
        ([], ["cosine"], ("deployed", "euclidean"), ("deployed", "cosine")),
        ([], ["cosine", "euclidean"], ("deployed", "cosine"), ("deployed", "euclidean")),
        (["x"], ["cosine", "euclidean"], ("x", "cosine"), ("x", "euclidean")),
        (["x"], ["cosine"], ("deployed", "euclidean"), ("x", "cosine")),
        (["x", "y"], ["cosine"], ("x", "cosine"), ("y", "cosine")),
        (["x", "y"], ["cosine", "euclidean"], ("x", "cosine"), ("y", "euclidean")),
    ],
)
def test_sides_are_what_is_named_or_deployed(
    model: list[str], metric: list[str], a: tuple[str, str], b: tuple[str, str]
) -> None:
    assert choices(model, metric, "euclidean") == (ComparisonSide(*a), ComparisonSide(*b))


@pytest.mark.parametrize(
    ("model", "metric", "reason"),
    [
        (["x", "y", "z"], [], "--model is given 3 times"),
        ([], ["manhattan"], "'manhattan' is not a valid metric: choose euclidean or cosine"),
        ([], ["euclidean"], "both sides are deployed with euclidean"),
        (["x", "x"], [], "both sides are x with euclidean"),
    ],
)
def test_sides_that_are_alike_or_too_many_are_refused(model: list[str], metric: list[str], reason: str) -> None:
    with pytest.raises(LookalikeError, match=reason):
        choices(model, metric, "euclidean")


def test_a_side_changes_its_metric_and_size_alone() -> None:
    deployed = {"preprocess": {"IMAGE_SIZE": "224", "FIT": "pad"}, "neighbours": {"METRIC": "euclidean", "K": "10"}}
    assert environment(deployed, ComparisonSide("x", "cosine"), 96) == {
        "preprocess": {"IMAGE_SIZE": "96", "FIT": "pad"},
        "neighbours": {"METRIC": "cosine", "K": "10"},
    }
    assert deployed["preprocess"]["IMAGE_SIZE"] == "224"


def test_time_is_estimated_for_known_backbones_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert vector_time(1800, "efficientnet-lite0", 224, False) == "about 20 s"
    assert vector_time(180 * 600, "efficientnet-lite0", 224, False) == "about 11 min"
    assert vector_time(180 * 7200, "efficientnet-lite0", 224, False) == "about 3 hours"
    assert vector_time(180 * 600, "efficientnet-lite0", 224, True) == "about 26 min"
    assert vector_time(1800, "mine.keras", 224, False) == ""
