"""Specifications as people write them: names, merging, and every problem with its place."""

import json
from typing import Any

import pytest

from localpachd.api.messages.spec_reader import SpecReader
from localpachd.errors import InvalidArgument
from localpachd.pfs.pfs_service import PfsService


@pytest.fixture
def specs(engine_pfs: PfsService) -> SpecReader:
    return SpecReader(engine_pfs)


def read(specs: SpecReader, spec: Any) -> Any:
    return specs.read(json.dumps(spec))


def refusal(specs: SpecReader, spec: Any) -> str:
    with pytest.raises(InvalidArgument) as refused:
        read(specs, spec)
    return str(refused.value)


def test_both_spellings_of_names_are_equal(specs: SpecReader) -> None:
    snake = {"datum_set_spec": {"per_worker": 3}, "input": {"cross": [{"pfs": {"join_on": "x"}}]}, "tf_job": None}
    camel = {"datumSetSpec": {"perWorker": 3}, "input": {"cross": [{"pfs": {"joinOn": "x"}}]}, "tfJob": None}
    assert read(specs, snake) == read(specs, camel) == camel


def test_names_that_are_data_are_kept(specs: SpecReader) -> None:
    env = {"my_var": "1", "myVar": "2"}
    spec = {"transform": {"env": env}, "metadata": {"annotations": {"a_b": "c"}}}
    assert read(specs, spec) == spec


def test_enums_have_names(specs: SpecReader) -> None:
    assert read(specs, {"tolerations": [{"operator": 2}]}) == {"tolerations": [{"operator": "EQUAL"}]}


def test_durations_are_text(specs: SpecReader) -> None:
    merged = specs.merge('{"jobTimeout": "90s", "maximum_expected_uptime": "1.5s"}', {}, {})
    assert merged.message.job_timeout.seconds == 90
    assert merged.request(False, False)["maximum_expected_uptime"] == "1.500s"


def test_every_problem_is_named_with_its_place(specs: SpecReader) -> None:
    spec = {
        "trasnform": {},
        "input": {"cross": [{"pfs": {"globb": "/*"}}, {"cron": {"spce": "@daily"}}]},
        "datumTrys": 3,
        "zzz": 1,
        "transform": {"cmd": "true", "env": ["A=b"]},
        "datum_tries": 1,
        "datumTries": 2,
    }
    assert refusal(specs, spec).split("; ") == [
        'unknown field "trasnform": did you mean "transform"?',
        'unknown field "globb" in input.cross[0].pfs: did you mean "glob"?',
        'unknown field "spce" in input.cross[1].cron: did you mean "spec"?',
        'unknown field "datumTrys": did you mean "datumTries"?',
        'unknown field "zzz"',
        'transform.cmd must be a list in square brackets, not "true": write ["true"]',
        "transform.env must be an object in braces, not a list",
        "datumTries is given twice, in two spellings: keep one of them",
    ]


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '"x"', "[" * 100_000])
def test_text_that_is_not_an_object(specs: SpecReader, text: str) -> None:
    with pytest.raises(InvalidArgument, match="not (a )?JSON"):
        specs.read(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"description": "a", "description": "b"}', "description given twice in one object: line 1"),
        ('{"transform": {"env": {"A": "1", "A": "2"}}}', "A given twice in one object"),
        ('{"resourceLimits": {"cpu": NaN}}', "NaN is not a valid value"),
        ('{"description": "a"} {}', "a second one follows"),
    ],
)
def test_json_that_only_python_would_take(specs: SpecReader, text: str, why: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^not JSON: .*{why}"):
        specs.read(text)


def test_defaults_in_two_spellings(specs: SpecReader) -> None:
    with pytest.raises(InvalidArgument, match="^createPipelineRequest is given twice, in two spellings$"):
        specs.read_defaults('{"create_pipeline_request": {}, "createPipelineRequest": {}}')


def test_values_of_the_wrong_kind(specs: SpecReader) -> None:
    for spec, name in (
        ({"datumTries": "x"}, "datumTries"),
        ({"transform": {"cmd": [1]}}, "cmd"),
        ({"s3Out": 3}, "s3Out"),
    ):
        with pytest.raises(InvalidArgument, match=name):
            specs.merge(json.dumps(spec), {}, {})


def test_lenient_reading_logs_ignored_fields(engine_pfs: PfsService, caplog: pytest.LogCaptureFixture) -> None:
    lenient = SpecReader(engine_pfs, lenient=True)
    assert read(lenient, {"trasnform": {}, "description": "d"}) == {"description": "d"}
    assert 'unknown field "trasnform": did you mean "transform"?' in caplog.text
    with pytest.raises(InvalidArgument, match="cmd must be a list"):
        read(lenient, {"transform": {"cmd": "true"}, "zzz": 1})


def test_built_in_defaults_lie_below_all_others(specs: SpecReader) -> None:
    text = '{"transform": {"cmd": ["true"]}, "datumTries": null}'
    merged = specs.merge(text, {"outputBranch": "main"}, {"transform": {"image": "alpine:3"}})
    assert json.loads(merged.written.effective) == {
        "transform": {"image": "alpine:3", "cmd": ["true"]},
        "outputBranch": "main",
        "reprocessSpec": "until_success",
    }
    assert merged.written.user == text
    # The pps room has the built-in defaults itself, and must see whether there is a transform.
    request = {"transform": {"image": "alpine:3", "cmd": ["true"]}, "output_branch": "main"}
    assert merged.request(True, False) == {**request, "update": True, "reprocess": False}
    assert "transform" not in specs.merge("{}", {}, {}).request(False, False)
