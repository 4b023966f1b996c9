"""Resources that no cluster could provide."""

from typing import Any

import pytest

from localpachd.errors import PachError
from localpachd.pps.specs import validation


def test_usual_resources_are_accepted() -> None:
    gpu = {"type": "nvidia.com/gpu", "number": "1"}
    validation.check_resources({})
    validation.check_resources(
        {
            "resource_requests": {"cpu": 0.5, "memory": "1G", "disk": "10Gi"},
            "resource_limits": {"cpu": 2.0, "memory": "1Gi", "gpu": gpu},
            "sidecar_resource_limits": {"cpu": 1e-05, "memory": "512M"},
        }
    )
    validation.check_resources({"resource_requests": {"gpu": gpu}, "resource_limits": {"gpu": gpu}})


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
            "resource_requests.memory is more than resource_limits.memory: no worker could start",
        ),
        (
            {"resource_requests": {"gpu": {"type": "nvidia.com/gpu", "number": "1"}}},
            "resource_requests.gpu: set GPUs in resource_limits only",
        ),
    ],
)
def test_resources_that_no_cluster_could_provide_are_refused(raw: dict[str, Any], text: str) -> None:
    with pytest.raises(PachError) as refused:
        validation.check_resources(raw)
    assert str(refused.value).startswith(text)
