"""The network of fine-tuning: a backbone and a head as one Keras model that takes pictures as the backbone does.

Knows no pictures, no labels and no training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np

_STANDARDISE = "standardise"


def joined(backbone: keras.Model, dimension: int, layers: Sequence[keras.layers.Layer]) -> keras.Model:
    """A head with the given layers on the backbone: (n, S, S, 3) pictures in, and out what the head gives for their
    (n, dimension) vectors. Layers and backbone are the given ones, with their weights, not copies.

    The head, for `take` to fill, standardises the vectors with a mean and a variance that are weights, so that another
    training's can be put in; training does not change them.
    """
    vectors = keras.Input((dimension,), name="vectors")
    x = keras.layers.BatchNormalization(epsilon=1e-12, center=False, scale=False, trainable=False, name=_STANDARDISE)(
        vectors
    )
    for layer in layers:
        x = layer(x)
    head = keras.Model(vectors, x, name="head")
    taken = backbone.inputs[0]
    pictures = keras.Input(taken.shape[1:], dtype=taken.dtype, name="pictures")
    return keras.Model(pictures, head(backbone(pictures)), name="network")


def take(network: keras.Model, trained: keras.Model) -> None:
    """Gives the head of a joined network the weights of one that `heads` has trained, with layers of the same names."""
    _, _, head = network.layers
    for layer in head.layers:
        if layer.name == _STANDARDISE:
            scale = trained.get_layer(layer.name)
            layer.set_weights([np.ravel(scale.mean), np.ravel(scale.variance)])
        elif layer.weights:
            layer.set_weights(trained.get_layer(layer.name).get_weights())


def in_training(network: keras.Model, pictures: Any) -> Any:
    """The outputs of a joined network in training, in which the backbone stays in inference mode.

    So its batch normalisation keeps the mean and variance of the pictures that it was made with: those of small batches
    are too rough, and would make the network another one in training than afterwards. Its scales and offsets are
    trained as other weights are. The two are called one by one, since Keras gives `training` to all layers of a model,
    also to one that was joined with training=False.
    """
    _, backbone, head = network.layers
    return head(backbone(pictures, training=False), training=True)


def train_last(backbone: keras.Model, number: int | None) -> tuple[int, int]:
    """Makes the last layers of a backbone trainable and all others not; None: all are. Counts layers that have weights
    to train, with those inside of nested models, since a last layer without any would train nothing.

    Returns how many are trained, and how many there are.
    """
    backbone.trainable = True
    layers = [layer for layer in _leaves(backbone.layers) if layer.trainable_weights]
    trained = layers if number is None else layers[max(0, len(layers) - number) :]
    for layer in layers:
        layer.trainable = any(layer is each for each in trained)
    return len(trained), len(layers)


def trained_numbers(network: keras.Model) -> int:
    """The count of single numbers that training changes."""
    return sum(int(weight.shape.num_elements() or 0) for weight in (each.value for each in network.trainable_weights))


def computes_in_half(network: keras.Model) -> bool:
    """Whether some layer computes in float16, whose small gradients vanish unless the loss is scaled up."""
    return any(layer.compute_dtype == "float16" for layer in _leaves(network.layers))


def _leaves(layers: Sequence[keras.layers.Layer]) -> Iterator[keras.layers.Layer]:
    for layer in layers:
        if isinstance(layer, keras.Model):
            yield from _leaves(layer.layers)
        else:
            yield layer
