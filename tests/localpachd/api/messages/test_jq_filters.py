"""The subset of jq that clients send as jqFilter."""

import pytest
from hypothesis import given, strategies as st

from localpachd.api.messages.protojson import compile_filter
from localpachd.errors import PachError

JOB = {"state": "JOB_FAILURE", "job": {"pipeline": {"name": "edges"}}, "data_failed": "2", "stopped": True, "n": 3}


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("", True),
        (".", True),
        ('.state == "JOB_FAILURE"', True),
        ('.state == "JOB_SUCCESS"', False),
        ('.state == "JOB_SUCCESS" or .state == "JOB_FAILURE"', True),
        ('.state != "JOB_SUCCESS" and .job.pipeline.name == "edges"', True),
        ('(.state == "JOB_SUCCESS" or .stopped) and .n == 3', True),
        ('.state == "JOB_FAILURE" or .state == "JOB_FAILURE" and false', True),
        (".stopped", True),
        (".absent", False),
        (".absent == null", True),
        (".absent.deeper == null", True),
        (".n == -3.5", False),
        ('.state == "JOB_\\u0046AILURE"', True),
    ],
)
def test_filters(text: str, passes: bool) -> None:
    assert compile_filter(text)(JOB) is passes


@given(st.lists(st.sampled_from(["JOB_SUCCESS", "JOB_FAILURE", "JOB_KILLED"]), min_size=1), st.text())
def test_pachctls_filters_of_states(states: list[str], state: str) -> None:
    passes = compile_filter(" or ".join(f'.state == "{each}"' for each in states))
    assert all(passes({"state": each}) for each in states)
    assert passes({"state": state}) is (state in states)


@pytest.mark.parametrize("text", ['.state = "A"', ".state | length", "(.a == 1", ".a == 1)", '.a == "b', "and", "% 2"])
def test_other_jq_is_refused(text: str) -> None:
    with pytest.raises(PachError, match="error parsing jq filter"):
        compile_filter(text)


def test_a_long_filter_takes_no_longer_for_each_of_its_words() -> None:
    assert compile_filter("true and " * 500_000 + "true")({}) is True


def test_a_field_of_a_string_is_an_error() -> None:
    with pytest.raises(PachError, match="error applying jq filter"):
        compile_filter(".state.deeper")(JOB)
