"""The origin of vectors: the model and the pictures that they were computed from, and its form in files. Knows no
vectors and no files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

TENSORFLOW = "tensorflow"
"""The backend of Keras that computes vectors unless another one is chosen."""

BACKENDS = {TENSORFLOW: "TensorFlow", "jax": "JAX", "torch": "PyTorch"}
"""The backends of Keras that can compute vectors, and their names for people."""


@dataclass(frozen=True)
class Origin:
    """What vectors come from.

    model: identity hash of the backbone. fit: how the pictures fill their squares, one of stages.record.framing.FITS.
    image_size: side of the normalised pictures in pixels. dimension: length of one vector. backbone: its name and size,
    for people; equal models may have several. devices: the kinds that computed the vectors
    (stages.backbone.devices.kind), sorted. backend: one of BACKENDS, whose sums differ in their order and so vectors in
    their last digits; files state only one that is not TensorFlow. Fields that a file does not state have their
    defaults.
    """

    model: str
    fit: str
    image_size: int = 0
    dimension: int = 0
    backbone: str = ""
    devices: tuple[str, ...] = ()
    backend: str = TENSORFLOW

    @classmethod
    def parse(cls, stated: Mapping[str, Any], names: Iterable[str]) -> Origin:
        """The fields with these names, out of JSON values or the texts of a file's metadata. Raises KeyError,
        ValueError or TypeError if one is missing or is not valid."""
        backend = str(stated.get("backend", TENSORFLOW))
        return cls(**{name: _READERS[name](stated[name]) for name in names}, backend=backend)

    def as_data(self) -> dict[str, Any]:
        """All fields as JSON values."""
        data = asdict(self)
        if self.backend == TENSORFLOW:
            del data["backend"]
        return data

    def metadata(self, names: Iterable[str]) -> dict[str, str]:
        """The fields with these names as texts, for the metadata of a file."""
        values = {name: value for name, value in self.as_data().items() if name in {*names, "backend"}}
        return {name: json.dumps(value) if name == "devices" else str(value) for name, value in values.items()}

    @property
    def named(self) -> str:
        """The model, for people."""
        on = "" if self.backend == TENSORFLOW else f" on {BACKENDS.get(self.backend, self.backend)}"
        return f"{self.backbone} {self.model}{on}".strip()

    @property
    def described(self) -> str:
        """The origin, for people."""
        return f"{self.named} (IMAGE_SIZE={self.image_size}, FIT={self.fit}, {self.dimension} dimensions)"

    @property
    def computed_by(self) -> tuple[str, str]:
        """What has to be the same for vectors of one picture to be the same: the model and the backend."""
        return self.model, self.backend

    def comparable(self, other: Origin) -> bool:
        """Whether vectors have everything in common that makes their distances mean something: all but the devices and
        the name."""
        return replace(self, backbone="", devices=()) == replace(other, backbone="", devices=())

    def mismatch(self, other: Origin, mine: str, theirs: str) -> str:
        """Why distances between two sets of vectors would mean nothing, in a sentence; "" if they mean something. mine,
        theirs: the sets in words."""
        if self.comparable(other):
            return ""
        if replace(self, backend=other.backend).comparable(other):
            first, second = (BACKENDS.get(each.backend, each.backend) for each in (self, other))
            return (
                f"{mine} was computed on {first}, {theirs} on {second}: equal pictures would have different vectors. "
                "Set one KERAS_BACKEND for features and features-queries."
            )
        return (
            f"{mine} was computed with the model {self.described}, {theirs} with {other.described}: their distances "
            "would be meaningless."
        )

    def with_devices(self, others: Iterable[Origin]) -> Origin:
        """The same origin with the devices of others too."""
        devices = {*self.devices, *(device for each in others for device in each.devices)}
        return replace(self, devices=tuple(sorted(devices)))


def _devices(stated: Any) -> tuple[str, ...]:
    return tuple(map(str, json.loads(stated) if isinstance(stated, str) else stated))


_READERS: dict[str, Callable[[Any], Any]] = {
    "model": str,
    "fit": str,
    "image_size": int,
    "dimension": int,
    "backbone": str,
    "devices": _devices,
}

ALL = tuple(_READERS)
"""The names of all fields."""

COMPARED = tuple(name for name in ALL if name != "devices")
"""Those of what only compares vectors."""
