"""Labelled vectors as the stage train has them. Knows no benchmark."""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stages.classify.training import dataset
from stages.classify.training.dataset import Dataset
from stages.classify.training.splits import DEFAULT_SHARE
from stages.files.tables.label_table import LabelTable

Rows = npt.NDArray[np.int64]


def as_dataset(vectors: npt.NDArray[np.float32], labels: Sequence[str]) -> Dataset:
    """The dataset of vectors, float32 (n, d), and their labels. Ids are hashes of vectors and places, and determine
    the folds and the pictures that are held out."""
    ids = [hashlib.sha256(each.tobytes() + str(place).encode()).hexdigest() for place, each in enumerate(vectors)]
    order = sorted(range(len(ids)), key=ids.__getitem__)
    table = LabelTable(
        ids=[ids[row] for row in order],
        sources=[str(row) for row in order],
        labels=[labels[row] for row in order],
        thumbnails=[b""] * len(ids),
        model="",
        image_size=224,
        fit="pad",
        dimension=vectors.shape[1],
        held_out=DEFAULT_SHARE,
    )
    return dataset.divided([table], [vectors[order]])
