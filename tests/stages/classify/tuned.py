"""Small data sets of real pictures, backbones beside them, and fine-tuning of them in processes of their own."""

import hashlib
import io
from pathlib import Path

import keras
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from stages.backbones import describe, save_backbone
from stages.backbonespec import BackboneSpec, Weights
from stages.classify import dataset
from stages.classify.dataset import Dataset
from stages.embedders import Embedder
from stages.framing import PAD
from stages.tables.labelled import Labelled, write_labelled

SIDE = 32


def labelled(
    spec: BackboneSpec, model: keras.Model, pictures: NDArray[np.uint8], labels: list[str]
) -> tuple[Labelled, NDArray[np.float32]]:
    """A table of pictures, uint8 (n, SIDE, SIDE, 3), as the stage labelled writes it, and their vectors."""
    files = [_jpeg(each) for each in pictures]
    decoded = np.stack([np.asarray(Image.open(io.BytesIO(each))) for each in files])
    vectors = Embedder(model, spec)(decoded)
    ids = [hashlib.sha256(each).hexdigest() for each in files]
    order = [row for _, row in sorted({id: row for row, id in enumerate(ids)}.items())]  # one of equal pictures
    table = Labelled(
        ids=[ids[row] for row in order],
        sources=[f"picture-{row}.jpg" for row in order],
        labels=[labels[row] for row in order],
        thumbnails=[files[row] for row in order],
        model=spec.sha256,
        image_size=spec.image_size,
        fit=PAD,
        dimension=spec.dimension,
        backbone=spec.described,
        devices=("cpu",),
        held_out=0.2,
    )
    return table, vectors[order]


def written(directory: Path, model: keras.Model, pictures: NDArray[np.uint8], labels: list[str]) -> Dataset:
    """The data set of the pictures, with the inputs of the stage train below the directory: /models and /labelled."""
    models, tables = directory / "models", directory / "labelled"
    models.mkdir()
    tables.mkdir()
    spec = save_backbone(model, describe(model, "small", "own", Weights("test", "0" * 64)), models)
    table, vectors = labelled(spec, model, pictures, labels)
    np.save(tables / "0.npy", vectors)
    write_labelled(table, tables / "0.parquet")
    return dataset.divided([table], [vectors])


def _jpeg(picture: NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(file, "JPEG", quality=90)
    return file.getvalue()
