"""The forward pass of a backbone from its file: a graph that TensorFlow's library runs, or else Keras, with the same
vectors bit by bit.

A graph starts in a third of the time. There are graphs for some architectures, and for models whose description says
that theirs gave the same vectors when they were pushed, on the processor; Keras runs all, and on GPUs. Since the file
and the description alone decide, all that read a backbone compute it in the same way. Knows no layers.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.backbone import keras_import
from stages.backbone.backbone_file import ModelContents, check, read
from stages.backbone.backbone_spec import BackboneSpec
from stages.backbone.embedder import Embedder, passes_at_once, threads_of_each
from stages.backbone.forward_passes import ForwardPass
from stages.backbone.gpu_memory import NO_GPU, gpu_memory
from stages.backbone.graphs.graph_network import GraphNetwork
from stages.backbone.graphs.keras_layers import UnfamiliarLayerError, settings
from stages.backbone.graphs.keras_parity import matches_keras
from stages.backbone.graphs.tensorflow_library import LibraryError
from stages.datum.contract import load

KNOWN = {
    "202e122add4580e2": "efficientnet-lite0",
    "a2a4388348e6e7ff": "efficientnet-lite1",
    "d55f96a804034988": "efficientnet-lite2",
    "549e09148356c09f": "mobilenetv2",
    "7207a04e658df9cd": "resnet50",
}
"""Names of backbones by the fingerprints of the architectures whose graphs give the vectors of Keras bit by bit, as
tests/stages/backbone/test_graphs.py shows. TensorFlow reorders the sums of a graph by rules that depend on all of it,
so a network of known layers is not enough."""


def embedder(file: Path, spec: BackboneSpec, environment: Mapping[str, str], many: bool = False) -> Embedder:
    """The embedder of the backbone that the spec describes, from a seekable .keras file. Prints a line on its device.

    environment: the stage's, with the settings of GPU memory. many: whether many batches follow one another. Then the
    cores compute several at once, which takes less time in all; a single one takes more. Raises StageError if the file
    is damaged, holds another model or cannot be loaded, or if a setting is wrong.
    """
    at_once = passes_at_once() if many else 1
    graph = None
    if matches_keras(os.environ):
        graph = network(read(file, spec), spec, threads=threads_of_each() if many else 0)
    else:
        check(file, spec)
    if graph is None:
        with keras_import.quiet():
            backbones = load("stages.backbone.backbones")
        loaded: Embedder = backbones.embedder(file, spec, environment, at_once)
        return loaded
    gpu_memory(environment)
    print(NO_GPU)
    return Embedder(graph, spec, at_once, small=graph.few, ahead=many)


def network(contents: ModelContents, spec: BackboneSpec, threads: int = 0) -> GraphNetwork | None:
    """The graph of the file of the backbone that the spec describes; None if nothing says that its vectors are those of
    Keras, or if that is not possible here. threads: as in Session."""
    if not (spec.graph or known_architecture(contents.config)):
        return None
    try:
        with keras_import.quiet():
            return GraphNetwork(contents, spec, threads)
    except (UnfamiliarLayerError, LibraryError):
        return None


def agrees(contents: ModelContents, spec: BackboneSpec, by_keras: ForwardPass) -> bool:
    """Whether a graph of the file that the spec describes gives, here, the bytes of its forward pass by Keras,
    of pictures that tell any other order of sums. False if
    there is no graph for it, or if the processor or the settings of this process do not compute as Keras would."""
    if not matches_keras(os.environ):
        return False
    try:
        graph = GraphNetwork(contents, spec)
        return all(graph(batch).tobytes() == by_keras(batch).tobytes() for batch in _batches(spec))
    except (UnfamiliarLayerError, LibraryError):
        return False


def noise(spec: BackboneSpec) -> NDArray[np.uint8]:
    """A batch of different pictures, always the same, in which every pixel counts."""
    return np.random.default_rng(0).integers(0, 256, (spec.batch, spec.image_size, spec.image_size, 3), np.uint8)


def _batches(spec: BackboneSpec) -> Iterator[NDArray[np.uint8]]:
    """Noise; the extremes of colours, at which activations are cut; and black."""
    pictures = noise(spec)
    yield pictures
    yield np.where(pictures < 128, 0, 255).astype(np.uint8)
    yield np.zeros_like(pictures)


def known_architecture(config: Mapping[str, Any]) -> bool:
    """Whether a .keras file's configuration is of a known architecture, of any image size."""
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
