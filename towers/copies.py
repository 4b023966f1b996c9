"""Layers and blocks of KerasHub as layers of Keras's own with the same weights, by name. Knows no towers."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from keras import layers, ops
from numpy.typing import NDArray

BLOCK_LAYERS = {
    "CLIP": attrgetter("layer_norm_1", "attention", "layer_norm_2", "dense_1", "dense_2"),
    "SigLIP": attrgetter("layer_norm1", "self_attn", "layer_norm2", "mlp.fc1", "mlp.fc2"),
}
"""The layers of a block of each family, by KerasHub's names: the first normalisation, the attention, the second
normalisation, and the two dense layers."""


def numbers(variable: Any) -> NDArray[np.float32]:
    return np.asarray(ops.convert_to_numpy(variable), np.float32)


def filled(layer: Any, weights: Sequence[Any]) -> Callable[..., Any]:
    """The layer as a function that gives it these weights once it is built."""

    def call(*inputs: Any, **settings: Any) -> Any:
        given = layer(*inputs, **settings)
        layer.set_weights(weights)
        return given

    return call


def copied(layer: Any, name: str) -> Callable[..., Any]:
    """The same layer, one of Keras's own, by another name."""
    return filled(type(layer).from_config({**layer.get_config(), "name": name}), layer.get_weights())


def affine(x: Any, scale: NDArray[Any], offset: NDArray[Any] | None, name: str) -> Any:
    """x (n, tokens, d) times scale (d,) plus offset (tokens, d)."""
    layer = layers.EinsumDense("btd,d->btd", tuple(x.shape[1:]), bias_axes=None if offset is None else "td", name=name)
    return filled(layer, [scale] if offset is None else [scale, offset])(x)


def attended(attention: Any, name: str, query: Any, value: Any, causal: bool = False) -> Any:
    """causal: whether a token sees only those before it."""
    return copied(attention, name)(query, value, value, **({"use_causal_mask": True} if causal else {}))


def expanded(first: Any, second: Any, name: str, x: Any, activation: str) -> Any:
    x = filled(layers.Dense(first.units, name=f"{name}_expand"), first.get_weights())(x)
    x = _ACTIVATIONS[activation](x)
    return filled(layers.Dense(second.units, name=f"{name}_project"), second.get_weights())(x)


def encoded(tower: Any, family: str, x: Any) -> Any:
    """x (n, tokens, d) after all blocks of a tower of CLIP or SigLIP."""
    for number, block in enumerate(tower.encoder_layers):
        name = f"block{number}"
        before, attention, between, first, second = BLOCK_LAYERS[family](block)
        y = copied(before, f"{name}_norm1")(x)
        y = attended(attention, f"{name}_attention", y, y, block.use_causal_mask)
        x = layers.Add(name=f"{name}_sum1")([x, y])
        y = copied(between, f"{name}_norm2")(x)
        y = expanded(first, second, name, y, block.intermediate_activation)
        x = layers.Add(name=f"{name}_sum2")([x, y])
    return x


_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "gelu": lambda x: ops.gelu(x, approximate=False),
    "gelu_approximate": lambda x: ops.gelu(x, approximate=True),
    "quick_gelu": lambda x: layers.Multiply()([x, ops.sigmoid(ops.multiply(x, 1.702))]),
}
