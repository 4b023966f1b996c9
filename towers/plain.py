"""Rebuilds an image tower of KerasHub from Keras's own layers, with the same weights. Owns the record of a model to
export. Knows no files and no presets.

A file of KerasHub's layers can be loaded only where KerasHub is. These can be loaded wherever Keras is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import layers, ops
from numpy.typing import NDArray

from towers.copies import affine, attended, copied, encoded, expanded, filled, numbers


@dataclass(frozen=True)
class ModelSource:
    """A model to export. backbone, preprocessor: KerasHub's, the latter of texts, or a tokenizer as it is, None for a
    model without words. scale, offset: of pixels, numbers or one for each colour, None for none. origin: for people.
    pictures, texts: its own vectors, of pictures and of tokens."""

    backbone: Any
    preprocessor: Any
    scale: Any
    offset: Any
    origin: str
    pictures: Callable[[NDArray[np.uint8]], NDArray[np.float32]]
    texts: Callable[[NDArray[np.int32]], NDArray[np.float32]]


class UnknownTowerError(Exception):
    """The backbone has no image tower that can be rebuilt; the text says which ones have."""


def plain(source: ModelSource, name: str) -> keras.Model:
    """The image tower as a model: uint8 RGB (n, S, S, 3) -> float32 (n, d) of length 1. Raises UnknownTowerError for a
    backbone that is not of DINOv2, CLIP or SigLIP."""
    backbone = source.backbone
    build = _TOWERS.get(type(backbone).__name__)
    if build is None:
        raise UnknownTowerError(
            f"{type(backbone).__name__} is not one of the backbones whose image tower can be exported: "
            f"{', '.join(_TOWERS)}"
        )
    tower = getattr(backbone, "vision_encoder", backbone)
    pixels = keras.Input(tower.image_shape, dtype="uint8", name="pixels")
    scaled = layers.Rescaling(_listed(source.scale, 1.0), _listed(source.offset, 0.0), name="scaled")(pixels)
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
    places = numbers(embeddings.interpolated_position_embeddings)[0]
    lead = [numbers(embeddings.cls_token)[0] + places[:1]]
    if embeddings.num_register_tokens:
        lead.append(numbers(embeddings.register_tokens)[0])
    x = _placed(tokens, np.concatenate(lead), places[1:])
    for number, block in enumerate(backbone.encoder.layers):
        name = f"block{number}"
        y = copied(block.norm1, f"{name}_norm1")(x)
        y = attended(block.attention.attention, f"{name}_attention", y, y)
        x = layers.Add(name=f"{name}_sum1")([x, _scaled(y, block.layer_scale1.lambda1, f"{name}_scale1")])
        y = copied(block.norm2, f"{name}_norm2")(x)
        y = (
            _gated(block.mlp, name, y)
            if block.use_swiglu_ffn
            else expanded(block.mlp.fc1, block.mlp.fc2, name, y, "gelu")
        )
        x = layers.Add(name=f"{name}_sum2")([x, _scaled(y, block.layer_scale2.lambda1, f"{name}_scale2")])
    return _first(copied(backbone.layernorm, "norm")(x))


def _clip(backbone: Any, images: Any) -> Any:
    tower = backbone.vision_encoder
    tokens = _patches(images, tower.embedding.patch_embedding)
    places = _table(tower.embedding)
    x = _placed(tokens, numbers(tower.embedding.class_embedding)[None] + places[:1], places[1:])
    x = encoded(tower, "CLIP", copied(tower.pre_layer_norm, "norm_before")(x))
    return copied(backbone.vision_projection, "projection")(_first(copied(tower.layer_norm, "norm")(x)))


def _siglip(backbone: Any, images: Any) -> Any:
    tower = backbone.vision_encoder
    tokens = _patches(images, tower.embedding.patch_embedding)
    places = _table(tower.embedding)
    x = encoded(tower, "SigLIP", _placed(tokens, places[:0], places))
    x = copied(tower.post_layer_norm, "norm")(x)
    head = tower.head
    probe = affine(_only_first(x), np.zeros(x.shape[-1]), numbers(head.probe)[0], "probe")
    x = attended(head.attention, "head_attention", probe, x)
    y = expanded(head.mlp.fc1, head.mlp.fc2, "head", copied(head.layer_norm, "head_norm")(x), head.activation)
    return _first(layers.Add(name="head_sum")([x, y]))


_TOWERS: dict[str, Callable[[Any, Any], Any]] = {
    "DINOV2Backbone": _dinov2,
    "CLIPBackbone": _clip,
    "SigLIPBackbone": _siglip,
}


def _table(embedding: Any) -> NDArray[np.float32]:
    """The position of each token, (n, d)."""
    ids = ops.convert_to_numpy(embedding.position_ids)[0]
    table: NDArray[np.float32] = numbers(embedding.position_embedding.embeddings)[ids]
    return table


def _patches(images: Any, projection: Any) -> Any:
    """(n, S, S, 3) -> (n, tokens, d)."""
    maps = copied(projection, "patches")(images)
    return layers.Reshape((maps.shape[1] * maps.shape[2], maps.shape[3]), name="tokens")(maps)


def _placed(tokens: Any, lead: NDArray[np.float32], places: NDArray[np.float32]) -> Any:
    """The leading tokens, as they are, before those of the picture, to which their places are added."""
    if len(lead):
        tokens = layers.ZeroPadding1D((len(lead), 0), name="lead")(tokens)
    return affine(tokens, np.ones(tokens.shape[-1]), np.concatenate([lead, places]), "places")


def _scaled(x: Any, scale: Any, name: str) -> Any:
    return affine(x, numbers(scale), None, name)


def _gated(mlp: Any, name: str, x: Any) -> Any:
    kernel, bias = mlp.weights_in.get_weights()
    half = kernel.shape[1] // 2
    gate, kept = (
        filled(layers.Dense(half, name=f"{name}_{part}"), [kernel[:, chosen], bias[chosen]])(x)
        for part, chosen in (("gate", slice(None, half)), ("expand", slice(half, None)))
    )
    x = layers.Multiply(name=f"{name}_gated")([ops.silu(gate), kept])
    return copied(mlp.weights_out, f"{name}_project")(x)


def _only_first(x: Any) -> Any:
    return layers.Cropping1D((0, x.shape[1] - 1))(x)


def _first(x: Any) -> Any:
    """(n, tokens, d) -> (n, d), the first token."""
    return layers.Reshape((x.shape[-1],))(_only_first(x) if x.shape[1] > 1 else x)
