"""Writes small CLIPs and SigLIPs with random weights as the ONNX files that Optimum and transformers.js publish: the
operators, and the names of nodes and weights, that PyTorch's exporter gives. Knows nothing of towers/."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

WIDTH, HEADS, INNER, SIDE, PATCH, LENGTH, EMBEDDED = 32, 2, 64, 32, 8, 20, 24
LAYERS = {"text": 3, "vision": 2}


def _dotted(scope: str) -> str:
    return scope.strip("/").replace("/", ".")


class Trace:
    """The nodes and the weights of one file. opset: 14, whose layer normalisation has many steps, or 17. folded:
    whether constants are computed beforehand, as onnxslim does."""

    def __init__(self, opset: int, folded: bool, seed: int) -> None:
        self.opset, self.folded = opset, folded
        self.lot = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._count: Counter[str] = Counter()
        self._generated = 1000

    def weight(self, name: str, *shape: int, mean: float = 0.0) -> str:
        return self.constant(self.lot.normal(mean, 0.2, shape).astype(np.float32), name)

    def constant(self, values: Any, name: str = "") -> str:
        if not name:
            self._generated += 1
            name = f"onnx::MatMul_{self._generated}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def __call__(self, scope: str, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        number = self._count[f"{scope}/{operator}"]
        self._count[f"{scope}/{operator}"] += 1
        name = f"{scope}/{operator}" + (f"_{number}" if number else "")
        given = [f"{name}_output_{at}" for at in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), given, name=name, **attributes))
        return given if outputs > 1 else given[0]

    def number(self, scope: str, value: Any) -> str:
        """A node Constant, as the exporter has for numbers in the code of a module."""
        found: str = self(scope, "Constant", value=numpy_helper.from_array(np.asarray(value)))
        return found

    def linear(self, scope: str, x: str, inner: int, outer: int, bias: bool = True) -> Any:
        y = self(scope, "MatMul", x, self.constant(self.lot.normal(0, 0.2, (inner, outer)).astype(np.float32)))
        return self(scope, "Add", self.weight(f"{_dotted(scope)}.bias", outer), y) if bias else y

    def norm(self, scope: str, x: str) -> Any:
        factors = self.weight(f"{_dotted(scope)}.weight", WIDTH, mean=1.0)
        offsets = self.weight(f"{_dotted(scope)}.bias", WIDTH)
        if self.opset >= 17:
            return self(scope, "LayerNormalization", x, factors, offsets, axis=-1, epsilon=1e-5)
        moved = self(scope, "Sub", x, self(scope, "ReduceMean", x, axes=[-1]))
        square = self(scope, "Pow", moved, self.number(scope, np.float32(2)))
        spread = self(scope, "Add", self(scope, "ReduceMean", square, axes=[-1]), self.number(scope, np.float32(1e-5)))
        divided = self(scope, "Div", moved, self(scope, "Sqrt", spread))
        return self(scope, "Add", self(scope, "Mul", divided, factors), offsets)

    def heads(self, scope: str, x: str, turned: list[int], tokens: int) -> Any:
        shape = self.number(scope, np.array([-1, tokens, HEADS, WIDTH // HEADS]))
        return self(scope, "Transpose", self(scope, "Reshape", x, shape), perm=turned)

    def attended(self, scope: str, q: str, k: str, v: str, tokens: int, asking: int, mask: str = "") -> Any:
        scale = self.number(scope, np.float32((WIDTH // HEADS) ** -0.5))
        q = self.heads(scope, self(scope, "Mul", q, scale), [0, 2, 1, 3], asking)
        seen = self(scope, "MatMul", q, self.heads(scope, k, [0, 2, 3, 1], tokens))
        weights = self(scope, "Softmax", self(scope, "Add", seen, mask) if mask else seen, axis=-1)
        y = self(scope, "MatMul", weights, self.heads(scope, v, [0, 2, 1, 3], tokens))
        y = self(scope, "Transpose", y, perm=[0, 2, 1, 3])
        return self(scope, "Reshape", y, self.number(scope, np.array([-1, asking, WIDTH])))

    def activated(self, scope: str, x: str, kind: str) -> Any:
        def by(value: float) -> str:
            return self.number(scope, np.float32(value))

        if kind == "quick_gelu":
            return self(scope, "Mul", x, self(scope, "Sigmoid", self(scope, "Mul", x, by(1.702))))
        if kind == "gelu":
            grown = self(scope, "Add", self(scope, "Erf", self(scope, "Div", x, by(2**0.5))), by(1))
            return self(scope, "Mul", self(scope, "Mul", x, grown), by(0.5))
        cubed = self(scope, "Mul", self(scope, "Pow", x, by(3)), by(0.044715))
        inner = self(scope, "Mul", self(scope, "Add", x, cubed), by((2 / np.pi) ** 0.5))
        grown = self(scope, "Add", self(scope, "Tanh", inner), by(1))
        return self(scope, "Mul", self(scope, "Mul", x, by(0.5)), grown)

    def expanded(self, scope: str, x: str, kind: str) -> Any:
        x = self.activated(f"{scope}/activation_fn", self.linear(f"{scope}/fc1", x, WIDTH, INNER), kind)
        return self.linear(f"{scope}/fc2", x, INNER, WIDTH)

    def blocks(self, tower: str, x: str, tokens: int, kind: str, mask: str = "") -> Any:
        for number in range(LAYERS[tower]):
            scope = f"/{tower}_model/encoder/layers.{number}"
            y = self.norm(f"{scope}/layer_norm1", x)
            q, k, v = (self.linear(f"{scope}/self_attn/{each}_proj", y, WIDTH, WIDTH) for each in "qkv")
            y = self.attended(f"{scope}/self_attn", q, k, v, tokens, tokens, mask)
            x = self(scope, "Add", x, self.linear(f"{scope}/self_attn/out_proj", y, WIDTH, WIDTH))
            y = self.expanded(f"{scope}/mlp", self.norm(f"{scope}/layer_norm2", x), kind)
            x = self(scope, "Add", x, y)
        return x

    def text(self, family: str, words: int, kind: str) -> str:
        """The nodes of a text tower, to its vector."""
        ids, scope = "input_ids", "/text_model"
        self.inputs.append(helper.make_tensor_value_info(ids, TensorProto.INT64, ["batch_size", "sequence_length"]))
        embeddings = f"{scope}/embeddings"
        length = self(
            embeddings, "Gather", self(embeddings, "Shape", ids), self.number(embeddings, np.int64(1)), axis=0
        )
        ends = self(embeddings, "Unsqueeze", length, self.number(embeddings, np.array([0])))
        numbers = self.constant(np.arange(LENGTH)[None], "text_model.embeddings.position_ids")
        begin, axis = (self.number(embeddings, np.array([each])) for each in (0, 1))
        numbers = self(embeddings, "Slice", numbers, begin, ends, axis)
        table = self.weight("text_model.embeddings.token_embedding.weight", words, WIDTH)
        places = self.weight("text_model.embeddings.position_embedding.weight", LENGTH, WIDTH)
        x = self(f"{embeddings}/token_embedding", "Gather", table, ids)
        y = self(f"{embeddings}/position_embedding", "Gather", places, numbers)
        x, mask = self(embeddings, "Add", x, y), ""
        if family == "clip":
            square = self(scope, "Concat", ends, ends, axis=0)
            full = self(
                scope, "ConstantOfShape", square, value=numpy_helper.from_array(np.array([-3.4e38], np.float32))
            )
            mask = self(scope, "Trilu", full, self.number(scope, np.int64(1)), upper=1)
        x = self.norm(f"{scope}/final_layer_norm", self.blocks("text", x, LENGTH, kind, mask))
        if family == "siglip":
            ended = self(scope, "Gather", x, self.number(scope, np.int64(-1)), axis=1)
            kernel = self.weight("text_model.head.weight", WIDTH, WIDTH)
            bias = self.weight("text_model.head.bias", WIDTH)
            return str(self(f"{scope}/head", "Gemm", ended, kernel, bias, transB=1))
        end = self(scope, "ArgMax", ids, axis=-1, keepdims=0)
        rows = self(scope, "Gather", self(scope, "Shape", ids), self.number(scope, np.int64(0)), axis=0)
        rows = self(scope, "Range", self.number(scope, np.int64(0)), rows, self.number(scope, np.int64(1)))
        both = [self(scope, "Unsqueeze", each, self.number(scope, np.array([-1]))) for each in (rows, end)]
        ended = self(scope, "GatherND", x, self(scope, "Concat", *both, axis=-1))
        return str(self.linear("/text_projection", ended, WIDTH, EMBEDDED, bias=False))

    def vision(self, family: str, kind: str) -> str:
        """The nodes of an image tower, to its vector."""
        pixels, scope, embeddings = "pixel_values", "/vision_model", "/vision_model/embeddings"
        axes = ["batch_size", "num_channels", "height", "width"]
        self.inputs.append(helper.make_tensor_value_info(pixels, TensorProto.FLOAT, axes))
        kernel = [self.weight("vision_model.embeddings.patch_embedding.weight", WIDTH, 3, PATCH, PATCH)]
        if family == "siglip":
            kernel.append(self.weight("vision_model.embeddings.patch_embedding.bias", WIDTH))
        x = self(
            f"{embeddings}/patch_embedding", "Conv", pixels, *kernel, strides=[PATCH] * 2, kernel_shape=[PATCH] * 2
        )
        x = self(embeddings, "Reshape", x, self.number(embeddings, np.array([0, WIDTH, -1])))
        x, tokens = self(embeddings, "Transpose", x, perm=[0, 2, 1]), (SIDE // PATCH) ** 2 + (family == "clip")
        batch = self(embeddings, "Gather", self(embeddings, "Shape", pixels), self.number(embeddings, np.array([0])))
        if family == "clip":
            shape = self(embeddings, "Concat", batch, self.number(embeddings, np.array([1, WIDTH])), axis=0)
            first = self.weight("vision_model.embeddings.class_embedding", WIDTH)
            x = self(embeddings, "Concat", self(embeddings, "Expand", first, shape), x, axis=1)
        places = f"{embeddings}/position_embedding"
        if self.folded:
            placed = self.weight(f"{places}/Gather_output_0", 1, tokens, WIDTH)
        else:
            table = self.weight("vision_model.embeddings.position_embedding.weight", tokens, WIDTH)
            numbers = self.constant(np.arange(tokens)[None], "vision_model.embeddings.position_ids")
            placed = self(places, "Gather", table, numbers)
        x = self(embeddings, "Add", x, placed)
        x = self.norm(f"{scope}/pre_layrnorm", x) if family == "clip" else x
        x = self.blocks("vision", x, tokens, kind)
        first = self.number(scope, np.int64(0))
        if family == "clip":
            x = self.norm(f"{scope}/post_layernorm", self(scope, "Gather", x, first, axis=1))
            return str(self.linear("/visual_projection", x, WIDTH, EMBEDDED, bias=False))
        x = self.pooled(f"{scope}/head", self.norm(f"{scope}/post_layernorm", x), batch, tokens, kind)
        return str(self(f"{scope}/head", "Gather", x, first, axis=1))

    def pooled(self, scope: str, x: str, batch: str, tokens: int, kind: str) -> Any:
        """SigLIP's head: PyTorch's attention has the weights of queries, keys and values in one matrix."""
        inside, name = f"{scope}/attention", "vision_model.head.attention"
        shape = self(scope, "Concat", batch, self.number(scope, np.array([1, 1])), axis=0)
        probe = self(scope, "Tile", self.weight("vision_model.head.probe", 1, 1, WIDTH), shape)
        if self.folded:
            kernels = [self.constant(self.lot.normal(0, 0.2, (WIDTH, at * WIDTH)).astype(np.float32)) for at in (1, 2)]
            biases = [self.constant(self.lot.normal(0, 0.2, (at * WIDTH)).astype(np.float32)) for at in (1, 2)]
        else:
            sizes = self.number(inside, np.array([WIDTH, 2 * WIDTH]))
            packed, offsets = (
                self.weight(f"{name}.in_proj_weight", 3 * WIDTH, WIDTH),
                self.weight(f"{name}.in_proj_bias", 3 * WIDTH),
            )
            kernels = self(inside, "Split", packed, sizes, outputs=2, axis=0)
            kernels = [self(inside, "Transpose", each, perm=[1, 0]) for each in kernels]
            biases = self(inside, "Split", offsets, sizes, outputs=2, axis=0)
        asked, both = (
            self(inside, "Add", self(inside, "MatMul", each, kernel), bias)
            for each, kernel, bias in zip((probe, x), kernels, biases, strict=True)
        )
        k, v = self(inside, "Split", both, self.number(inside, np.array([WIDTH] * 2)), outputs=2, axis=-1)
        y = self.attended(inside, asked, k, v, tokens, 1)
        y = self(inside, "Reshape", y, self.number(inside, np.array([-1, WIDTH])))
        weights = self.weight(f"{name}.out_proj.weight", WIDTH, WIDTH), self.weight(f"{name}.out_proj.bias", WIDTH)
        y = self(inside, "Gemm", y, *weights, transB=1)
        y = self(inside, "Reshape", y, self.number(inside, np.array([-1, 1, WIDTH])))
        return self(scope, "Add", y, self.expanded(f"{scope}/mlp", self.norm(f"{scope}/layernorm", y), kind))

    def give(self, name: str, value: str) -> None:
        self.nodes.append(helper.make_node("Identity", [value], [name], name=f"Identity_{name}"))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch_size", "dimension"]))

    def save(self, path: Path, beside: str = "") -> None:
        """beside: the name of a file for the weights, "" for none."""
        graph = helper.make_graph(self.nodes, "main_graph", self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        onnx.checker.check_model(model)
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(model, path, save_as_external_data=bool(beside), location=beside or None, size_threshold=0)


def clip_tokenizer(vocabulary: dict[str, int], merges: list[tuple[str, str]]) -> Tokenizer:
    """As in the tokenizer.json of OpenAI's CLIP on Hugging Face."""
    start, end = "<|startoftext|>", "<|endoftext|>"
    made = Tokenizer(
        models.BPE(vocabulary, merges, unk_token=end, continuing_subword_prefix="", end_of_word_suffix="</w>")
    )
    made.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex("\\s+"), " "), normalizers.Lowercase()]
    )
    words = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
    parted = pre_tokenizers.Split(Regex(words), "removed", invert=True)
    made.pre_tokenizer = pre_tokenizers.Sequence([parted, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.post_processor = processors.RobertaProcessing(
        (end, vocabulary[end]), (start, vocabulary[start]), trim_offsets=False, add_prefix_space=False
    )
    made.add_special_tokens([AddedToken(each, normalized=False) for each in (start, end)])
    return made


def save_model(
    directory: Path,
    family: str,
    tokenizer: Tokenizer,
    opset: int,
    kind: str,
    single: bool = False,
    beside: str = "",
    folded: bool = True,
) -> Path:
    """single: one file with both towers, as Optimum has it. kind: of activation."""
    words = max(tokenizer.get_vocab().values()) + 1
    traces = [Trace(opset, folded, 1)] * 2 if single else [Trace(opset, folded, each) for each in (1, 2)]
    text, vision = traces[0].text(family, words, kind), traces[1].vision(family, kind)
    short = family == "siglip" and not single
    for trace, name, value in zip(traces, ("text_embeds", "image_embeds"), (text, vision), strict=True):
        trace.give("pooler_output" if short else name, value)
    if single:
        if family == "clip":
            mask = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch_size", "sequence_length"])
            traces[0].inputs.append(mask)
        traces[0].save(directory / "model.onnx", beside)
    else:
        traces[0].save(directory / "onnx" / "text_model.onnx", beside)
        traces[1].save(directory / "onnx" / "vision_model.onnx")
    part = {"num_attention_heads": HEADS, "hidden_act": kind, "layer_norm_eps": 1e-5}
    config = {"model_type": family, "text_config": part, "vision_config": part}
    (directory / "config.json").write_text(json.dumps(config))
    pixels = {"image_mean": [0.48, 0.46, 0.41], "image_std": [0.27, 0.26, 0.28], "rescale_factor": 1 / 255}
    (directory / "preprocessor_config.json").write_text(json.dumps(pixels))
    padding: Any = {"content": "<|endoftext|>", "special": True} if family == "clip" else "</s>"
    (directory / "tokenizer_config.json").write_text(json.dumps({"pad_token": padding}))
    tokenizer.save(str(directory / "tokenizer.json"))
    return directory
