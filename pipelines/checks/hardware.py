"""Facts about GPUs, the instances of clouds that have them, and the needs of our images: data and look-ups.

Sources: NVIDIA's list of compute capabilities; Alibaba Cloud's and Amazon's instance families; RAPIDS' platform support
(CUDA 12: driver 535, Volta and newer; CUDA 13: driver 580, Turing and newer); TensorFlow's install guide (CUDA 12:
driver 525; its wheels begin with sm_60).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

CAPABILITIES: Mapping[str, float] = {
    **dict.fromkeys(("K80",), 3.7),
    **dict.fromkeys(("M60", "M40"), 5.2),
    **dict.fromkeys(("P100",), 6.0),
    **dict.fromkeys(("P4", "P40"), 6.1),
    **dict.fromkeys(("V100",), 7.0),
    **dict.fromkeys(("T4", "T4G"), 7.5),
    **dict.fromkeys(("A100", "A30"), 8.0),
    **dict.fromkeys(("A10", "A10G", "A16", "A40"), 8.6),
    **dict.fromkeys(("L4", "L20", "L40", "L40S"), 8.9),
    **dict.fromkeys(("H100", "H200", "H20", "H800"), 9.0),
    **dict.fromkeys(("B200", "GB200"), 10.0),
    **dict.fromkeys(("B300", "GB300"), 10.3),
}
"""Compute capability by model of GPU."""

GENERATIONS: Mapping[int, str] = {3: "Kepler", 5: "Maxwell", 6: "Pascal", 7: "Volta"}
"""The generations that are too old for some of our images, by the first digit of their compute capability."""

_ECI: Mapping[str, str] = {
    "gn5": "P100", "gn5i": "P4", "gn6e": "V100", "gn6i": "T4", "gn6v": "V100", "gn7": "A100", "gn7e": "A100",
    "gn7i": "A10", "gn7s": "A30",
}  # fmt: skip
"""The model of GPU by the family of Alibaba Cloud's instances that ECI takes."""

_ECI_SIZE = re.compile(r"ecs\.([a-z0-9]+)-c(\d+)g1\.(?:(\d*)x)?large")
"""An instance type: its family, its cores for each GPU, and its size. A large has 2 cores, an xlarge 4, a 2xlarge 8."""

_ECI_ODD = {"ecs.gn5-c8g1.14xlarge": 8}
"""The GPUs of instance types whose names do not tell them."""
_MOST_GPUS = 8

_AMAZON: Mapping[str, str] = {
    "p2": "K80", "p3": "V100", "p3dn": "V100", "p4d": "A100", "p4de": "A100", "p5": "H100", "p5e": "H200",
    "p6-b200": "B200", "p6-b300": "B300",
    "g3": "M60", "g3s": "M60", "g4dn": "T4", "g5": "A10G", "g5g": "T4G", "g6": "L4", "gr6": "L4", "g6e": "L40S",
}  # fmt: skip
"""The model of GPU by the family of an EC2 instance."""


@dataclass(frozen=True, slots=True)
class InstanceType:
    """An instance type: its model of GPU and how many it has."""

    model: str
    gpus: int


@dataclass(frozen=True, slots=True)
class GpuRequirements:
    """The least that an image needs of a GPU node: the driver's major version and the compute capability. `software` is
    the part of the image that needs them."""

    software: str
    driver: int
    capability: float


_WANTS = {
    r"rapids-cuda13|cuml-cu13": GpuRequirements("cuML (the cuml-cu13 wheels)", 580, 7.5),
    r"rapids|cuml": GpuRequirements("cuML (the cuml-cu12 wheels)", 535, 7.0),
    r"lookalike-tensorflow": GpuRequirements("TensorFlow 2.19 (its CUDA 12 wheels)", 525, 6.0),
}


def instance(name: str) -> InstanceType | None:
    """An instance type of Alibaba Cloud with GPUs, such as ecs.gn6i-c4g1.xlarge; None for an unknown one."""
    found = _ECI_SIZE.fullmatch(name)
    if found is None or found[1] not in _ECI:
        return None
    cores, of_one = 2 if found[3] is None else 4 * int(found[3] or 1), int(found[2])
    counted = cores // of_one if of_one and cores % of_one == 0 else 0
    gpus = _ECI_ODD.get(name, counted)
    return InstanceType(_ECI[found[1]], gpus) if 0 < gpus <= _MOST_GPUS else None


def models(label: str, value: str) -> list[str]:
    """The models of GPU that a node selector asks for; empty where it asks for no GPU or for an unknown one."""
    if label in ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"):
        known = instance(value)
        found = known.model if known else _AMAZON.get(value.partition(".")[0], "")
        return [found] if found else []
    if not re.search(r"gpu|accelerator|nvidia", label):
        return []
    words = re.split(r"[^A-Z0-9]+", value.upper())
    return [model for model in CAPABILITIES if model in words]


def requirements(image: str) -> GpuRequirements | None:
    """The needs of an image, by its name without registry and tag; None for an unknown one."""
    return next((found for pattern, found in _WANTS.items() if re.search(pattern, image)), None)
