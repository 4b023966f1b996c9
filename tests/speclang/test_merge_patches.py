"""Merge patches: the examples of RFC 7396, and its rules on any JSON values."""

import copy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from speclang.merge_patches import difference, merge

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return value


@given(json_values, json_values)
def test_a_patch_wins_where_it_has_a_value(target: Any, patch: Any) -> None:
    merged = merge(target, patch)
    if not isinstance(patch, dict):
        assert merged == patch
        return
    below = target if isinstance(target, dict) else {}
    assert set(merged) == {key for key in {**below, **patch} if patch.get(key, 0) is not None}
    for key, value in merged.items():
        assert value == (merge(below.get(key), patch[key]) if key in patch else below[key])


@given(json_values, json_values)
def test_a_patch_applied_twice_is_a_patch_applied_once(target: Any, patch: Any) -> None:
    once = merge(target, patch)
    assert merge(once, patch) == once
    if isinstance(patch, dict):
        assert merge({}, patch) == without_nulls(patch)


@given(json_values, json_values)
def test_a_difference_is_the_patch_from_one_object_to_another(before: Any, after: Any) -> None:
    old, new = without_nulls({"value": before, "a": after}), without_nulls({"value": after, "b": before})
    assert merge(old, difference(old, new)) == new
    assert difference(new, new) == {}


@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [  # appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_the_standard(target: Any, patch: Any, merged: Any) -> None:
    before = copy.deepcopy((target, patch))
    assert merge(target, patch) == merged
    assert (target, patch) == before
