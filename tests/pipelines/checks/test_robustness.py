"""Checking any file ends with findings, never with an error."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pipelines.checks import datum_counts, suite
from pipelines.specifications import drafts, optional_specs, pipeline_specs, spec_fields
from pipelines.specifications.findings import FlawLevel


def names(descriptor: Any, seen: frozenset[str] = frozenset()) -> set[str]:
    """The names of the fields of a message and of its parts."""
    found: set[str] = set()
    for each in descriptor.fields:
        found |= {each.name, each.json_name}
        if each.message_type is not None and each.message_type.full_name not in seen:
            found |= names(each.message_type, seen | {descriptor.full_name})
    return found


WORDS = [
    "", "p", "images", "/", "/*", "/(", "$1", "1", "-1", "2Gi", "2GB", "EXISTS", "Exists", "300s", "a:b:c", "{", "[]",
    '[{"op": "add", "path": "/tolerations/-", "value": 1}]', '{"containers": 1}', '{"nodeSelector": {"a": 1}}',
    '{"containers": [1, {"resources": {"limits": 2}}], "tolerations": [3]}', "lookalike-rapids:1",
    "ecs.gn6i-c4g1.xlarge,2-4Gi", "tesla=470", "nvidia.com/gpu", "python3", "-m", "stages.x", "every_job",
]  # fmt: skip
NAMES = st.sampled_from([*sorted(names(spec_fields.REQUEST)), "transfrom", "k8s.aliyun.com/eci-use-specs", ""])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(WORDS)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)
SHIPPED = [json.loads(path.read_text()) for path in optional_specs.files(pipeline_specs.SHIPPED_SPECS)]


def checked(directory: Path, document: Any) -> suite.CheckReport:
    path = directory / "p.json"
    path.write_text(json.dumps(document))
    listing = {"images": datum_counts.listed(directory)}
    return suite.check(drafts.find([path]), repos=listing)


@given(document=st.dictionaries(NAMES, VALUES, max_size=8))
def test_any_document(tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]) -> None:
    report = checked(tmp_path_factory.getbasetemp(), document)
    assert report.count(FlawLevel.ERROR) or document.get("pipeline")


@given(
    document=st.sampled_from(SHIPPED), changes=st.lists(st.tuples(st.integers(0, 99), VALUES), min_size=1, max_size=4)
)
def test_the_shipped_specifications_with_other_values(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any], changes: list[tuple[int, Any]]
) -> None:
    changed = json.loads(json.dumps(document))
    for number, value in changes:
        holders = list(containers(changed))
        holder = holders[number % len(holders)]
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if keys:
            holder[keys[number % len(keys)]] = value
    checked(tmp_path_factory.getbasetemp(), changed)


def containers(value: Any) -> Any:
    if isinstance(value, dict | list):
        yield value
        for each in value.values() if isinstance(value, dict) else value:
            yield from containers(each)
