"""Reads vector files: NumPy's .npy, float32, a row for each picture. Knows no pictures and no search."""

from pathlib import Path

import numpy as np

from stages.contract import StageError
from stages.damage import LONGEST_HEADER, is_damage
from stages.knn.backend import Vectors


def read_vectors(path: Path, dimension: int) -> Vectors:
    """The vectors in a file, float32 (n, dimension), memory-mapped and read-only.

    The file may be deleted once this has returned. Raises StageError if it is missing or holds anything else; pickled
    objects are never loaded.
    """
    try:
        vectors: Vectors = np.load(path, mmap_mode="r", allow_pickle=False, max_header_size=LONGEST_HEADER)  # type: ignore[call-arg]
    except FileNotFoundError as error:
        raise StageError(f"{path.name} is missing beside its table; reprocess the pipeline that wrote it") from error
    except Exception as error:
        if not is_damage(error):
            raise
        raise StageError(f"{path.name} is not a file of vectors: {error}") from error
    if vectors.dtype != np.dtype("<f4") or vectors.ndim != 2 or vectors.shape[1] != dimension:
        raise StageError(
            f"{path.name} holds {vectors.dtype} of shape {vectors.shape}, not float32 vectors of {dimension} dimensions"
        )
    return vectors
