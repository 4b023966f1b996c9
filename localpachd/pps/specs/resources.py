"""The resources that a specification asks for, refused if no cluster could provide them.

Pachyderm stores anything; on a cluster the pipeline then fails, or its pods never start.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from localpachd.errors import PachError
from speclang import quantities

_PAIRS = (("resource_requests", "resource_limits"), ("sidecar_resource_requests", "sidecar_resource_limits"))


def check(raw: Mapping[str, Any]) -> None:
    """Refuses resources of a CreatePipelineRequest (protojson, snake_case names) that no cluster could provide."""
    for requests, limits in _PAIRS:
        asked, allowed = _amounts(raw, requests), _amounts(raw, limits)
        for name, amount in asked.items():
            if name in allowed and amount > allowed[name]:
                raise PachError(f"{requests}.{name} is more than {limits}.{name}: no worker could start")
    asked_gpu, allowed_gpu = (raw.get(holder, {}).get("gpu", {}) for holder in _PAIRS[0])
    if int(asked_gpu.get("number", 0)) and asked_gpu != allowed_gpu:
        raise PachError("resource_requests.gpu: set GPUs in resource_limits only")


def _amounts(raw: Mapping[str, Any], holder: str) -> dict[str, Fraction]:
    """The checked amounts in a ResourceSpec."""
    spec = raw.get(holder, {})
    found = {}
    for name in ("memory", "disk"):
        if spec.get(name):
            found[name] = _checked(f"{holder}.{name}", spec[name])
    if spec.get("cpu"):
        found["cpu"] = _checked(f"{holder}.cpu", str(spec["cpu"]))
    gpu = spec.get("gpu", {})
    if int(gpu.get("number", 0)) < 0:
        raise PachError(f"{holder}.gpu.number must not be negative")
    if int(gpu.get("number", 0)) and not gpu.get("type"):
        raise PachError(f'{holder}.gpu.type is missing: name what to count, such as "nvidia.com/gpu"')
    return found


def _checked(place: str, text: str) -> Fraction:
    amount = quantities.parse(text)
    if amount is None:
        raise PachError(
            f'{place}: "{text}" is not a quantity: write a number, followed by {", ".join(quantities.LARGE)}, '
            f"{', '.join(f'{suffix.upper()}i' for suffix in quantities.LARGE)} or m if needed"
        )
    if amount < 0:
        raise PachError(f'{place}: "{text}" must not be negative')
    return amount
