"""Whether a backbone's graph gives the vectors of Keras bit by bit, of pictures that tell any other order of sums."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stages.backbone.backbone_file import ModelContents
from stages.backbone.backbone_spec import BackboneSpec
from stages.backbone.forward_passes import ForwardPass
from stages.backbone.graphs.graph_network import GraphNetwork
from stages.backbone.graphs.keras_layers import UnfamiliarLayerError
from stages.backbone.graphs.keras_parity import matches_keras
from stages.backbone.graphs.tensorflow_library import LibraryError


def agrees(contents: ModelContents, spec: BackboneSpec, by_keras: ForwardPass) -> bool:
    """Whether a graph of the file that the spec describes gives, here, the bytes of its forward pass by Keras. False if
    there is no graph for it, or if the processor or the settings of this process do not compute as Keras would."""
    if not matches_keras(os.environ):
        return False
    try:
        network = GraphNetwork(contents, spec)
        return all(network(batch).tobytes() == by_keras(batch).tobytes() for batch in _batches(spec))
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
