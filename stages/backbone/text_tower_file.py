"""A text tower's file on its way into a model: proven, found to belong to the image tower, written as equal bytes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stages.backbone import export_proof
from stages.backbone.backbone_file import normalise
from stages.backbone.backbone_spec import TEXT_FILE, BackboneSpec
from stages.backbone.export_proof import TEXTS, TOLERANCE
from stages.backbone.text_tower import read_text_tower
from stages.datum.contract import StageError

AGAIN = "export both towers again: python -m towers.export PRESET --out DIRECTORY (towers/README.md)"


def towers_of(directory: Path) -> tuple[Path, Path | None]:
    """The files of the image tower and of the text tower in a directory; None if it has no text tower. Raises
    StageError unless there is one image tower."""
    files = sorted(path for path in directory.glob("*.keras") if path.name != TEXT_FILE)
    if len(files) != 1:
        raise StageError(
            f"{directory} holds {len(files)} .keras files beside {TEXT_FILE}, not one image tower: push its file, with "
            "--text FILE if it has a text tower"
        )
    words = directory / TEXT_FILE
    return files[0], words if words.is_file() else None


def write_text_tower(
    file: Path, spec: BackboneSpec, vectors_of: Callable[[NDArray[np.uint8]], NDArray[np.float32]], directory: Path
) -> None:
    """Writes text-tower.keras into a directory, from a file that towers.export wrote with the image tower that the spec
    describes. vectors_of: that tower. Equal towers give equal bytes.

    Raises StageError if the file is not a text tower, differs from its original, or belongs to another image tower.
    """
    tower, proof = read_text_tower(file), export_proof.read_text_proof(file)
    if proof is None:
        raise StageError(f"{file.name} does not say which texts gave which vectors, so nothing proves it: {AGAIN}")
    if tower.dimension != spec.dimension:
        raise StageError(
            f"{file.name} gives vectors of {tower.dimension} dimensions, and the image tower {spec.name} of "
            f"{spec.dimension}: they are not of one model"
        )
    apart = export_proof.apart(proof.vectors, tower.embed(TEXTS))
    if not apart <= TOLERANCE:
        raise StageError(
            f"the vectors of {file.name} differ by {apart:.1%} from the original's, {proof.origin}: its tokenizer or "
            f"its weights are not those; {AGAIN}"
        )
    given = vectors_of(export_proof.pictures(spec.image_size)).astype(np.float64)
    seen = export_proof.apart(proof.pictures, given / np.maximum(np.linalg.norm(given, axis=1, keepdims=True), 1e-30))
    if not seen <= TOLERANCE:
        raise StageError(
            f"{file.name}, of {proof.origin}, belongs to another image tower than {spec.name}: its words would find "
            "anything. Push the two that were exported together"
        )
    normalise(file, directory / TEXT_FILE)
