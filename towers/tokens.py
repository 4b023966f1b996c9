"""The tokenizers of KerasHub's presets as data: JSON of the package `tokenizers`, which gives the same tokens."""

import string
from collections.abc import Sequence
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

_UNIGRAM, _BPE = 1, 2  # of SentencePiece's TrainerSpec.ModelType
_USER_DEFINED = 4  # of its SentencePiece.Type
_BLANK = "[\\t\\n\\v\\f\\r ]"  # what TensorFlow calls white space


def original_tokens(preprocessor: Any, texts: Sequence[str]) -> NDArray[np.int32]:
    """The tokens, int32 (n, length), that a preset's own preprocessor, or a tokenizer, gives of texts."""
    if isinstance(preprocessor, Tokenizer):
        return np.asarray([preprocessor.encode(text).ids for text in texts], np.int32)
    pictures, preprocessor.image_converter = preprocessor.image_converter, None
    try:
        given = [preprocessor({"images": None, "prompts": [text]})["token_ids"] for text in texts]
    finally:
        preprocessor.image_converter = pictures
    return np.concatenate([np.asarray(each, np.int32).reshape(1, -1) for each in given])


def tokenizer_of(preprocessor: Any) -> Tokenizer:
    """The tokenizer of a preset's preprocessor, with the tokens before and after a text, and cut or padded to its
    length. Raises ValueError for a preprocessor of another kind than CLIP's and SigLIP's."""
    if isinstance(preprocessor, Tokenizer):
        return preprocessor
    theirs = preprocessor.tokenizer
    if hasattr(theirs, "proto"):
        made = _of_sentences(theirs.proto, preprocessor.canonicalize_text)
    elif isinstance(getattr(theirs, "_tokenizer", None), tokenizers.Tokenizer):
        made = Tokenizer.from_str(theirs._tokenizer.to_str())
    else:
        raise ValueError(f"{type(theirs).__name__} is not a tokenizer that can be exported")
    preprocessor.build(None)
    packer = preprocessor.packer
    before = (packer.start_value or []) if preprocessor.add_start_token else []
    after = (packer.end_value or []) if preprocessor.add_end_token else []
    ends = {made.id_to_token(number): number for number in [*before, *after]}
    made.post_processor = processors.TemplateProcessing(
        single=[*map(made.id_to_token, before), "$A", *map(made.id_to_token, after)], special_tokens=list(ends.items())
    )
    length, padding = preprocessor.sequence_length, packer.pad_value or 0
    made.enable_truncation(length)
    made.enable_padding(length=length, pad_id=padding, pad_token=made.id_to_token(padding))
    return made


def _of_sentences(proto: bytes, canonical: bool) -> Tokenizer:
    """The tokenizer of a SentencePiece model. canonical: whether texts lose their case and punctuation first."""
    spec = sentencepiece_model_pb2.ModelProto.FromString(proto)
    pieces = [(each.piece, each.score) for each in spec.pieces]
    fallback, unknown = spec.trainer_spec.byte_fallback, spec.trainer_spec.unk_id
    rules = spec.normalizer_spec
    if spec.trainer_spec.model_type == _UNIGRAM:
        made = Tokenizer(models.Unigram(pieces, unk_id=unknown, byte_fallback=fallback))
    elif spec.trainer_spec.model_type == _BPE:
        vocabulary = {piece: number for number, (piece, _) in enumerate(pieces)}
        made = Tokenizer(
            models.BPE(vocabulary, _merges(pieces), unk_token=pieces[unknown][0], fuse_unk=True, byte_fallback=fallback)
        )
    else:
        raise ValueError("a SentencePiece model that is neither unigram nor BPE cannot be exported")
    steps = _canonical() if canonical else []
    if rules.precompiled_charsmap:
        steps.append(normalizers.Precompiled(rules.precompiled_charsmap))
    if rules.remove_extra_whitespaces:
        steps += [normalizers.Replace(Regex("^ +| +$"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    made.normalizer = normalizers.Sequence(steps)
    first = "always" if rules.add_dummy_prefix else "never"
    made.pre_tokenizer = pre_tokenizers.Metaspace("▁", first, split=spec.trainer_spec.model_type == _UNIGRAM)
    made.add_tokens([AddedToken(each.piece, normalized=False) for each in spec.pieces if each.type == _USER_DEFINED])
    return made


def _merges(pieces: Sequence[tuple[str, float]]) -> list[tuple[str, str]]:
    """The pairs that make each piece, the best piece first, as SentencePiece joins them."""
    numbers = {piece: number for number, (piece, _) in enumerate(pieces)}
    found = []
    for piece, score in pieces:
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in numbers and right in numbers:
                found.append((-score, numbers[left], numbers[right], left, right))
    return [(left, right) for *_, left, right in sorted(found)]


def _canonical() -> list[Any]:
    """Steps as of KerasHub's SigLIP: ASCII's capitals to small ones, its punctuation away, white space to single
    spaces."""
    small = [normalizers.Replace(each, each.lower()) for each in string.ascii_uppercase]
    marks = normalizers.Replace(Regex("[!\"#$%&\\\\'()*+,\\-./:;<=>?@\\[\\]^_`{|}~]"), "")
    spaces = normalizers.Replace(Regex("[\\t\\n\\f\\r ]+"), " ")
    return [*small, marks, spaces, normalizers.Replace(Regex(f"^{_BLANK}+|{_BLANK}+$"), "")]
