"""The architectures whose graphs give the vectors of Keras bit by bit, as tests/stages/backbone/test_graphs.py shows.

TensorFlow reorders the sums of a graph by rules that depend on all of it, so a network of known layers is not enough.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from stages.backbone.graphs.keras_layers import settings

KNOWN = {
    "202e122add4580e2": "efficientnet-lite0",
    "a2a4388348e6e7ff": "efficientnet-lite1",
    "d55f96a804034988": "efficientnet-lite2",
    "549e09148356c09f": "mobilenetv2",
    "7207a04e658df9cd": "resnet50",
}
"""Names of backbones by the fingerprints of their architectures."""


def known_architecture(config: Mapping[str, Any]) -> bool:
    """Whether a .keras file's configuration is of one of these architectures, of any image size."""
    try:
        return fingerprint(config) in KNOWN
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # a configuration of another form
        return False


def fingerprint(config: Mapping[str, Any]) -> str:
    """The hash, 16 hex digits, of the layers, their settings and their connections."""
    _, *layers = config["config"]["layers"]
    numbers = {each["name"]: number for number, each in enumerate(config["config"]["layers"])}
    described = [
        [each["class_name"], settings(each["config"]), _numbered(each["inbound_nodes"], numbers)] for each in layers
    ]
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]


def _numbered(value: Any, numbers: Mapping[str, int]) -> Any:
    """The tensors that a layer is called with: the numbers of their layers, without their shapes."""
    if isinstance(value, Mapping):
        if value.get("class_name") == "__keras_tensor__":
            name, node, tensor = value["config"]["keras_history"]
            return [numbers[name], node, tensor]
        return {key: _numbered(each, numbers) for key, each in value.items()}
    return [_numbered(each, numbers) for each in value] if isinstance(value, list) else value
