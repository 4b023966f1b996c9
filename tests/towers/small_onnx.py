"""Exports small CLIPs and SigLIPs in the layout of published ONNX files, and has bad ones refused: `small_onnx.py DIR`.
Runs in the environment of towers/requirements.lock."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras_hub
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from tests.towers.onnx_layout import clip_tokenizer, save_model
from tests.towers.small import clip_tokenizer as hub_tokenizer, siglip_tokenizer
from towers.export import NotEqualError, export_preset
from towers.plain import UnknownTowerError
from towers.tokens import tokenizer_of


def words_of(family: str) -> Tokenizer:
    if family == "clip":
        theirs = hub_tokenizer()
        vocabulary: dict[str, int] = theirs.vocabulary
        return clip_tokenizer(vocabulary, [tuple(each.split(" ")) for each in theirs.merges[1:]])
    made = tokenizer_of(keras_hub.models.SigLIPPreprocessor(siglip_tokenizer()))
    made.no_padding()
    made.no_truncation()
    return made


MODELS: dict[str, dict[str, Any]] = {
    "clip-14": {"family": "clip", "opset": 14, "kind": "quick_gelu"},
    "clip-17": {"family": "clip", "opset": 17, "kind": "gelu", "single": True, "beside": "model.onnx_data"},
    "siglip-14": {"family": "siglip", "opset": 14, "kind": "gelu_pytorch_tanh"},
    "siglip-17": {"family": "siglip", "opset": 17, "kind": "gelu_pytorch_tanh", "single": True, "folded": False},
}


def refuse(saved: Path, out: Path, words: str, error: type[Exception] = UnknownTowerError) -> None:
    try:
        export_preset(str(saved), out)
    except error as raised:
        assert words in str(raised), raised
        assert not list(out.glob("*.keras"))
    else:
        raise AssertionError(f"exported, in spite of {words}")


def quantise(model: Any) -> None:
    node = helper.make_node("DynamicQuantizeLinear", ["text_embeds"], ["a", "b", "c"], name="/quantize")
    model.graph.node.append(node)


def halve(model: Any) -> None:
    """Half of the precision, as of the files ..._fp16.onnx."""
    tensor = next(each for each in model.graph.initializer if each.data_type == TensorProto.FLOAT)
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))


def fuse(model: Any) -> None:
    model.graph.node[-1].domain = "com.microsoft"


def branch(model: Any) -> None:
    model.graph.node[-1].attribute.append(helper.make_attribute("then_branch", helper.make_graph([], "g", [], [])))


def rename(model: Any) -> None:
    """Names of another module, as a text tower of another architecture has them."""
    for node in model.graph.node:
        node.name = node.name.replace("/text_model/encoder/layers.", "/bert/encoder/layer.")


def scale(model: Any) -> None:
    """A computation that the rebuilt tower does not know of."""
    tensor = next(each for each in model.graph.node if each.name == "/text_model/encoder/layers.1/self_attn/Constant")
    tensor.attribute[0].t.CopyFrom(numpy_helper.from_array(np.float32(3)))


def unproject(model: Any) -> None:
    """The pooled vector of CLIP's text model without projection, as of the task feature-extraction."""
    model.graph.output[0].name = model.graph.node[-1].output[0] = "pooler_output"


BROKEN: tuple[tuple[Callable[[Any], None], str, type[Exception]], ...] = (
    (quantise, "has quantised weights (DynamicQuantizeLinear): take the file of float32", UnknownTowerError),
    (halve, "has weights of 16 bits", UnknownTowerError),
    (fuse, "was optimised for a runtime (Identity of com.microsoft)", UnknownTowerError),
    (branch, "has branches, loops or functions", UnknownTowerError),
    (rename, "no weights by the name /text_model/encoder/layers.0/mlp/fc1", UnknownTowerError),
    (unproject, "gives pooler_output; it should take input_ids and give text_embeds", UnknownTowerError),
    (scale, "the rebuilt tower of ONNX: scale differs from the original by", NotEqualError),
)


def refuse_graphs(whole: Path, directory: Path) -> None:
    for change, words, error in BROKEN:
        saved = Path(shutil.copytree(whole, directory / "bad" / change.__name__))
        model = onnx.load(saved / "onnx" / "text_model.onnx")
        change(model)
        onnx.save(model, saved / "onnx" / "text_model.onnx")
        refuse(saved, directory / "refused", words, error)


def refuse_files(whole: Path, directory: Path) -> None:
    """A file that is missing or damaged, and settings and a tokenizer of another model."""

    def changed(name: str, file: str, content: str | None) -> Path:
        saved = Path(shutil.copytree(whole, directory / "bad" / name))
        if content is None:
            (saved / file).unlink()
        else:
            (saved / file).write_text(content)
        return saved

    other = {"model_type": "chinese_clip"}
    relu = {**json.loads((whole / "config.json").read_text()), "text_config": {"hidden_act": "relu"}}
    words = clip_tokenizer({**words_of("clip").get_vocab(), "extra": 5000}, [])
    swapped = words_of("clip")
    swapped.post_processor = None  # a text has no end
    for name, file, content, said in (
        ("vision", "onnx/vision_model.onnx", None, "neither text_model.onnx with vision_model.onnx nor model.onnx"),
        ("damaged", "onnx/vision_model.onnx", "not a graph", "vision_model.onnx is not an ONNX file"),
        ("wordless", "tokenizer.json", None, "lacks tokenizer.json"),
        ("chinese", "config.json", json.dumps(other), "a model of the type chinese_clip, not clip or siglip"),
        ("relu", "config.json", json.dumps(relu), "the activation relu cannot be exported"),
        ("strange", "tokenizer.json", "{}", "tokenizer.json cannot be read"),
        ("larger", "tokenizer.json", words.to_str(), "knows 5,001 tokens, the network"),
        ("endless", "tokenizer.json", swapped.to_str(), "tokenizer.json ends a text with"),
        (
            "unpadded",
            "tokenizer_config.json",
            '{"pad_token": "[PAD]"}',
            "pad_token '[PAD]', which tokenizer.json lacks",
        ),
    ):
        refuse(changed(name, file, content), directory / "refused", said)


def refuse_weights_elsewhere(whole: Path, directory: Path) -> None:
    """Weights in files beside the graph, which may be missing, or anywhere on the machine."""
    saved = Path(shutil.copytree(whole, directory / "bad" / "elsewhere"))
    (saved / "model.onnx_data").rename(directory / "secret")
    refuse(saved, directory / "refused", "weights in 'model.onnx_data', which is not beside it")
    (saved / "model.onnx_data").symlink_to(directory / "secret")
    refuse(saved, directory / "refused", "'model.onnx_data', outside of its directory, where nothing is read")
    model = onnx.load(saved / "model.onnx", load_external_data=False)
    for location in ("../../secret", str((directory / "secret").resolve())):
        for tensor in model.graph.initializer:
            for entry in tensor.external_data:
                entry.value = location if entry.key == "location" else entry.value
        (saved / "model.onnx").write_bytes(model.SerializeToString())
        refuse(saved, directory / "refused", f"weights in {location!r}, outside of its directory")


def main(directory: Path) -> None:
    for name, model in MODELS.items():
        saved = save_model(directory / "models" / name, tokenizer=words_of(model["family"]), **model)
        for line in export_preset(str(saved), directory / name):
            assert float(line.split()[-1]) < 1e-5, line
    refuse_graphs(directory / "models" / "clip-14", directory)
    refuse_files(directory / "models" / "clip-14", directory)
    refuse_weights_elsewhere(directory / "models" / "clip-17", directory)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
