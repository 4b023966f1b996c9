"""Small sets of labelled pictures with a backbone, for fine-tuning."""

import hashlib
import io
import json
from pathlib import Path

import keras
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from skimage import data

from stages.backbone.backbone_spec import BackboneSpec, WeightsOrigin
from stages.backbone.backbones import describe, forward, save_backbone
from stages.backbone.embedder import Embedder
from stages.classify.training import dataset
from stages.classify.training.dataset import Dataset
from stages.classify.training.validation import TrainingResult
from stages.files.tables.label_table import LabelTable
from stages.record.framing import PAD
from stages.record.origin import Origin

SIDE = 32


def backbone(batch: int | None = None, dtype: str = "float32") -> keras.Model:
    """A backbone of two convolutions with random weights, whose batch normalisation and dropout would make it another
    one in training than in inference."""
    seed = keras.initializers.GlorotUniform(0)
    pixels = keras.Input((SIDE, SIDE, 3), batch_size=batch, dtype="uint8", name="pixels")
    x = keras.layers.Rescaling(1 / 255, name="scaled")(pixels)
    x = keras.layers.Conv2D(16, 3, 2, activation="relu", name="one", kernel_initializer=seed, dtype=dtype)(x)
    norm = keras.layers.BatchNormalization(name="norm", dtype=dtype)
    x = keras.layers.Dropout(0.5, name="dropout", seed=0, dtype=dtype)(norm(x))
    x = keras.layers.Conv2D(16, 3, 2, activation="relu", name="two", kernel_initializer=seed, dtype=dtype)(x)
    model = keras.Model(pixels, keras.layers.GlobalAveragePooling2D(name="vector", dtype="float32")(x), name="small")
    norm.set_weights([np.full(16, each, np.float32) for each in (1.1, 0.1, 0.3, 0.2)])
    return model


def pictures(each: int) -> tuple[NDArray[np.uint8], list[str]]:
    """So many pieces of each of three photographs, uint8 (n, SIDE, SIDE, 3), and the photographs' names."""
    pieces: list[NDArray[np.uint8]] = []
    labels: list[str] = []
    for name, photograph in (("astronaut", data.astronaut()), ("cat", data.chelsea()), ("coffee", data.coffee())):
        height, width, _ = photograph.shape
        places = [(top, left) for top in range(0, height - SIDE, 40) for left in range(0, width - SIDE, 40)]
        step = len(places) // each
        pieces += [photograph[top : top + SIDE, left : left + SIDE] for top, left in places[::step][:each]]
        labels += [name] * each
    return np.stack(pieces), labels


def labelled(
    spec: BackboneSpec, model: keras.Model, pictures: NDArray[np.uint8], labels: list[str]
) -> tuple[LabelTable, NDArray[np.float32]]:
    """A table of pictures, uint8 (n, SIDE, SIDE, 3), as the stage labelled writes it, and their vectors."""
    files = [_jpeg(each) for each in pictures]
    decoded = np.stack([np.asarray(Image.open(io.BytesIO(each))) for each in files])
    vectors = Embedder(forward(model), spec)(decoded)
    ids = [hashlib.sha256(each).hexdigest() for each in files]
    order = [row for _, row in sorted({id: row for row, id in enumerate(ids)}.items())]  # one of equal pictures
    table = LabelTable(
        ids=[ids[row] for row in order],
        sources=[f"picture-{row}.jpg" for row in order],
        labels=[labels[row] for row in order],
        thumbnails=[files[row] for row in order],
        origin=Origin(spec.sha256, PAD, spec.image_size, spec.dimension, spec.described, ("cpu",)),
        held_out=0.2,
    )
    return table, vectors[order]


def written(directory: Path, model: keras.Model, pictures: NDArray[np.uint8], labels: list[str]) -> Dataset:
    """The data set of the pictures, with the inputs of the stage train below the directory: /models and /labelled."""
    models, tables = directory / "models", directory / "labelled"
    models.mkdir()
    tables.mkdir()
    spec = save_backbone(model, describe(model, "small", "own", WeightsOrigin("test", "0" * 64)), models)
    table, vectors = labelled(spec, model, pictures, labels)
    np.save(tables / "0.npy", vectors)
    table.write(tables / "0.parquet")
    return dataset.divided([table], [vectors])


def numbers(trained: TrainingResult) -> bytes:
    """All that a training gives, as bytes."""
    file = io.BytesIO()
    np.savez(file, *trained.network.get_weights(), trained.logits, trained.held_out)
    return file.getvalue() + json.dumps(trained.curves).encode()


def _jpeg(picture: NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(file, "JPEG", quality=90)
    return file.getvalue()
