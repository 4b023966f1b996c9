"""The proof that an exported .keras file carries: the vectors that the original model gave of fixed pictures or texts.

A text tower's file also carries its tokenizer, and the vectors that the image tower of the same model gave, by which
the two are known to belong together. Imports neither Keras nor another stage module, since it is used where these are
not installed.
"""

import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-3
"""Greatest distance between two vectors of a picture that count as equal, as a share of their length."""

_MEMBER, _TOKENIZER = "lookalike.json", "tokenizer.json"  # Keras ignores members that it does not know
_PICTURES = 4

Held = TypeVar("Held")

TEXTS = (
    "",
    "a photo of a cat",
    "Red BICYCLE in snow, 2024!",
    "it's two dogs' bowls: 3.5 kg (50 %)",
    "café crème, Straße, ÉCOLE, ĳsje",
    "cafe\u0301 \ufb01ne \uff21\uff22\uff23 ½",  # combining, ligature, full width
    "красный велосипед на снегу",
    "雪の中の赤い自転車",
    "دراجة حمراء في الثلج",
    "लाल साइकिल",
    "👩\u200d🚀 🚲❄️ 🇫🇷",
    "tab\tnew\nline\r\n two  spaces \u00a0 \u3000 end ",
    "\x01\x07\x1b[31m \u200b\ufeff\ufffd \U0010ffff",
    "<|startoftext|> <|endoftext|> </s> <pad> <unk> <s> [SEP] ▁ </w> Ġ",
    "dictionary donaudampfschifffahrtsgesellschaft https://example.org/a_b-c?d=1&e=~2",
    "one two three four five six seven eight nine ten " * 12,  # beyond every context
)
"""The texts of every proof: kinds that tokenizers are known to cut differently."""


@dataclass(frozen=True)
class ExportProof:
    origin: str  # the model that was exported, for people
    vectors: NDArray[np.float32]  # (n, d), of `pictures`


@dataclass(frozen=True)
class TextProof:
    """The proof of a text tower.

    vectors: (n, d), of TEXTS. pictures: (m, d), of `pictures` by the image tower of the same model. All of length 1.
    """

    origin: str
    vectors: NDArray[np.float32]
    pictures: NDArray[np.float32]


def pictures(side: int) -> NDArray[np.uint8]:
    """The pictures of every proof, uint8 RGB (n, side, side, 3): noise, ever coarser, so that all scales count."""
    lot = np.random.default_rng(0)
    drawn = []
    for power in range(_PICTURES):
        cell = 4**power
        coarse = lot.integers(0, 256, (-(-side // cell), -(-side // cell), 3), np.uint8)
        drawn.append(coarse.repeat(cell, axis=0).repeat(cell, axis=1)[:side, :side])
    return np.stack(drawn)


def attach_proof(path: Path, proof: ExportProof) -> None:
    """Adds the proof to a .keras file."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(_MEMBER, json.dumps({"origin": proof.origin, "vectors": proof.vectors.tolist()}))


def read_proof(path: Path) -> ExportProof | None:
    """The proof in a .keras file; None if it has none, as most files do."""

    def read(archive: zipfile.ZipFile) -> ExportProof:
        found = json.loads(archive.read(_MEMBER))
        return ExportProof(str(found["origin"]), np.asarray(found["vectors"], np.float32))

    return _held(path, read)


def attach_text_proof(path: Path, proof: TextProof, tokenizer: str) -> None:
    """Adds the proof and the tokenizer, JSON of the package `tokenizers`, to the .keras file of a text tower."""
    found = {"origin": proof.origin, "texts": proof.vectors.tolist(), "pictures": proof.pictures.tolist()}
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(_TOKENIZER, tokenizer)
        archive.writestr(_MEMBER, json.dumps(found))


def read_text_proof(path: Path) -> TextProof | None:
    """The proof in the .keras file of a text tower; None if it has none."""

    def read(archive: zipfile.ZipFile) -> TextProof:
        found = json.loads(archive.read(_MEMBER))
        texts, seen = (np.asarray(found[name], np.float32) for name in ("texts", "pictures"))
        return TextProof(str(found["origin"]), texts, seen)

    return _held(path, read)


def read_tokenizer(path: Path) -> str | None:
    """The tokenizer in the .keras file of a text tower; None if it has none."""
    return _held(path, lambda archive: archive.read(_TOKENIZER).decode())


def _held(path: Path, read: Callable[[zipfile.ZipFile], Held]) -> Held | None:
    """What is read of a .keras file; None where it does not have that."""
    try:
        with zipfile.ZipFile(path) as archive:
            return read(archive)
    except (KeyError, TypeError, ValueError, OSError, zipfile.BadZipFile):
        return None


def apart(vectors: NDArray[np.float32], others: NDArray[np.float32]) -> float:
    """The greatest distance between the two vectors of a picture, as a share of the first's length."""
    if vectors.shape != others.shape:
        return float("inf")
    moved = np.linalg.norm(vectors.astype(np.float64) - others, axis=1)
    return float((moved / np.maximum(np.linalg.norm(vectors, axis=1), 1e-30)).max())
