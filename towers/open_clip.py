"""A model of OpenCLIP, in a directory as they are published, as a model of KerasHub, and its own forward pass in NumPy.

The forward pass follows open_clip/transformer.py and reads the tensors of the file, so it is the source that exported
towers are compared with: PyTorch is not needed. Owns the names of OpenCLIP's settings and tensors.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras_hub
import numpy as np
from keras import ops
from numpy.typing import NDArray

from towers.plain import ModelSource, UnknownTowerError
from towers.safetensors_file import read_tensors

SETTINGS, WEIGHTS = "open_clip_config.json", "open_clip_model.safetensors"
_FILES = (SETTINGS, WEIGHTS, "vocab.json", "merges.txt")
_KNOWN = {
    "model_cfg": {"embed_dim", "vision_cfg", "text_cfg", "quick_gelu"},
    "vision_cfg": {"image_size", "layers", "width", "patch_size", "head_width", "mlp_ratio"},
    "text_cfg": {"context_length", "vocab_size", "width", "heads", "layers", "mlp_ratio"},
}
_EPSILON = 1e-5
_MEAN, _DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)  # OpenAI's

Tensors = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class OpenClipPass:
    """The forward pass of a model, by its tensors alone. scale, offset: of pixels."""

    scale: NDArray[np.float32]
    offset: NDArray[np.float32]
    tensors: Tensors
    settings: Mapping[str, Any]

    def picture_vectors(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """(n, S, S, 3) -> (n, d), of length 1."""
        t, cfg = self.tensors, self.settings["vision_cfg"]
        side, size = cfg["patch_size"], len(pictures)
        grid = pictures.shape[1] // side
        scaled = pictures.astype(np.float32) * self.scale + self.offset
        tiles = scaled.reshape(size, grid, side, grid, side, 3).transpose(0, 1, 3, 5, 2, 4).reshape(size, grid**2, -1)
        x = tiles @ t["visual.conv1.weight"].reshape(cfg["width"], -1).T
        x = np.concatenate([np.broadcast_to(t["visual.class_embedding"], (size, 1, cfg["width"])), x], axis=1)
        x = _normed(x + t["visual.positional_embedding"], t, "visual.ln_pre")
        x = self._transformed(x, "visual.transformer", cfg["layers"], cfg["width"] // cfg.get("head_width", 64), None)
        return _unit(_normed(x[:, 0], t, "visual.ln_post") @ t["visual.proj"])

    def text_vectors(self, tokens: NDArray[np.int32]) -> NDArray[np.float32]:
        """(n, tokens) -> (n, d), of length 1."""
        t, cfg = self.tensors, self.settings["text_cfg"]
        x = t["token_embedding.weight"][tokens] + t["positional_embedding"][: tokens.shape[1]]
        unseen = np.triu(np.full((tokens.shape[1],) * 2, -np.inf, np.float32), 1)
        x = _normed(self._transformed(x, "transformer", cfg["layers"], cfg["heads"], unseen), t, "ln_final")
        return _unit(x[np.arange(len(x)), tokens.argmax(axis=1)] @ t["text_projection"])

    def _transformed(self, x: Any, prefix: str, layers: int, heads: int, mask: Any) -> Any:
        for number in range(layers):
            name = f"{prefix}.resblocks.{number}"
            t = {key.removeprefix(f"{name}."): each for key, each in self.tensors.items() if key.startswith(f"{name}.")}
            y = _normed(x, t, "ln_1") @ t["attn.in_proj_weight"].T + t["attn.in_proj_bias"]
            q, k, v = (np.stack(np.split(each, heads, axis=2), axis=1) for each in np.split(y, 3, axis=2))
            weights = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
            weights = np.exp(weights - weights.max() if mask is None else weights + mask - weights.max())
            y = np.concatenate(list((weights / weights.sum(axis=-1, keepdims=True) @ v).swapaxes(0, 1)), axis=-1)
            x = x + y @ t["attn.out_proj.weight"].T + t["attn.out_proj.bias"]
            y = _normed(x, t, "ln_2") @ t["mlp.c_fc.weight"].T + t["mlp.c_fc.bias"]
            quick = self.settings.get("quick_gelu", False)
            y = y / (1 + np.exp(-1.702 * y)) if quick else y * (1 + ops.convert_to_numpy(ops.erf(y / np.sqrt(2)))) / 2
            x = x + y @ t["mlp.c_proj.weight"].T + t["mlp.c_proj.bias"]
        return x


def read_model(directory: Path) -> ModelSource:
    """Reads open_clip_config.json, open_clip_model.safetensors, vocab.json and merges.txt. Raises UnknownTowerError if
    one is missing, or the model is not a CLIP of two plain transformers."""
    missing = [name for name in _FILES if not (directory / name).is_file()]
    if missing:
        raise UnknownTowerError(
            f"{directory} lacks {', '.join(missing)}, as the published models of OpenCLIP have them"
        )
    whole = json.loads((directory / SETTINGS).read_text())
    settings, tensors = whole["model_cfg"], read_tensors(directory / WEIGHTS)
    for name, known in _KNOWN.items():
        given = settings if name == "model_cfg" else settings[name]
        if strange := sorted(set(given) - known):
            raise UnknownTowerError(f"{name} of {SETTINGS} has {', '.join(strange)}: such a model cannot be exported")
    pixels = whole.get("preprocess_cfg", {})
    mean, deviation = (
        np.asarray(pixels.get(name, usual), np.float32) for name, usual in (("mean", _MEAN), ("std", _DEVIATION))
    )
    words = keras_hub.models.CLIPTokenizer(
        str(directory / "vocab.json"), str(directory / "merges.txt"), pad_with_end_token=True
    )
    preprocessor = keras_hub.models.CLIPPreprocessor(
        words, sequence_length=settings["text_cfg"].get("context_length", 77)
    )
    scale, offset = (np.asarray(each, np.float32) for each in (1 / (255 * deviation), -mean / deviation))
    backbone, found = _backbone(settings, tensors), OpenClipPass(scale, offset, tensors, settings)
    origin = f"OpenCLIP: {directory.name}"
    return ModelSource(backbone, preprocessor, scale, offset, origin, found.picture_vectors, found.text_vectors)


def _backbone(settings: Mapping[str, Any], t: Tensors) -> Any:
    seen, said = settings["vision_cfg"], settings["text_cfg"]
    activation = "quick_gelu" if settings.get("quick_gelu") else "gelu"
    sides = (seen["image_size"], seen["image_size"], 3)
    vision = keras_hub.models.CLIPVisionEncoder(
        seen["patch_size"],
        image_shape=sides,
        **_sizes(seen, seen["width"] // seen.get("head_width", 64), activation),
    )
    text = keras_hub.models.CLIPTextEncoder(
        vocabulary_size=said["vocab_size"],
        embedding_dim=said["width"],
        max_sequence_length=said.get("context_length", 77),
        **_sizes(said, said["heads"], activation),
    )
    made = keras_hub.models.CLIPBackbone(vision, text, settings["embed_dim"])
    patches = vision.embedding
    patches.patch_embedding.set_weights([t["visual.conv1.weight"].transpose(2, 3, 1, 0)])
    patches.class_embedding.assign(t["visual.class_embedding"])
    patches.position_embedding.set_weights([t["visual.positional_embedding"]])
    patches.position_ids.assign(np.arange(len(t["visual.positional_embedding"]))[None])
    _norm(vision.pre_layer_norm, t, "visual.ln_pre")
    _blocks(vision, t, "visual.transformer", "visual.ln_post")
    text.embedding.token_embedding.embeddings.assign(t["token_embedding.weight"])
    text.embedding.position_embedding.position_embeddings.assign(t["positional_embedding"])
    _blocks(text, t, "transformer", "ln_final")
    made.vision_projection.set_weights([t["visual.proj"]])
    made.text_projection.set_weights([t["text_projection"]])
    return made


def _sizes(given: Mapping[str, Any], heads: int, activation: str) -> dict[str, Any]:
    inner = int(given["width"] * given.get("mlp_ratio", 4.0))
    sizes = {"hidden_dim": given["width"], "num_layers": given["layers"], "num_heads": heads}
    return {**sizes, "intermediate_dim": inner, "intermediate_activation": activation}


def _blocks(tower: Any, t: Tensors, prefix: str, last: str) -> None:
    for number, block in enumerate(tower.encoder_layers):
        name = f"{prefix}.resblocks.{number}"
        _norm(block.layer_norm_1, t, f"{name}.ln_1")
        _norm(block.layer_norm_2, t, f"{name}.ln_2")
        kernels, biases = (np.split(t[f"{name}.attn.in_proj_{each}"], 3) for each in ("weight", "bias"))
        out = t[f"{name}.attn.out_proj.weight"].T
        weights = [each for pair in zip([part.T for part in kernels], biases, strict=True) for each in pair]
        weights += [out, t[f"{name}.attn.out_proj.bias"]]
        shapes = [each.shape for each in block.attention.weights]
        block.attention.set_weights([each.reshape(shape) for each, shape in zip(weights, shapes, strict=True)])
        for dense, part in ((block.dense_1, "c_fc"), (block.dense_2, "c_proj")):
            dense.set_weights([t[f"{name}.mlp.{part}.weight"].T, t[f"{name}.mlp.{part}.bias"]])
    _norm(tower.layer_norm, t, last)


def _norm(layer: Any, t: Tensors, name: str) -> None:
    layer.epsilon = _EPSILON
    layer.set_weights([t[f"{name}.weight"], t[f"{name}.bias"]])


def _normed(x: Any, t: Tensors, name: str) -> Any:
    moved = x - x.mean(axis=-1, keepdims=True)
    scaled = moved / np.sqrt((moved**2).mean(axis=-1, keepdims=True) + _EPSILON)
    return scaled * t[f"{name}.weight"] + t[f"{name}.bias"]


def _unit(vectors: Any) -> NDArray[np.float32]:
    found: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return found
