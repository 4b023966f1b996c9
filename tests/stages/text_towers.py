"""Small text towers with real parts: a byte-level BPE trained here, as CLIP has, and random layers of Keras."""

import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from stages.backbone import export_proof
from stages.backbone.backbone_spec import TEXT_FILE
from stages.backbone.export_proof import TEXTS, TextProof

_TRAINED_ON = ("red bicycle in snow", "a photo of a cat", "a photo of a dog", "two cats and a blue boat", *TEXTS)
_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
_WORD_END = "</w>"
START, END = "<|startoftext|>", "<|endoftext|>"


def _merges(words: Counter[tuple[str, ...]], most: int) -> list[tuple[str, str]]:
    """The pairs of tokens that BPE joins, the most frequent first, of those as frequent the first by name."""
    merges: list[tuple[str, str]] = []
    while len(merges) < most:
        counts = Counter[tuple[str, str]]()
        for word, count in words.items():
            for pair in pairwise(word):
                counts[pair] += count
        if not counts:
            break
        merges.append(min(counts, key=lambda pair: (-counts[pair], pair)))
        words = Counter({_joined(word, merges[-1]): count for word, count in words.items()})
    return merges


def _joined(word: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    found: list[str] = []
    for token in word:
        if found and (found[-1], token) == pair:
            found[-1] += token
        else:
            found.append(token)
    return tuple(found)


def small_tokenizer(length: int = 16, most: int = 600, texts: Sequence[str] = _TRAINED_ON) -> Tokenizer:
    """A tokenizer of CLIP's form: lower case, bytes, `</w>` at the end of a word, padded to `length` tokens. Always
    the same: the library's trainer takes pairs that are as frequent in any order."""
    made = Tokenizer(models.BPE())
    lower = [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    made.normalizer = normalizers.Sequence(lower)
    split = pre_tokenizers.Split(Regex(_WORDS), behavior="removed", invert=True)
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    made.pre_tokenizer = pre_tokenizers.Sequence([split, bytewise])
    words = Counter(
        (*piece[:-1], piece[-1] + _WORD_END)
        for text in texts
        for piece, _ in made.pre_tokenizer.pre_tokenize_str(made.normalizer.normalize_str(text))
    )
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = _merges(words, most - 2 * len(letters))
    tokens = [*letters, *(each + _WORD_END for each in letters), *map("".join, merges), START, END]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    made.model = models.BPE(vocabulary, merges, unk_token=END, end_of_word_suffix=_WORD_END)
    made.add_special_tokens([START, END])
    ends = [(token, made.token_to_id(token)) for token in (START, END)]
    made.post_processor = processors.TemplateProcessing(single=f"{START} $A {END}", special_tokens=ends)
    made.enable_truncation(length)
    made.enable_padding(length=length, pad_id=made.token_to_id(END), pad_token=END)
    return made


def small_network(words: int, length: int = 16, dimension: int = 4, seed: int = 0) -> Any:
    """A transformer of one layer: int32 (n, length) -> float32 (n, dimension) of length 1."""
    import keras  # noqa: PLC0415 - most tests that import this module need no towers

    keras.utils.set_random_seed(seed)
    layers = keras.layers
    tokens = keras.Input((length,), dtype="int32", name="tokens")
    x = layers.Embedding(words, 16, name="words")(tokens)
    y = layers.MultiHeadAttention(2, 8, name="attention")(x, x, use_causal_mask=True)
    x = layers.LayerNormalization(name="norm")(layers.Add(name="sum")([x, y]))
    x = layers.Dense(dimension, name="projection")(layers.Flatten(name="all")(x))
    return keras.Model(tokens, layers.UnitNormalization(name="vector")(x), name="text")


def write_text_tower(
    directory: Path,
    dimension: int = 4,
    seed: int = 0,
    tokenizer: Tokenizer | None = None,
    pictures: NDArray[np.float32] | None = None,
    origin: str = "a test",
    length: int = 16,
) -> Path:
    """Writes a text tower, with its proof, to text-tower.keras in a directory. pictures, origin: as in TextProof; None
    for those of no image tower."""
    tokenizer = tokenizer or small_tokenizer(length)
    model = small_network(max(tokenizer.get_vocab().values()) + 1, length, dimension, seed)
    path = directory / TEXT_FILE
    directory.mkdir(parents=True, exist_ok=True)
    model.save(path)
    tokens = np.asarray([tokenizer.encode(text).ids for text in TEXTS], np.int32)
    vectors = np.asarray(model.predict_on_batch(tokens))
    seen = np.eye(4, dimension, dtype=np.float32) if pictures is None else pictures
    export_proof.attach_text_proof(path, TextProof(origin, vectors, seen), tokenizer.to_str())
    return path


def altered(tokenizer: Tokenizer, **changed: Any) -> Tokenizer:
    """The tokenizer with other members in its JSON."""
    return Tokenizer.from_str(json.dumps({**json.loads(tokenizer.to_str()), **changed}))
