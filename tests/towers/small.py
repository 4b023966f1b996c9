"""Writes small towers with random weights as plain .keras files, and one in KerasHub's own layers: `small.py DIR`. Runs
in the environment of towers/requirements.lock.

Models of CLIP, SigLIP and SigLIP 2 are saved as presets first, in the layout that their published ones have, with
tokenizers trained here.
"""

import io
import json
import sys
from pathlib import Path
from typing import Any

import keras_hub
import numpy as np
import sentencepiece
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from stages.backbone.export_proof import TEXTS
from towers.export import NotEqualError, export, export_preset, export_words, hub_source, read_source
from towers.plain import UnknownTowerError

SMALL = {"hidden_dim": 32, "num_layers": 2, "num_heads": 2, "intermediate_dim": 64}
TEXT = {**SMALL, "embedding_dim": 32}
WORDS = 700
TRAINED_ON = [*TEXTS, *("a photo of a cat", "a red bicycle in the snow", "two dogs and a boat") * 20]


class Converter:
    """ImageNet's colours, as in most presets."""

    scale = (0.0171, 0.0175, 0.0174)
    offset = (-2.12, -2.04, -1.8)


def dinov2(registers: int, swiglu: bool) -> Any:
    return keras_hub.models.DINOV2Backbone(
        patch_size=14,
        image_shape=(56, 56, 3),
        position_embedding_shape=(70, 70, 3),
        num_register_tokens=registers,
        use_swiglu_ffn=swiglu,
        **SMALL,
    )


def clip() -> Any:
    made = keras_hub.models.CLIPBackbone(
        keras_hub.models.CLIPVisionEncoder(patch_size=8, image_shape=(32, 32, 3), **SMALL),
        keras_hub.models.CLIPTextEncoder(vocabulary_size=WORDS + 600, **TEXT),
        projection_dim=24,
    )
    made.vision_encoder.embedding.position_ids.assign(np.arange(17)[None])  # as every preset has them
    return made


def siglip(words: int = WORDS) -> Any:
    return keras_hub.models.SigLIPBackbone(
        keras_hub.models.SigLIPVisionEncoder(patch_size=8, image_shape=(32, 32, 3), **SMALL),
        keras_hub.models.SigLIPTextEncoder(vocabulary_size=words, projection_dim=32, **TEXT),
    )


def clip_tokenizer() -> Any:
    """Bytes, bytes at the end of a word, merges, and the two special tokens last, as OpenAI's vocabulary has them."""
    trained = tokenizers.Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=WORDS, initial_alphabet=letters, end_of_word_suffix="</w>", show_progress=False
    )
    trained.train_from_iterator([text.lower() for text in TRAINED_ON], trainer)
    pieces = sorted(trained.get_vocab().items(), key=lambda each: each[1])
    tokens = dict.fromkeys([*letters, *(f"{letter}</w>" for letter in letters), *(piece for piece, _ in pieces)])
    vocabulary = {token: number for number, token in enumerate([*tokens, "<|startoftext|>", "<|endoftext|>"])}
    merges = ["#version: 0.2"]
    made = {*letters, *(f"{letter}</w>" for letter in letters)}
    for piece, _ in pieces:  # in the order of merging
        cuts = [(piece[:at], piece[at:]) for at in range(1, len(piece))]
        if piece not in made and (pair := next((each for each in cuts if made.issuperset(each)), None)):
            merges.append(" ".join(pair))
        made.add(piece)
    return keras_hub.models.CLIPTokenizer(vocabulary, merges, pad_with_end_token=True)


def sentence_pieces(**settings: Any) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TRAINED_ON), model_writer=model, minloglevel=2, hard_vocab_limit=False, **settings
    )
    return model.getvalue()


def siglip_tokenizer() -> Any:
    """Unigram with the rules of C4's vocabulary, which SigLIP has."""
    proto = sentence_pieces(vocab_size=400, model_type="unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    return keras_hub.models.SigLIPTokenizer(proto)


def siglip2_tokenizer() -> Any:
    """BPE with bytes for what it does not know, spaces as they are, as Gemma's vocabulary, which SigLIP 2 has."""
    proto = sentence_pieces(
        vocab_size=600,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        split_digits=True,
        user_defined_symbols=["<mask>", "[multimodal]", "▁▁"],
        pad_id=0,
        eos_id=1,
        bos_id=2,
        unk_id=3,
    )
    return keras_hub.models.SigLIPTokenizer(proto)


def randomised(backbone: Any) -> Any:
    """Many weights begin as zeros or ones, which would hide that they are not copied."""
    lot = np.random.default_rng(1)
    for variable in backbone.weights:
        if "int" not in str(variable.dtype):
            variable.assign(np.asarray(variable) + lot.normal(0, 0.05, variable.shape).astype(np.float32))
    return backbone


def preset(directory: Path, backbone: Any, tokenizer: Any) -> Path:
    """Saves a preset: backbone, preprocessor, tokenizer and image converter, each in its files."""
    family = type(backbone).__name__.removesuffix("Backbone")
    converter = getattr(keras_hub.layers, f"{family}ImageConverter")
    preprocessor = getattr(keras_hub.models, f"{family}Preprocessor")
    images = converter(image_size=(32, 32), scale=Converter.scale, offset=Converter.offset)
    backbone.save_to_preset(directory)
    preprocessor(tokenizer, images).save_to_preset(directory)
    return directory


def open_clip(directory: Path, quick: bool) -> Path:
    """Saves a model of OpenCLIP in the layout of those on Hugging Face, with the names and shapes of its tensors."""
    lot, width, side, heads = np.random.default_rng(int(quick)), 32, 32, 2
    directory.mkdir(parents=True)
    words = clip_tokenizer()
    (directory / "vocab.json").write_text(json.dumps(words.vocabulary))
    (directory / "merges.txt").write_text("\n".join(words.merges) + "\n")
    vision = {"image_size": side, "layers": 2, "width": width, "patch_size": 8, "head_width": width // heads}
    text = {"context_length": 20, "vocab_size": len(words.vocabulary), "width": width, "heads": heads, "layers": 3}
    model = {"embed_dim": 24, "vision_cfg": vision, "text_cfg": text, "quick_gelu": quick}
    (directory / "open_clip_config.json").write_text(json.dumps({"model_cfg": model}))

    shapes: dict[str, tuple[int, ...]] = {
        "logit_scale": (),
        "positional_embedding": (20, width),
        "text_projection": (width, 24),
        "token_embedding.weight": (len(words.vocabulary), width),
        "visual.class_embedding": (width,),
        "visual.positional_embedding": (17, width),
        "visual.proj": (width, 24),
        "visual.conv1.weight": (width, 3, 8, 8),
    }
    blocks = [f"visual.transformer.resblocks.{at}" for at in range(2)] + [
        f"transformer.resblocks.{at}" for at in range(3)
    ]
    for name in (
        "ln_final",
        "visual.ln_pre",
        "visual.ln_post",
        *(f"{each}.ln_{at}" for each in blocks for at in (1, 2)),
    ):
        shapes |= {f"{name}.weight": (width,), f"{name}.bias": (width,)}
    for each in blocks:
        shapes |= {f"{each}.attn.in_proj_weight": (3 * width, width), f"{each}.attn.in_proj_bias": (3 * width,)}
        for name, outer, inner in (("attn.out_proj", 1, 1), ("mlp.c_fc", 4, 1), ("mlp.c_proj", 1, 4)):
            shapes |= {f"{each}.{name}.weight": (outer * width, inner * width), f"{each}.{name}.bias": (outer * width,)}
    tensors = {
        name: np.asarray(lot.normal(1.0 if ".ln_" in name and "weight" in name else 0.0, 0.2, shape), np.float16)
        for name, shape in shapes.items()
    }
    header, body = {}, b""
    for name, values in tensors.items():
        ends = [len(body), len(body) + values.nbytes]
        header[name] = {"dtype": "F16", "shape": values.shape, "data_offsets": ends}
        body += values.tobytes()
    written = json.dumps(header).encode()
    (directory / "open_clip_model.safetensors").write_bytes(len(written).to_bytes(8, "little") + written + body)
    return directory


def refuse_other_architectures(saved: Path, directory: Path) -> None:
    """Settings that are not known would change the network: they are refused and not left out."""
    whole = json.loads((saved / "open_clip_config.json").read_text())
    whole["model_cfg"]["text_cfg"]["hf_model_name"] = "roberta-base"
    (saved / "open_clip_config.json").write_text(json.dumps(whole))
    try:
        export_preset(str(saved), directory / "roberta")
    except UnknownTowerError as error:
        assert "text_cfg of open_clip_config.json has hf_model_name" in str(error), error
    else:
        raise AssertionError("a text tower of another architecture was exported")
    (saved / "merges.txt").unlink()
    try:
        export_preset(str(saved), directory / "wordless")
    except UnknownTowerError as error:
        assert "lacks merges.txt" in str(error), error
    else:
        raise AssertionError("a model without its tokenizer was exported")


def refuse_other_tokens(directory: Path) -> None:
    """A tokenizer that reads one of the recorded texts in another way leaves no file behind."""
    source = read_source(str(directory / "presets" / "siglip"))
    source.preprocessor.tokenizer.proto = siglip2_tokenizer().proto  # not what it computes with
    path = directory / "other-text.keras"
    try:
        export_words(source, path)
    except NotEqualError as error:
        assert str(error).startswith("the rebuilt tokenizer of KerasHub"), error
        assert not path.exists()
    else:
        raise AssertionError("a tokenizer that differs was written")


def main(directory: Path) -> None:
    towers = {"dinov2": dinov2(0, False), "registers": dinov2(4, True)}
    for name, backbone in towers.items():
        source = hub_source(randomised(backbone), Converter, f"a small {name}")
        apart = export(source, name, directory / f"{name}.keras")
        assert apart < 1e-5, (name, apart)
    towers["dinov2"].save(directory / "foreign.keras")

    presets = {
        "clip": (clip(), clip_tokenizer()),
        "siglip": (siglip(), siglip_tokenizer()),
        "siglip2": (siglip(1000), siglip2_tokenizer()),
    }
    for name, (backbone, tokenizer) in presets.items():
        saved = preset(directory / "presets" / name, randomised(backbone), tokenizer)
        for line in export_preset(str(saved), directory / name):
            assert float(line.split()[-1]) < 1e-5, line
    (line, note) = export_preset(str(directory / "presets" / "clip"), directory / "alone.keras")
    assert note == "its text tower is not written: give a directory instead of a file to have both"

    refuse_other_tokens(directory)
    for quick in (False, True):
        saved = open_clip(directory / "presets" / f"open-clip-{quick}", quick)
        for line in export_preset(str(saved), directory / saved.name):
            assert float(line.split()[-1]) < 1e-5, line
    refuse_other_architectures(saved, directory)
    backbone = dinov2(0, False)
    backbone.encoder.layers[0].drop_path = lambda x, **_: 2.0 * x  # nothing that the rebuilt tower knows of
    try:
        export(hub_source(backbone, Converter, "a changed tower"), "other", directory / "other.keras")
    except NotEqualError:
        assert not (directory / "other.keras").exists()
    else:
        raise AssertionError("a tower that differs was written")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
