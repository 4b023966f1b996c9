"""Rebuilds an image tower of KerasHub from Keras's own layers, with the same weights. Knows no files and no presets.

A file of KerasHub's layers can be loaded only where KerasHub is. These can be loaded wherever Keras is.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import layers, ops
from numpy.typing import NDArray


class UnknownTowerError(Exception):
    """The backbone has no image tower that can be rebuilt; the text says which ones have."""


def plain(backbone: Any, scale: Any, offset: Any, name: str) -> keras.Model:
    """The image tower as a model: uint8 RGB (n, S, S, 3) -> float32 (n, d) of length 1.

    scale, offset: of the preset's image converter, numbers or one for each colour, None for none. Raises
    UnknownTowerError for a backbone that is not of DINOv2, CLIP or SigLIP.
    """
    build = _TOWERS.get(type(backbone).__name__)
    if build is None:
        raise UnknownTowerError(
            f"{type(backbone).__name__} is not one of the backbones whose image tower can be exported: "
            f"{', '.join(_TOWERS)}"
        )
    tower = getattr(backbone, "vision_encoder", backbone)
    pixels = keras.Input(tower.image_shape, dtype="uint8", name="pixels")
    scaled = layers.Rescaling(_listed(scale, 1.0), _listed(offset, 0.0), name="scaled")(pixels)
    vector = layers.UnitNormalization(name="vector")(build(backbone, scaled))
    return keras.Model(pixels, vector, name=name)


def original(backbone: Any, scale: Any, offset: Any) -> Callable[[NDArray[np.uint8]], NDArray[np.float32]]:
    """The same by KerasHub's own layers."""

    def vectors(pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        images = pictures.astype(np.float32) * np.float32(_listed(scale, 1.0)) + np.float32(_listed(offset, 0.0))
        if hasattr(backbone, "get_vision_embeddings"):
            given = np.asarray(backbone.get_vision_embeddings(ops.convert_to_tensor(images)))
        else:
            given = np.asarray(backbone(images, training=False))[:, 0]
        found: NDArray[np.float32] = given / np.linalg.norm(given, axis=1, keepdims=True)
        return found

    return vectors


def _listed(value: Any, otherwise: float) -> Any:
    if value is None:
        return otherwise
    return np.asarray(value, np.float64).tolist()


def _dinov2(backbone: Any, images: Any) -> Any:
    embeddings = backbone.embeddings
    tokens = _patches(images, embeddings.patch_embeddings.projection)
    places = _numbers(embeddings.interpolated_position_embeddings)[0]
    lead = [_numbers(embeddings.cls_token)[0] + places[:1]]
    if embeddings.num_register_tokens:
        lead.append(_numbers(embeddings.register_tokens)[0])
    x = _placed(tokens, np.concatenate(lead), places[1:])
    for number, block in enumerate(backbone.encoder.layers):
        name = f"block{number}"
        y = _copied(block.norm1, f"{name}_norm1")(x)
        y = _attended(block.attention.attention, f"{name}_attention", y, y)
        x = layers.Add(name=f"{name}_sum1")([x, _scaled(y, block.layer_scale1.lambda1, f"{name}_scale1")])
        y = _copied(block.norm2, f"{name}_norm2")(x)
        y = (
            _gated(block.mlp, name, y)
            if block.use_swiglu_ffn
            else _expanded(block.mlp.fc1, block.mlp.fc2, name, y, "gelu")
        )
        x = layers.Add(name=f"{name}_sum2")([x, _scaled(y, block.layer_scale2.lambda1, f"{name}_scale2")])
    return _first(_copied(backbone.layernorm, "norm")(x))


def _clip(backbone: Any, images: Any) -> Any:
    tower = backbone.vision_encoder
    tokens = _patches(images, tower.embedding.patch_embedding)
    places = _table(tower.embedding)
    x = _placed(tokens, _numbers(tower.embedding.class_embedding)[None] + places[:1], places[1:])
    x = _copied(tower.pre_layer_norm, "norm_before")(x)
    for number, block in enumerate(tower.encoder_layers):
        name = f"block{number}"
        y = _copied(block.layer_norm_1, f"{name}_norm1")(x)
        x = layers.Add(name=f"{name}_sum1")([x, _attended(block.attention, f"{name}_attention", y, y)])
        y = _copied(block.layer_norm_2, f"{name}_norm2")(x)
        y = _expanded(block.dense_1, block.dense_2, name, y, block.intermediate_activation)
        x = layers.Add(name=f"{name}_sum2")([x, y])
    return _copied(backbone.vision_projection, "projection")(_first(_copied(tower.layer_norm, "norm")(x)))


def _siglip(backbone: Any, images: Any) -> Any:
    tower = backbone.vision_encoder
    tokens = _patches(images, tower.embedding.patch_embedding)
    places = _table(tower.embedding)
    x = _placed(tokens, places[:0], places)
    for number, block in enumerate(tower.encoder_layers):
        name = f"block{number}"
        y = _copied(block.layer_norm1, f"{name}_norm1")(x)
        x = layers.Add(name=f"{name}_sum1")([x, _attended(block.self_attn, f"{name}_attention", y, y)])
        y = _copied(block.layer_norm2, f"{name}_norm2")(x)
        y = _expanded(block.mlp.fc1, block.mlp.fc2, name, y, block.intermediate_activation)
        x = layers.Add(name=f"{name}_sum2")([x, y])
    x = _copied(tower.post_layer_norm, "norm")(x)
    head = tower.head
    probe = _affine(_only_first(x), np.zeros(x.shape[-1]), _numbers(head.probe)[0], "probe")
    x = _attended(head.attention, "head_attention", probe, x)
    y = _expanded(head.mlp.fc1, head.mlp.fc2, "head", _copied(head.layer_norm, "head_norm")(x), head.activation)
    return _first(layers.Add(name="head_sum")([x, y]))


_TOWERS: dict[str, Callable[[Any, Any], Any]] = {
    "DINOV2Backbone": _dinov2,
    "CLIPBackbone": _clip,
    "SigLIPBackbone": _siglip,
}


def _numbers(variable: Any) -> NDArray[np.float32]:
    return np.asarray(ops.convert_to_numpy(variable), np.float32)


def _table(embedding: Any) -> NDArray[np.float32]:
    """The position of each token, (n, d)."""
    ids = ops.convert_to_numpy(embedding.position_ids)[0]
    table: NDArray[np.float32] = _numbers(embedding.position_embedding.embeddings)[ids]
    return table


def _filled(layer: Any, weights: Sequence[Any]) -> Callable[..., Any]:
    """The layer as a function that gives it these weights once it is built."""

    def call(*inputs: Any) -> Any:
        given = layer(*inputs)
        layer.set_weights(weights)
        return given

    return call


def _copied(layer: Any, name: str) -> Callable[..., Any]:
    """The same layer, one of Keras's own, by another name."""
    return _filled(type(layer).from_config({**layer.get_config(), "name": name}), layer.get_weights())


def _patches(images: Any, projection: Any) -> Any:
    """(n, S, S, 3) -> (n, tokens, d)."""
    maps = _copied(projection, "patches")(images)
    return layers.Reshape((maps.shape[1] * maps.shape[2], maps.shape[3]), name="tokens")(maps)


def _placed(tokens: Any, lead: NDArray[np.float32], places: NDArray[np.float32]) -> Any:
    """The leading tokens, as they are, before those of the picture, to which their places are added."""
    if len(lead):
        tokens = layers.ZeroPadding1D((len(lead), 0), name="lead")(tokens)
    return _affine(tokens, np.ones(tokens.shape[-1]), np.concatenate([lead, places]), "places")


def _affine(x: Any, scale: NDArray[Any], offset: NDArray[Any] | None, name: str) -> Any:
    """x (n, tokens, d) times scale (d,) plus offset (tokens, d)."""
    layer = layers.EinsumDense("btd,d->btd", tuple(x.shape[1:]), bias_axes=None if offset is None else "td", name=name)
    return _filled(layer, [scale] if offset is None else [scale, offset])(x)


def _scaled(x: Any, scale: Any, name: str) -> Any:
    return _affine(x, _numbers(scale), None, name)


def _attended(attention: Any, name: str, query: Any, value: Any) -> Any:
    return _copied(attention, name)(query, value, value)


def _expanded(first: Any, second: Any, name: str, x: Any, activation: str) -> Any:
    x = _filled(layers.Dense(first.units, name=f"{name}_expand"), first.get_weights())(x)
    x = _ACTIVATIONS[activation](x)
    return _filled(layers.Dense(second.units, name=f"{name}_project"), second.get_weights())(x)


def _gated(mlp: Any, name: str, x: Any) -> Any:
    kernel, bias = mlp.weights_in.get_weights()
    half = kernel.shape[1] // 2
    gate, kept = (
        _filled(layers.Dense(half, name=f"{name}_{part}"), [kernel[:, chosen], bias[chosen]])(x)
        for part, chosen in (("gate", slice(None, half)), ("expand", slice(half, None)))
    )
    x = layers.Multiply(name=f"{name}_gated")([ops.silu(gate), kept])
    return _copied(mlp.weights_out, f"{name}_project")(x)


_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "gelu": lambda x: ops.gelu(x, approximate=False),
    "gelu_approximate": lambda x: ops.gelu(x, approximate=True),
    "quick_gelu": lambda x: layers.Multiply()([x, ops.sigmoid(ops.multiply(x, 1.702))]),
}


def _only_first(x: Any) -> Any:
    return layers.Cropping1D((0, x.shape[1] - 1))(x)


def _first(x: Any) -> Any:
    """(n, tokens, d) -> (n, d), the first token."""
    return layers.Reshape((x.shape[-1],))(_only_first(x) if x.shape[1] > 1 else x)
