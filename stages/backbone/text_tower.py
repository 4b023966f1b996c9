"""The text tower of a model: a text in, its vector among those of pictures out. Owns the file text-tower.keras.

Its tokenizer is data in that file, and alone decides how a text is normalised and cut. Imports Keras only with the
first tower, since most models have none. Knows no pictures and no questions.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from stages.backbone import export_proof, keras_import
from stages.backbone.backbone_spec import TEXT_FILE
from stages.datum.contract import StageError, load, spool
from stages.datum.text_format import first_line

NO_WORDS = (
    "the model has no text tower, so it finds nothing by words: get one that has with `make towers` and "
    "`.venv-towers/bin/python -m towers.export clip_vit_base_patch16 --out clip` (towers/README.md), then "
    "`lookalike model push clip`"
)
"""The refusal of a text where the model has no words."""

MOST_CHARACTERS = 100_000  # of a text; the tokenizer takes a time that grows with them, the network does not

_MOST_TOKENS = 4096
_LONGEST_WORD = 40  # characters; some scripts do not part words
_UNIT = 1e-3  # how far a vector's length may be from 1


class TextTower:
    """A loaded text tower.

    dimension: the length of a vector. length: the tokens of a text that it reads, those at its start and end included.
    A vector depends on its text alone, bit for bit on one machine: every forward pass has one text, as padding to a
    batch would multiply the time of the usual question, which has one.
    """

    def __init__(
        self, forward: Callable[[NDArray[np.int32]], NDArray[Any]], tokenizer: Tokenizer, length: int, dimension: int
    ) -> None:
        """forward: a pass of one text, int32 (1, length) -> float32 (1, dimension). tokenizer: pads and truncates to
        `length`."""
        self._forward = forward
        self._tokenizer = tokenizer
        self.length = length
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of n texts, float32 (n, dimension), each of length 1. May be called from several threads.

        Raises StageError for a text of more than MOST_CHARACTERS, and if the tower gives a vector without a direction.
        """
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            tokens = np.asarray(self._encoded(text).ids, np.int32)
            vectors[row] = self._forward(tokens[np.newaxis])[0]
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
        if not (np.abs(lengths - 1) <= _UNIT).all():
            raise StageError("the text tower gives vectors that are not of length 1: push another model")
        return vectors

    def unread(self, text: str) -> str:
        """The end of the text that is beyond what the tower reads, from the start of a word; "" if it reads all."""
        encoded = self._encoded(text)
        if not encoded.overflowing:
            return ""
        whole = zip(encoded.offsets, encoded.special_tokens_mask, strict=True)
        end = max((end for (_, end), special in whole if not special), default=0)
        word = max(text.rfind(space, 0, end + 1) for space in " \t\n") + 1
        return text[word if word and end - word < _LONGEST_WORD else end :].strip()

    def warm_up(self) -> None:
        """Runs the first forward pass, which is slower than all later ones."""
        self.embed([""])

    def _encoded(self, text: str) -> Any:
        if len(text) > MOST_CHARACTERS:
            raise StageError(f"a text of {len(text):,} characters is too long: at most {MOST_CHARACTERS:,}")
        try:
            # A lone surrogate, as of a file name that is not UTF-8, is not a character of any text.
            return self._tokenizer.encode(text.encode("utf-8", "replace").decode())
        except Exception as error:  # as of a character that is not in a vocabulary without a token for unknown ones
            raise StageError(f"the model's tokenizer cannot read this text: {first_line(error)}") from error


def load_text_tower(models: Path) -> TextTower | None:
    """The text tower in a directory of the repo models, whose files may be pipes; None if the model has none.

    Raises StageError if it is damaged, or if its tokenizer and its network do not fit each other.
    """
    path = models / TEXT_FILE
    if not path.exists():
        return None
    with tempfile.TemporaryDirectory() as scratch:
        return read_text_tower(spool(path, Path(scratch)))


def read_text_tower(file: Path) -> TextTower:
    """The text tower in a seekable .keras file. Raises StageError as `load_text_tower`."""
    with keras_import.quiet():
        backbones = load("stages.backbone.backbones")
    model = backbones.load_keras(file)
    length, dimension, words = _described(model, file.name)
    content = export_proof.read_tokenizer(file)
    if content is None:
        raise StageError(f"{file.name} has no tokenizer, so it is not a text tower: towers/README.md has one made")
    return TextTower(backbones.forward(model), _tokenizer(content, length, words, file.name), length, dimension)


def _described(model: Any, name: str) -> tuple[int, int, int]:
    """The tokens that a model takes, the length of its vectors, and the words that it has. Raises StageError unless it
    maps the tokens of a text to a vector."""
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        raise StageError(
            f"{name} is not a text tower: it has {len(model.inputs)} inputs and {len(model.outputs)} outputs"
        )
    taken, given = model.inputs[0], model.outputs[0]
    if (
        len(taken.shape) != 2
        or taken.shape[1] is None
        or "int" not in str(taken.dtype)
        or taken.shape[1] > _MOST_TOKENS
    ):
        raise StageError(
            f"{name} takes {taken.dtype} {tuple(taken.shape)}; a text tower takes the numbers of a fixed number of "
            f"tokens, int32 (None, 77), {_MOST_TOKENS:,} at most"
        )
    if len(given.shape) != 2 or given.shape[1] is None:
        raise StageError(f"{name} gives {tuple(given.shape)}; a text tower gives one vector, (None, dimension)")
    tables = [each for each in model.layers if hasattr(each, "input_dim") and each.input is taken]
    if len(tables) != 1:
        raise StageError(f"{name} does not look tokens up in one Embedding layer, as a text tower does")
    return taken.shape[1], given.shape[1], tables[0].input_dim


def _tokenizer(content: str, length: int, words: int, name: str) -> Tokenizer:
    """The tokenizer, which gives `length` tokens of any text. Raises StageError if it does not belong to a network of
    so many words."""
    try:
        tokenizer = Tokenizer.from_str(content)
        special = _special_tokens(json.loads(content))
        missing = [f"{token} ({number})" for token, number in special if tokenizer.token_to_id(token) != number]
        largest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
        given = sorted({len(tokenizer.encode(text).ids) for text in (*export_proof.TEXTS, "a " * 2 * length)})
    except BaseException as error:  # the package panics with an exception that is not an Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise StageError(f"the tokenizer of {name} cannot be read: {first_line(error)}") from error
    if missing:
        raise StageError(f"the tokenizer of {name} lacks special tokens of its own: {', '.join(missing)}")
    if largest >= words:
        raise StageError(
            f"the tokenizer of {name} does not belong to it: it knows {largest + 1:,} tokens, the network {words:,}"
        )
    if given != [length]:
        raise StageError(
            f"the tokenizer of {name} does not belong to it: it gives {given[0]} to {given[-1]} tokens, the network "
            f"takes {length}"
        )
    return tokenizer


def _special_tokens(content: Any) -> list[tuple[str, int]]:
    """The tokens, with their numbers, that a tokenizer puts around a text and fills it up with."""
    after, padding = content.get("post_processor") or {}, content.get("padding") or {}
    found = [
        (token, number)
        for each in (after.get("special_tokens") or {}).values()
        for token, number in zip(each["tokens"], each["ids"], strict=True)
    ]
    return sorted({*found, (padding["pad_token"], padding["pad_id"])} if padding else set(found))
