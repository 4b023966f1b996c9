"""A classifier's network as a file: equal networks give equal bytes, and reading one runs no code in it."""

import tempfile
from pathlib import Path

import keras

from stages.backbone.backbone_file import normalise
from stages.backbone.backbones import load_keras


def save(model: keras.Model, path: Path) -> None:
    """Writes a model, without the optimizer of one that was compiled. Equal configurations and weights give equal
    bytes: give every layer a name, since those that Keras makes up count the layers of the process."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        saved = Path(scratch) / "model.keras"
        _uncompiled(model).save(saved)
        normalise(saved, path)


def load(path: Path) -> keras.Model:
    """Reads a model from a seekable .keras file: Keras's own layers alone, without Lambda layers or pickles.

    Raises StageError, which names the file, for anything else.
    """
    return load_keras(path)


def _uncompiled(model: keras.Model) -> keras.Model:
    if not model.compiled:
        return model
    copy = type(model).from_config(model.get_config())
    copy.set_weights(model.get_weights())
    return copy
