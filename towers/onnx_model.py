"""A CLIP or SigLIP in ONNX files, in a directory as Optimum and transformers.js publish them, as a model of KerasHub.

The vectors that exported towers are compared with are those of the files themselves, by ONNX Runtime. Owns the names of
modules and settings of Hugging Face's classes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from math import isqrt
from operator import attrgetter
from pathlib import Path
from typing import Any

import keras_hub
import numpy as np
import onnxruntime
from keras import layers
from numpy.typing import NDArray
from tokenizers import Tokenizer

from towers.copies import BLOCK_LAYERS
from towers.onnx_graph import OnnxGraph
from towers.plain import ModelSource, UnknownTowerError

_FILES = ("config.json", "preprocessor_config.json", "tokenizer_config.json", "tokenizer.json")
_ACTIVATIONS = {"gelu": "gelu", "quick_gelu": "quick_gelu", "gelu_pytorch_tanh": "gelu_approximate"}
_NAMES = {"clip": "CLIP", "siglip": "SigLIP"}  # of KerasHub
_USUAL = {  # what Hugging Face's settings leave out, as the 64 dimensions of each head
    "CLIP": {"hidden_act": "quick_gelu", "layer_norm_eps": 1e-5},
    "SigLIP": {"hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6},
}
_OUTPUTS = {  # of texts, of pictures
    "CLIP": (("text_embeds",), ("image_embeds",)),
    "SigLIP": (("text_embeds", "pooler_output"), ("image_embeds", "pooler_output")),
}
_TEXT, _VISION = "/text_model", "/vision_model"
_LAYERS = {  # the scopes of both, by KerasHub's names
    "text_encoder.embedding.token_embedding": f"{_TEXT}/embeddings/token_embedding",
    "text_encoder.embedding.position_embedding": f"{_TEXT}/embeddings/position_embedding",
    "vision_encoder.embedding.position_embedding": f"{_VISION}/embeddings/position_embedding",
    "vision_encoder.embedding.patch_embedding": f"{_VISION}/embeddings/patch_embedding",
}
_OTHER_LAYERS = {
    "CLIP": {
        "vision_encoder.pre_layer_norm": f"{_VISION}/pre_layrnorm",  # so spelled
        "vision_encoder.layer_norm": f"{_VISION}/post_layernorm",
        "text_encoder.layer_norm": f"{_TEXT}/final_layer_norm",
        "vision_projection": "/visual_projection",
        "text_projection": "/text_projection",
    },
    "SigLIP": {
        "vision_encoder.post_layer_norm": f"{_VISION}/post_layernorm",
        "vision_encoder.head.attention": f"{_VISION}/head/attention",
        "vision_encoder.head.layer_norm": f"{_VISION}/head/layernorm",
        "vision_encoder.head.mlp.fc1": f"{_VISION}/head/mlp/fc1",
        "vision_encoder.head.mlp.fc2": f"{_VISION}/head/mlp/fc2",
        "text_encoder.post_layer_norm": f"{_TEXT}/final_layer_norm",
        "text_encoder.head": f"{_TEXT}/head",
    },
}
_BLOCK = ("layer_norm1", "self_attn", "layer_norm2", "mlp/fc1", "mlp/fc2")  # as in BLOCK_LAYERS


@dataclass(frozen=True)
class OnnxPass:
    """The forward pass of a model, by its ONNX files. scale, offset: of pixels. files, outputs: of texts and of
    pictures. length, side: tokens of a text, and pixels of a side."""

    scale: NDArray[np.float32]
    offset: NDArray[np.float32]
    files: tuple[Path, Path]
    outputs: tuple[tuple[str, ...], tuple[str, ...]]
    length: int
    side: int

    def picture_vectors(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """(n, S, S, 3) -> (n, d), of length 1."""
        scaled = (pictures.astype(np.float32) * self.scale + self.offset).transpose(0, 3, 1, 2)
        return self._vectors(1, "pixel_values", scaled)

    def text_vectors(self, tokens: NDArray[np.int32]) -> NDArray[np.float32]:
        """(n, tokens) -> (n, d), of length 1."""
        return self._vectors(0, "input_ids", tokens.astype(np.int64))

    def _vectors(self, kind: int, name: str, rows: NDArray[Any]) -> NDArray[np.float32]:
        given = {
            "input_ids": np.zeros((1, self.length), np.int64),
            # What follows the end of a text is not seen from there.
            "attention_mask": np.ones((1, self.length), np.int64),
            "pixel_values": np.zeros((1, 3, self.side, self.side), np.float32),
        }
        path, outputs = self.files[kind], self.outputs[kind]
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # errors, and no advice on weights that are not used
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        asked, had = ([each.name for each in ends] for ends in (session.get_inputs(), session.get_outputs()))
        chosen = [each for each in outputs if each in had][:1]
        if not chosen or name not in asked or not given.keys() >= set(asked):
            raise UnknownTowerError(
                f"{path.name} takes {', '.join(asked)} and gives {', '.join(had)}; it should take {name} and give "
                f"{' or '.join(outputs)}"
            )
        found = [session.run(chosen, {each: {**given, name: row[None]}[each] for each in asked})[0] for row in rows]
        vectors = np.concatenate(found)
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


def has_onnx(directory: Path) -> bool:
    return any(any(each.glob("*.onnx")) for each in (directory, directory / "onnx"))


def read_onnx(directory: Path) -> ModelSource:
    """Reads text_model.onnx and vision_model.onnx, or model.onnx, with the files of settings and the tokenizer. Raises
    UnknownTowerError if one is missing, or the model is not a CLIP or SigLIP of float32 as they are published."""
    if missing := [name for name in _FILES if not (directory / name).is_file()]:
        raise UnknownTowerError(f"{directory} lacks {', '.join(missing)}, as published ONNX models have them")
    config, pixels, words = (json.loads((directory / name).read_text("utf-8")) for name in _FILES[:3])
    if config.get("model_type") not in _NAMES:
        raise UnknownTowerError(f"{directory} has a model of the type {config.get('model_type')}, not clip or siglip")
    name = _NAMES[config["model_type"]]
    settings = [{**_USUAL[name], **config.get(each, {})} for each in ("text_config", "vision_config")]
    files = _graph_files(directory)
    graphs = {file: OnnxGraph(file) for file in files}
    backbone = _backbone(name, settings, [graphs[file] for file in files])
    tokenizer = _tokenizer(directory, words, backbone.text_encoder, name == "CLIP")
    factor = pixels.get("rescale_factor", 1 / 255) if pixels.get("do_rescale", True) else 1.0
    unchanged = {} if pixels.get("do_normalize", True) else {"image_mean": [0.0] * 3, "image_std": [1.0] * 3}
    mean, deviation = (
        np.asarray({**pixels, **unchanged}.get(each), np.float64) for each in ("image_mean", "image_std")
    )
    if mean.shape != (3,) or deviation.shape != (3,):
        raise UnknownTowerError("preprocessor_config.json lacks image_mean or image_std, one number for each colour")
    scale, offset = ((factor / deviation).astype(np.float32), (-mean / deviation).astype(np.float32))
    length, side = backbone.text_encoder.max_sequence_length, backbone.vision_encoder.image_shape[0]
    by_files = OnnxPass(scale, offset, files, _OUTPUTS[name], length, side)
    origin = f"ONNX: {directory.name}"
    return ModelSource(backbone, tokenizer, scale, offset, origin, by_files.picture_vectors, by_files.text_vectors)


def _graph_files(directory: Path) -> tuple[Path, Path]:
    """The files of the texts' and of the pictures' graph."""
    for place in (directory / "onnx", directory):
        for text, vision in (("text_model.onnx", "vision_model.onnx"), ("model.onnx", "model.onnx")):
            if (place / text).is_file() and (place / vision).is_file():
                return place / text, place / vision
    raise UnknownTowerError(
        f"{directory} has neither text_model.onnx with vision_model.onnx nor model.onnx, there or in onnx/, in which "
        "published models have weights of float32"
    )


def _tokenizer(directory: Path, settings: Mapping[str, Any], text: Any, last: bool) -> Tokenizer:
    """The tokenizer as it is, cut or padded to the length of the network. last: whether the token that ends a text must
    have the largest number. Raises UnknownTowerError if it does not belong to the network."""
    try:
        made = Tokenizer.from_file(str(directory / "tokenizer.json"))
        made.no_padding()
        end = (made.encode("a").ids or [-1])[-1]
    except BaseException as error:  # the package panics with an exception that is not an Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise UnknownTowerError(f"tokenizer.json cannot be read: {error}") from error
    known, length = max(made.get_vocab(with_added_tokens=True).values(), default=-1) + 1, text.max_sequence_length
    if known > text.vocabulary_size:
        raise UnknownTowerError(f"tokenizer.json knows {known:,} tokens, the network {text.vocabulary_size:,}")
    if last and end != known - 1:
        raise UnknownTowerError(
            f"tokenizer.json ends a text with {made.id_to_token(end)!r}, not with its last token, by which towers of "
            "CLIP find the end"
        )
    padding = settings.get("pad_token")
    padding = padding["content"] if isinstance(padding, dict) else str(padding)
    if made.token_to_id(padding) is None:
        raise UnknownTowerError(f"tokenizer_config.json has the pad_token {padding!r}, which tokenizer.json lacks")
    made.enable_truncation(length)
    made.enable_padding(length=length, pad_id=made.token_to_id(padding), pad_token=padding)
    return made


def _backbone(name: str, settings: Sequence[Mapping[str, Any]], graphs: Sequence[OnnxGraph]) -> Any:
    """KerasHub's model, of the sizes and with the weights of the graphs. settings, graphs: of texts, of pictures."""
    said, seen = graphs
    scopes = {**_LAYERS, **_OTHER_LAYERS[name]}
    words, places, spots = map(OnnxGraph.table, (said, said, seen), _LAYERS.values())  # the first three
    patch = len(seen.convolution(scopes["vision_encoder.embedding.patch_embedding"])[0])
    side, dimension = patch * isqrt(len(spots)), said.linear([*scopes.values()][-1])[1].size  # a class has a place, too
    blocks = [f"{each}/encoder/layers" for each in (_TEXT, _VISION)]
    sizes = [_sizes(*each) for each in zip(graphs, blocks, settings, strict=True)]
    size, last = ({"projection_dim": dimension}, {}) if name == "SigLIP" else ({}, {"projection_dim": dimension})
    text = getattr(keras_hub.models, f"{name}TextEncoder")(
        len(words), words.shape[1], max_sequence_length=len(places), **sizes[0], **size
    )
    vision = getattr(keras_hub.models, f"{name}VisionEncoder")(patch, image_shape=(side, side, 3), **sizes[1])
    made = getattr(keras_hub.models, f"{name}Backbone")(vision, text, **last)
    epsilons = [each["layer_norm_eps"] for each in settings]
    for layer, scope in scopes.items():
        kind = int(layer.startswith("vision"))
        _fill(attrgetter(layer)(made), graphs[kind], scope, epsilons[kind])
    for kind, encoder in enumerate((text, vision)):
        for number, block in enumerate(encoder.encoder_layers):
            for layer, part in zip(BLOCK_LAYERS[name](block), _BLOCK, strict=True):
                _fill(layer, graphs[kind], f"{blocks[kind]}.{number}/{part}", epsilons[kind])
    if name == "CLIP":
        vision.embedding.class_embedding.assign(seen.constant("vision_model.embeddings.class_embedding"))
        vision.embedding.position_ids.assign(np.arange(len(spots))[None])
    else:
        vision.head.probe.assign(seen.constant("vision_model.head.probe"))
    return made


def _sizes(graph: OnnxGraph, blocks: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    width, inner = graph.linear(f"{blocks}.0/mlp/fc1")[0].shape
    if settings["hidden_act"] not in _ACTIVATIONS:
        raise UnknownTowerError(
            f"the activation {settings['hidden_act']} cannot be exported: {', '.join(_ACTIVATIONS)} can"
        )
    return {
        "hidden_dim": width,
        "num_layers": sum(1 for _ in takewhile(lambda at: graph.has(f"{blocks}.{at}/mlp/fc1"), count())),
        "num_heads": settings.get("num_attention_heads", width // 64),
        "intermediate_dim": inner,
        "intermediate_activation": _ACTIVATIONS[settings["hidden_act"]],
    }


def _fill(layer: Any, graph: OnnxGraph, scope: str, epsilon: float) -> None:
    if isinstance(layer, layers.LayerNormalization):
        layer.epsilon = epsilon
        given = graph.norm(scope)
    elif isinstance(layer, layers.MultiHeadAttention):
        given = _attention(graph, scope)
    elif isinstance(layer, layers.Dense):
        given = graph.linear(scope)[: len(layer.weights)]
    elif isinstance(layer, layers.Conv2D):
        given = graph.convolution(scope)
    else:
        given = [graph.table(scope)]
    layer.set_weights([np.reshape(each, old.shape) for each, old in zip(given, layer.weights, strict=True)])


def _attention(graph: OnnxGraph, scope: str) -> list[Any]:
    """The kernel and the bias of queries, keys, values and the output, in scopes of their own or packed in one."""
    if graph.has(f"{scope}/q_proj"):
        return [each for part in ("q", "k", "v", "out") for each in graph.linear(f"{scope}/{part}_proj")]
    *packed, out = graph.linears(scope)
    kernels, biases = (np.split(np.concatenate(each, axis=-1), 3, axis=-1) for each in zip(*packed, strict=True))
    return [*(each for both in zip(kernels, biases, strict=True) for each in both), *out]
