"""JSON patches of RFC 6902, with the examples of that document."""

import copy
from typing import Any

import pytest

from pipelines.specifications import json_patches
from pipelines.specifications.json_patches import PatchError


@pytest.mark.parametrize(
    ("target", "patch", "changed"),
    [  # RFC 6902, appendix A
        ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"foo": "bar", "baz": "qux"}),
        ({"foo": ["bar", "baz"]}, [{"op": "add", "path": "/foo/1", "value": "qux"}], {"foo": ["bar", "qux", "baz"]}),
        ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["a"]}], {"foo": ["bar", ["a"]]}),
        ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
        ({"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}),
        ({"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
        (
            {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
            [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
            {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
        ),
        ({"foo": [1, 2, 3]}, [{"op": "move", "from": "/foo/0", "path": "/foo/2"}], {"foo": [2, 3, 1]}),
        ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a": 1}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1}),
        ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": 2}], 2),
        ({"a": 1}, [], {"a": 1}),
    ],
)
def test_json_patches(target: Any, patch: Any, changed: Any) -> None:
    before = copy.deepcopy((target, patch))
    assert json_patches.apply(target, patch) == changed
    assert (target, patch) == before


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ({"op": "add"}, "a list of operations"),
        ("add", "a list of operations"),
        ([{"path": "/a"}], 'an object with "op"'),
        ([{"op": "add", "path": "/a"}], 'needs a "value"'),
        ([{"op": "add", "path": "a", "value": 1}], "paths begin with /"),
        ([{"op": "merge", "path": "/a", "value": 1}], '"merge" is not an operation'),
        ([{"op": "remove", "path": "/b"}], "there is no /b"),
        ([{"op": "remove", "path": ""}], "the whole"),
        ([{"op": "add", "path": "/b/-", "value": 1}], "there is no /b"),
        ([{"op": "add", "path": "/a/9", "value": 1}], "the list has 2"),
        ([{"op": "replace", "path": "/a/x", "value": 1}], "not a place in a list"),
        ([{"op": "add", "path": "/c/x", "value": 1}], "neither an object nor a list"),
        ([{"op": "test", "path": "/c", "value": 1}], "fails"),
        ([{"op": "copy", "from": "/zz", "path": "/c"}], "there is no /zz"),
    ],
)
def test_a_patch_that_does_not_apply_is_refused(patch: Any, said: str) -> None:
    with pytest.raises(PatchError, match=said):
        json_patches.apply({"a": [1, 2], "c": "text"}, patch)
