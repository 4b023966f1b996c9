"""The pipelines of an earlier time compared with today's specifications."""

import pytest

from pipelines.analysis.time_travel import past_library
from pipelines.analysis.time_travel.past_library import PastLibrary
from pipelines.errors import LookalikeError
from stages.datum.stage_version import STAGE

NOW = past_library.shipped_environments()


def then(**changed: str | None) -> PastLibrary:
    """Today's pipelines with other stages; None stands for a missing pipeline."""
    environments = {name: dict(NOW[name]) for name in (*past_library.LIBRARY, *past_library.QUERIES)}
    for name, stage in changed.items():
        if stage is None:
            del environments[name.replace("_", "-")]
        else:
            environments[name.replace("_", "-")][STAGE] = stage
    return PastLibrary("0123456789ab4def0123456789abcdef", environments)


def test_equal_stages_need_no_way_out() -> None:
    past_library.check(then(), NOW)
    assert past_library.recomputed(then(), NOW) == ()


def test_a_stage_of_the_answers_alone_costs_no_computing_again() -> None:
    with pytest.raises(
        LookalikeError, match="render ran render-1, and this code has render-.*--with-todays-code answers"
    ):
        past_library.check(then(render="render-1"), NOW)
    assert past_library.recomputed(then(render="render-1"), NOW) == ()


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ({"index": "index-1"}, 1),
        ({"partition": "partition-0"}, 2),
        ({"features": "features-1"}, 3),
        ({"preprocess": ""}, 4),
        ({"features": None}, 3),
        ({"preprocess": "preprocess-10", "features": "features-9", "partition": None, "index": "index-11"}, 4),
    ],
)
def test_the_library_is_computed_again_from_the_first_other_stage(changed: dict[str, str | None], again: int) -> None:
    assert past_library.recomputed(then(**changed), NOW) == past_library.LIBRARY[-again:]
    with pytest.raises(LookalikeError, match="of the whole library again with the code of today"):
        past_library.check(then(**changed), NOW)


def test_todays_code_keeps_the_variables_of_then() -> None:
    old = then(preprocess="preprocess-1", preprocess_queries=None)
    del old.environments["preprocess"]["FIT"]  # type: ignore[attr-defined]
    old.environments["preprocess"]["IMAGE_SIZE"] = "96"  # type: ignore[index]
    found = past_library.with_todays_code(old, NOW, image_size=96).environments
    assert found["preprocess"] == {**NOW["preprocess"], "IMAGE_SIZE": "96"}
    assert found["preprocess-queries"]["IMAGE_SIZE"] == "96"
    assert found["search"] == NOW["search"]


def test_segments_stay_as_features_made_them_before_there_was_partition() -> None:
    old = then(features="features-9", partition=None)
    old.environments["features"]["SEGMENT_DIGITS"] = "3"  # type: ignore[index]
    found = past_library.with_todays_code(old, NOW, image_size=224).environments
    assert found["partition"] == {**NOW["partition"], "SEGMENT_DIGITS": "3"}
