"""Strict reading of messages, with protobuf's own reader of JSON as the oracle."""

from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import example, given, strategies as st
from python_pachyderm.proto.v2.pps import pps_pb2

from speclang import messages
from speclang.messages import MessageRule

REQUEST = pps_pb2.CreatePipelineRequest.DESCRIPTOR


def names(descriptor: Any, seen: frozenset[str] = frozenset()) -> set[str]:
    """The names of fields of a message and of those in it."""
    found: set[str] = set()
    for each in descriptor.fields:
        found |= {each.name, each.json_name}
        if each.message_type is not None and each.message_type.full_name not in seen:
            found |= names(each.message_type, seen | {descriptor.full_name})
    return found


def parsed(document: Any) -> Any:
    """The message of a document, or None where protobuf refuses it."""
    try:
        return json_format.ParseDict(document, pps_pb2.CreatePipelineRequest())
    except (json_format.ParseError, TypeError, ValueError, AttributeError):
        return None


WORDS = ["", "p", "1", "-1", "1.5", "1e3", "2Gi", "EXISTS", "Exists", "300s", "1.5s", "2026-01-31T12:00:00Z", "NaN"]
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(WORDS)
NAMES = st.sampled_from([*sorted(names(REQUEST)), "transfrom"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)


@given(st.dictionaries(NAMES, VALUES, max_size=3), st.booleans())
@example({"tolerations": [{"operator": {}, "effect": True}]}, False)
def test_a_value_without_problems_is_one_that_protobuf_takes(document: dict[str, Any], camel: bool) -> None:
    read = messages.read(document, REQUEST, camel)
    understood = parsed(read.value)
    assert understood is not None
    assert read.problems or understood == parsed(document)


@given(st.dictionaries(NAMES, VALUES, max_size=3))
def test_a_patch_keeps_null_and_is_read_alike_otherwise(document: dict[str, Any]) -> None:
    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without(each) for name, each in value.items() if each is not None}
        return [without(each) for each in value] if isinstance(value, list) else value

    plain, patch = (messages.read(document, REQUEST, patch=patch) for patch in (False, True))
    if not plain.problems:
        assert not patch.problems
        assert without(patch.value) == plain.value


@pytest.mark.parametrize(
    ("place", "good", "bad"),
    [
        (("autoscaling",), [True, False], ["yes", 1]),
        (("datum_tries",), ["3", 3, 3.0, -1, "-9223372036854775808", 2**63 - 1],
         [1.5, "1.5", "x", True, 2**63, str(2**63), 10**400, float("inf")]),
        (("description",), ["d", ""], [3]),
        (("datum_timeout",), ["300s", "1.5s", "-1s", "315576000000s"], [300, "300", "315576000001s", "1h"]),
        (("resource_limits", "cpu"), [1, 0.5, "0.5", "-1e-3", 3e38, 0], ["", "x", 1e39, []]),
        (("parallelism_spec", "constant"), [0, "7"], [-1, 2**64, str(2**64), "-1", {}]),
        (("input", "cron", "start"), ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5+02:00"],
         ["2026-02-31T12:00:00Z", "2026-01-31", "now", 1]),
        (("input", "pfs", "lazy"), [True], ["true", 0]),
        (("scheduling_spec", "node_selector", "a.b/c"), ["x"], [1, True, ["x"]]),
    ],
)  # fmt: skip
def test_values_that_protobuf_takes_and_refuses(place: tuple[str, ...], good: list[Any], bad: list[Any]) -> None:
    def document(value: Any) -> Any:
        for name in reversed(place):
            value = {name: value}
        return value

    for value in good:
        assert parsed(document(value)) is not None, value
        assert not messages.read(document(value), REQUEST).problems, value
    for value in bad:
        assert parsed(document(value)) is None, value
        (problem,) = messages.read(document(value), REQUEST).problems
        assert (problem.rule, problem.at) == (MessageRule.TYPE, place)


@pytest.mark.parametrize(
    "document",
    [
        {"resource_limits": {"cpu": "1_0"}},
        {"resource_limits": {"cpu": " 1"}},
        {"resource_limits": {"cpu": "NaN"}},
        {"resource_limits": {"cpu": True}},
        {"resource_limits": {"cpu": "1e39"}},
        {"tolerations": [{"effect": 99}]},
    ],
)
def test_what_only_pythons_protobuf_takes_is_refused(document: dict[str, Any]) -> None:
    assert parsed(document) is not None
    assert messages.read(document, REQUEST).problems


def test_both_spellings_are_understood() -> None:
    snake = {"datum_set_spec": {"per_worker": 3}, "input": {"cross": [{"pfs": {"join_on": "x"}}]}}
    camel = {"datumSetSpec": {"perWorker": 3}, "input": {"cross": [{"pfs": {"joinOn": "x"}}]}}
    for written in (snake, camel):
        assert messages.read(written, REQUEST).value == snake
        read = messages.read(written, REQUEST, camel=True)
        assert read.value == camel
        place = ("input", "cross", 0, "pfs", "joinOn")
        assert read.written[place][-1] == ("join_on" if written is snake else "joinOn")


UNKNOWN, TYPE = "is an unknown field", "must be text in double quotes, not "


@pytest.mark.parametrize(
    ("document", "rule", "at", "why", "fix"),
    [
        ({"transfrom": {}}, MessageRule.UNKNOWN, ("transfrom",), UNKNOWN, 'did you mean "transform"?'),
        ({"datumTrys": 1}, MessageRule.UNKNOWN, ("datumTrys",), UNKNOWN, 'did you mean "datumTries"?'),
        ({"nodeSelector": {}}, MessageRule.UNKNOWN, ("nodeSelector",), UNKNOWN,
         "it belongs in scheduling_spec.node_selector"),
        ({"zzz": 1}, MessageRule.UNKNOWN, ("zzz",), UNKNOWN, ""),
        ({"pipeline": {"zzz": 1}}, MessageRule.UNKNOWN, ("pipeline", "zzz"), UNKNOWN, "known here: name, project"),
        ({"datum_tries": 1, "datumTries": 1}, MessageRule.REPEATED, ("datumTries",), "is given twice, in two spellings",
         "keep one of them"),
        ({"egress": {"object_storage": {}, "sql_database": {}}}, MessageRule.EXCLUSIVE, ("egress", "sql_database"),
         "excludes another field that is given here", "keep one of them"),
        ({"transform": {"cmd": "a b"}}, MessageRule.TYPE, ("transform", "cmd"),
         'must be a list in square brackets, not "a b"', 'write ["a b"]'),
        ({"transform": {"env": {"K": 3}}}, MessageRule.TYPE, ("transform", "env", "K"), TYPE + "3", 'write "3"'),
        ({"transform": {"cmd": ["a", None]}}, MessageRule.TYPE, ("transform", "cmd", 1), TYPE + "null", ""),
        ({"datum_timeout": 300}, MessageRule.TYPE, ("datum_timeout",),
         'must be a time with its unit, such as "300s", not 300', 'write "300s"'),
        ({"pod_patch": []}, MessageRule.TYPE, ("pod_patch",), TYPE + "a list", "write it as text that holds JSON"),
        ({"autoscaling": "Yes"}, MessageRule.TYPE, ("autoscaling",), 'must be true or false, not "Yes"', "write true"),
        ({"transform": []}, MessageRule.TYPE, ("transform",), "must be an object in braces, not a list", ""),
        ({"tolerations": [{"operator": "Exists"}]}, MessageRule.CHOICE, ("tolerations", 0, "operator"),
         'is "Exists", Kubernetes\' spelling', 'write Pachyderm\'s: "EXISTS"'),
        ({"tolerations": [{"operator": "EXIST"}]}, MessageRule.CHOICE, ("tolerations", 0, "operator"),
         'is "EXIST", which is not a valid value of this field', 'did you mean "EXISTS"?'),
    ],
)  # fmt: skip
def test_problems(document: Any, rule: MessageRule, at: tuple[Any, ...], why: str, fix: str) -> None:
    (problem,) = messages.read(document, REQUEST).problems
    assert (problem.rule, problem.at, problem.why, problem.fix) == (rule, at, why, fix)


def test_a_null_excludes_nothing_in_a_patch() -> None:
    patch: dict[str, Any] = {"egress": {"object_storage": None, "sql_database": {}}}
    read = messages.read(patch, REQUEST, patch=True)
    assert (read.value, read.problems) == (patch, [])


@pytest.mark.parametrize("value", [None, [], "x", 3])
def test_a_message_must_be_an_object(value: Any) -> None:
    read = messages.read(value, REQUEST)
    assert read.value == {}
    assert [(each.rule, each.at) for each in read.problems] == [(MessageRule.TYPE, ())]
