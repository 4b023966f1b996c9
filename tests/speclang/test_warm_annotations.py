"""The annotations for warm processes: the values that are taken, and those that are refused."""

import re

import pytest

from speclang import warm_annotations
from speclang.warm_annotations import MEMORY, SECONDS, WarmSettings

# Kubernetes' rule for the keys of annotations: a DNS subdomain, a slash, and a name.
_KEY = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def test_kubernetes_takes_the_keys() -> None:
    assert _KEY.fullmatch(SECONDS)
    assert _KEY.fullmatch(MEMORY)


@pytest.mark.parametrize(
    ("annotations", "wish"),
    [
        ({}, None),
        ({"other": "x"}, None),
        ({SECONDS: "0"}, None),
        ({SECONDS: "0", MEMORY: "1Gi"}, None),
        ({SECONDS: "600"}, WarmSettings(600, 1 << 30)),
        ({SECONDS: "86400", MEMORY: "1.5k"}, WarmSettings(86400, 1500)),
        ({SECONDS: "1", MEMORY: "100m"}, WarmSettings(1, 1)),
    ],
)
def test_wishes(annotations: dict[str, str], wish: WarmSettings | None) -> None:
    assert list(warm_annotations.faults(annotations)) == []
    assert warm_annotations.read(annotations) == wish


@pytest.mark.parametrize("text", ["", "-1", "1.5", "10m", "86401", "9" * 5000, "٣", " 5"])
def test_seconds_that_are_not_valid(text: str) -> None:
    (fault,) = warm_annotations.faults({SECONDS: text})
    assert (fault.key, fault.fix) == (SECONDS, 'write a text such as "600", or "0" to keep no process')
    assert fault.why == f'"{text}" is not a whole number of seconds from 0 to 86400'
    assert warm_annotations.read({SECONDS: text}) is None


@pytest.mark.parametrize("text", ["", "0", "-1Gi", "much", "1GB"])
def test_memory_that_is_not_valid(text: str) -> None:
    (fault,) = warm_annotations.faults({SECONDS: "5", MEMORY: text})
    assert (fault.key, fault.why) == (MEMORY, f'"{text}" is not a valid quantity of memory above 0')
    assert warm_annotations.read({SECONDS: "5", MEMORY: text}) is None


def test_memory_alone_has_no_effect() -> None:
    (fault,) = warm_annotations.faults({MEMORY: "1Gi"})
    assert (fault.key, fault.why) == (MEMORY, f"has no effect without {SECONDS}")
