"""Quantities as Kubernetes reads them, and what no cluster could give."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localpachd.errors import PachError
from localpachd.pps import resources

POWERS = {"": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


@given(st.decimals(0, 10**6, places=3), st.sampled_from(list(POWERS)), st.booleans())
def test_suffixes_are_powers(number, suffix, binary) -> None:
    base, end = (1024, "i") if binary and suffix else (1000, "")
    text = f"{number}{suffix.upper() if end else suffix}{end}"
    assert resources.quantity(text) == Fraction(number) * base ** POWERS[suffix]


@given(st.integers(0, 10**6), st.integers(-9, 9))
def test_exponents(number, exponent) -> None:
    assert resources.quantity(f"{number}e{exponent}") == number * Fraction(10) ** exponent


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("250m", Fraction(1, 4)),
        ("+2", 2),
        ("-1Gi", -(2**30)),
    ],
)
def test_ways_of_writing(text, value) -> None:
    assert resources.quantity(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "x", "1GB", "1 Gi", "1g", "1Gib", "1ki", "1KiB", "Gi", "1e", "NaN", "Infinity", "1,5", "0x10", "1e9999"],
)
def test_what_is_none(text) -> None:
    assert resources.quantity(text) is None


def test_what_is_usual() -> None:
    gpu = {"type": "nvidia.com/gpu", "number": "1"}
    resources.check({})
    resources.check(
        {
            "resource_requests": {"cpu": 0.5, "memory": "1G", "disk": "10Gi"},
            "resource_limits": {"cpu": 2.0, "memory": "1Gi", "gpu": gpu},
            "sidecar_resource_limits": {"cpu": 1e-05, "memory": "512M"},
        }
    )
    resources.check({"resource_requests": {"gpu": gpu}, "resource_limits": {"gpu": gpu}})


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"resource_limits": {"memory": "2GB"}}, 'resource_limits.memory: "2GB" is not a quantity: write a number'),
        ({"resource_requests": {"disk": "-1Gi"}}, 'resource_requests.disk: "-1Gi" must not be negative'),
        ({"resource_requests": {"cpu": -1.0}}, 'resource_requests.cpu: "-1.0" must not be negative'),
        ({"resource_limits": {"cpu": "NaN"}}, 'resource_limits.cpu: "NaN" is not a quantity'),
        ({"sidecar_resource_limits": {"memory": "lots"}}, 'sidecar_resource_limits.memory: "lots" is not a quantity'),
        ({"sidecar_resource_requests": {"memory": "1e"}}, 'sidecar_resource_requests.memory: "1e" is not a quantity'),
        ({"resource_limits": {"gpu": {"number": "1"}}}, "resource_limits.gpu.type is missing"),
        (
            {"resource_limits": {"gpu": {"type": "x", "number": "-1"}}},
            "resource_limits.gpu.number must not be negative",
        ),
        (
            {"resource_requests": {"memory": "2Gi"}, "resource_limits": {"memory": "2G"}},
            "resource_requests.memory is more than resource_limits.memory: no worker could be started",
        ),
        (
            {"resource_requests": {"gpu": {"type": "nvidia.com/gpu", "number": "1"}}},
            "resource_requests.gpu: GPUs are given by their limit only: put it into resource_limits",
        ),
    ],
)
def test_what_no_cluster_could_give(raw, text) -> None:
    with pytest.raises(PachError) as refused:
        resources.check(raw)
    assert str(refused.value).startswith(text)
