"""Whether a backbone's graph gives the vectors of Keras bit by bit, of pictures that tell any other order of sums."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stages.backbone.backbonefile import Contents
from stages.backbone.backbonespec import BackboneSpec
from stages.backbone.graphs.layers import Unfamiliar
from stages.backbone.graphs.library import LibraryError
from stages.backbone.graphs.likeness import as_keras
from stages.backbone.graphs.network import Network
from stages.backbone.passes import Forward


def agrees(contents: Contents, spec: BackboneSpec, by_keras: Forward) -> bool:
    """Whether a graph of the file that the spec describes gives, here, the bytes of its forward pass by Keras. False if
    there is no graph for it, or if the processor or the settings of this process do not compute as Keras would."""
    if not as_keras(os.environ):
        return False
    try:
        network = Network(contents, spec)
        return all(network(batch).tobytes() == by_keras(batch).tobytes() for batch in _batches(spec))
    except (Unfamiliar, LibraryError):
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
