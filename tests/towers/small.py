"""Writes small towers with random weights as plain .keras files, and one in KerasHub's own layers: `small.py DIR`. Runs
in the environment of towers/requirements.lock.

Models of CLIP, SigLIP and SigLIP 2 are saved as presets first, in the layout that their published ones have, with
tokenizers trained here.
"""

import io
import sys
from pathlib import Path
from typing import Any

import keras_hub
import numpy as np
import sentencepiece
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from stages.backbone.export_proof import TEXTS
from towers.export import NotEqualError, export, export_preset, export_words

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


def refuse_other_tokens(directory: Path) -> None:
    """A tokenizer that reads one of the recorded texts in another way leaves no file behind."""
    saved = str(directory / "presets" / "siglip")
    backbone = keras_hub.models.Backbone.from_preset(saved)
    preprocessor = keras_hub.models.SigLIPPreprocessor.from_preset(saved)
    preprocessor.tokenizer.proto = siglip2_tokenizer().proto  # not what it computes with
    path = directory / "other-text.keras"
    try:
        export_words(backbone, preprocessor, "a changed tokenizer", path, 32, Converter)
    except NotEqualError as error:
        assert str(error).startswith("the rebuilt tokenizer of a changed tokenizer reads"), error
        assert not path.exists()
    else:
        raise AssertionError("a tokenizer that differs was written")


def main(directory: Path) -> None:
    towers = {"dinov2": dinov2(0, False), "registers": dinov2(4, True)}
    for name, backbone in towers.items():
        apart = export(randomised(backbone), Converter, name, f"a small {name}", directory / f"{name}.keras")
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
    backbone = dinov2(0, False)
    backbone.encoder.layers[0].drop_path = lambda x, **_: 2.0 * x  # nothing that the rebuilt tower knows of
    try:
        export(backbone, Converter, "other", "a changed tower", directory / "other.keras")
    except NotEqualError:
        assert not (directory / "other.keras").exists()
    else:
        raise AssertionError("a tower that differs was written")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
