"""Variables on which specifications of lookalike's own stages must agree."""

from typing import Any

import pytest

from pipelines.checks import suite
from pipelines.specifications.findings import FlawLevel
from speclang.field_paths import dotted


def runs(stage: str, **env: str) -> dict[str, Any]:
    return {"transform": {"image": "shell:1", "cmd": ["python3", "-m", f"stages.{stage}"], "env": env}}


@pytest.mark.parametrize(
    ("env", "level", "why"),
    [
        ({"THRESHOLD": "near"}, FlawLevel.ERROR, '"near" is not a number from 0'),
        ({"THRESHOLD": "-0.1"}, FlawLevel.ERROR, "not a number from 0"),
        ({"THRESHOLD": "nan"}, FlawLevel.ERROR, "not a number from 0"),
        ({"THRESHOLD": "0.7", "METRIC": "cosine"}, FlawLevel.WARNING, "far for METRIC=cosine"),
        ({"THRESHOLD": "0.35", "METRIC": "euclidean"}, None, ""),
        ({"THRESHOLD": "0.06", "METRIC": "cosine"}, None, ""),
        ({}, None, ""),
    ],
)
def test_the_threshold(draft: Any, env: dict[str, str], level: FlawLevel | None, why: str) -> None:
    found = [each.flaw for each in suite.check([draft(**runs("neighbours", **env))]).findings]
    assert [(flaw.level, dotted(flaw.field)) for flaw in found] == (
        [] if level is None else [(level, "transform.env.THRESHOLD")]
    )
    assert all(why in flaw.why for flaw in found)


def test_the_threshold_of_a_metric_is_proposed(draft: Any) -> None:
    (found,) = suite.check([draft(**runs("neighbours", THRESHOLD="0.7", METRIC="cosine"))]).findings
    assert found.flaw.fix == "for vectors of length 1, 0.7 with euclidean is 0.24 with cosine"


@pytest.mark.parametrize(
    ("stage", "name", "bounds", "good", "bad"),
    [
        ("neighbours", "HASH_BITS", "0 to 64", ["0", "12", "64", ""], ["65", "-1", "1.5", "few", "²"]),
        ("partition", "SEGMENT_DIGITS", "1 to 8", ["1", "2", "8", ""], ["0", "9", "-1", "2.0", "²"]),
    ],
)
def test_whole_numbers_have_bounds(
    draft: Any, stage: str, name: str, bounds: str, good: list[str], bad: list[str]
) -> None:
    for text in good + bad:
        found = suite.check([draft(**runs(stage, **{name: text}))]).findings
        assert [(each.flaw.level, dotted(each.flaw.field), each.flaw.why) for each in found] == [
            (FlawLevel.ERROR, f"transform.env.{name}", f'"{text}" is not a whole number from {bounds}')
        ] * (text in bad)


def test_near_pictures_and_answers_have_one_metric(draft: Any) -> None:
    search = draft("search", **runs("search", METRIC="cosine"))
    near = draft("neighbours", **runs("neighbours", METRIC="euclidean"))
    (found,) = suite.check([near], neighbours=[search]).findings
    assert (found.pipeline, found.flaw.why) == (
        "neighbours",
        "euclidean differs from cosine in search: one distance has two meanings",
    )
    assert not suite.check([search], neighbours=[near]).findings
    assert not suite.check([draft("neighbours", **runs("neighbours", METRIC="cosine")), search]).findings


def test_library_queries_and_service_have_one_backend(draft: Any) -> None:
    """Without the variable it is TensorFlow. Specifications beside them may be deployed with an overlay."""
    library, plain = draft("features", **runs("features", KERAS_BACKEND="jax")), draft("features", **runs("features"))
    for stage, name in (("features", "features-queries"), ("serve", "serve")):
        other = draft(name, **runs(stage, KERAS_BACKEND="torch"))
        same = draft(name, **runs(stage, KERAS_BACKEND="jax"))
        usual = draft(name, **runs(stage, KERAS_BACKEND="tensorflow"))
        assert not suite.check([library, same]).findings and not suite.check([plain, usual]).findings
        assert not suite.check([other], neighbours=[library]).findings
        for drafts, theirs, said in (([library, other], "torch", "jax"), ([plain, same], "jax", "tensorflow")):
            (found,) = suite.check(drafts).findings
            assert (found.pipeline, found.flaw.level) == (name, FlawLevel.ERROR)
            assert found.flaw.why.startswith(f"{theirs} computes queries and {said} the library: ")
