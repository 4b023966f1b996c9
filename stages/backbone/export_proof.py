"""The proof that an exported .keras file carries: the vectors that the original model gave of fixed pictures.

Imports neither Keras nor another stage module, since it is used where these are not installed.
"""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-3
"""Greatest distance between two vectors of a picture that count as equal, as a share of their length."""

_MEMBER = "lookalike.json"  # Keras ignores members that it does not know
_PICTURES = 4


@dataclass(frozen=True)
class ExportProof:
    origin: str  # the model that was exported, for people
    vectors: NDArray[np.float32]  # (n, d), of `pictures`


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
    try:
        with zipfile.ZipFile(path) as archive:
            found = json.loads(archive.read(_MEMBER))
        return ExportProof(str(found["origin"]), np.asarray(found["vectors"], np.float32))
    except (KeyError, TypeError, ValueError, OSError, zipfile.BadZipFile):
        return None


def apart(vectors: NDArray[np.float32], others: NDArray[np.float32]) -> float:
    """The greatest distance between the two vectors of a picture, as a share of the first's length."""
    if vectors.shape != others.shape:
        return float("inf")
    moved = np.linalg.norm(vectors.astype(np.float64) - others, axis=1)
    return float((moved / np.maximum(np.linalg.norm(vectors, axis=1), 1e-30)).max())
