import pytest
from hypothesis import given, strategies as st

from stages.datum.contract import StageError
from stages.datum.stage_parameters import integer, one_of


@given(st.integers(1, 9))
def test_numbers_are_read(number: int) -> None:
    assert integer({"K": f" {number} "}, "K", 3, 1, 9) == number


@pytest.mark.parametrize("environment", [{}, {"K": ""}, {"K": "  "}])
def test_unset_is_the_default(environment: dict[str, str]) -> None:
    assert integer(environment, "K", 3, 1, 9) == 3
    assert one_of(environment, "K", ("a", "b")) == "a"


@pytest.mark.parametrize("text", ["0", "10", "-1", "3.0", "three", "³", "1e1", "9" * 5000])
def test_anything_else_is_refused_with_the_variables_name(text: str) -> None:
    with pytest.raises(StageError, match=r"^K='.*': must be a whole number from 1 to 9; change it in the spec's env$"):
        integer({"K": text}, "K", 3, 1, 9)


def test_options_are_named() -> None:
    assert one_of({"METRIC": "cosine"}, "METRIC", ("euclidean", "cosine")) == "cosine"
    with pytest.raises(
        StageError, match=r"^METRIC='l2': must be one of euclidean, cosine; change it in the spec's env$"
    ):
        one_of({"METRIC": "l2"}, "METRIC", ("euclidean", "cosine"))
