"""Rebuilds a text tower of KerasHub from Keras's own layers, with the same weights. Knows no files and no tokenizer."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import layers, ops
from numpy.typing import NDArray

from towers.copies import affine, copied, encoded, filled, numbers
from towers.plain import UnknownTowerError


def text_network(backbone: Any, length: int, name: str) -> keras.Model:
    """The text tower as a model: tokens int32 (n, length) -> float32 (n, d) of length 1. Raises UnknownTowerError for a
    backbone that is not of CLIP or SigLIP."""
    build = _NETWORKS.get(type(backbone).__name__)
    if build is None:
        raise UnknownTowerError(
            f"{type(backbone).__name__} is not one of the backbones whose text tower can be exported: "
            f"{', '.join(_NETWORKS)}"
        )
    tokens = keras.Input((length,), dtype="int32", name="tokens")
    return keras.Model(tokens, layers.UnitNormalization(name="vector")(build(backbone, tokens)), name=name)


def original_vectors(backbone: Any, tokens: NDArray[np.int32]) -> NDArray[np.float32]:
    """The same by KerasHub's own layers."""
    given = np.asarray(backbone.get_text_embeddings(ops.convert_to_tensor(tokens)))
    found: NDArray[np.float32] = given / np.linalg.norm(given, axis=1, keepdims=True)
    return found


def _clip(backbone: Any, tokens: Any) -> Any:
    tower = backbone.text_encoder
    places = numbers(tower.embedding.position_embedding.position_embeddings)
    x = encoded(tower, "CLIP", _embedded(tower.embedding.token_embedding, places, tokens))
    x = copied(tower.layer_norm, "norm")(x)
    # The token that ends a text has the largest number, and the first of them ends it.
    end = ops.expand_dims(ops.expand_dims(ops.argmax(tokens, axis=-1), -1), -1)
    ended = layers.Reshape((x.shape[-1],), name="end")(ops.take_along_axis(x, end, axis=1))
    return copied(backbone.text_projection, "projection")(ended)


def _siglip(backbone: Any, tokens: Any) -> Any:
    tower = backbone.text_encoder
    embedding = tower.embedding
    places = numbers(embedding.position_embedding.embeddings)[ops.convert_to_numpy(embedding.position_ids)[0]]
    x = encoded(tower, "SigLIP", _embedded(embedding.token_embedding, places, tokens))
    x = layers.Cropping1D((x.shape[1] - 1, 0), name="last")(copied(tower.post_layer_norm, "norm")(x))
    return copied(tower.head, "projection")(layers.Reshape((x.shape[-1],), name="end")(x))


_NETWORKS: dict[str, Callable[[Any, Any], Any]] = {"CLIPBackbone": _clip, "SigLIPBackbone": _siglip}


def _embedded(words: Any, places: NDArray[np.float32], tokens: Any) -> Any:
    """(n, tokens) -> (n, tokens, d)."""
    table = numbers(words.embeddings)
    x = filled(layers.Embedding(*table.shape, name="words"), [table])(tokens)
    return affine(x, np.ones(x.shape[-1]), places[: x.shape[1]], "places")
