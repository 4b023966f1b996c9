"""The networks of keras.applications as backbones: uint8 pixels in, vectors out. Knows no files of ours.

Each has the preparation of pixels that Keras has for it, as its first layers.
"""

import re
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
import numpy as np

from stages.backbone.backbone_spec import WeightsOrigin
from stages.backbone.backbones import sha256_of_numbers
from stages.backbone.catalogue import INSTALLED, CatalogueEntry, PixelPreparation
from stages.datum.contract import StageError
from stages.datum.text_format import first_line

_TIMEOUT = 30  # seconds without an answer before a download fails
_MEAN, _DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])  # of ImageNet's colours, 0 to 1
_CAFFE_MEAN = [-103.939, -116.779, -123.68]  # of blue, green, red


def application(entry: CatalogueEntry, image_size: int, weights: Path | None) -> tuple[keras.Model, WeightsOrigin]:
    """The network with Keras's ImageNet weights, from a file or else downloaded: uint8 RGB (n, S, S, 3) -> float32
    (n, entry.dimension).

    Raises StageError if the pictures are too small for it, the file holds other weights, or the download fails.
    """
    pixels = keras.Input((image_size, image_size, 3), dtype="uint8", name="pixels")
    try:
        base = _network(entry)(
            include_top=False,
            weights=None,
            pooling=entry.pooling,
            input_tensor=PREPARATIONS[entry.pixels](pixels),
            input_shape=(image_size, image_size, 3),  # checked only if stated
        )
    except ValueError as error:
        raise StageError(f"{entry.name} cannot take pictures of {image_size} px: {first_line(error)}") from error
    if weights is None:
        origin = "keras.applications: weights=imagenet"
        base.set_weights(_downloaded(entry, image_size).get_weights())
    else:
        origin = weights.name
        _load(base, entry, weights)
    _finish_scaling(base, entry)
    vector = base.output
    if entry.pooling == "avg":
        vector = keras.layers.UnitNormalization(name="vector")(vector)
    model = keras.Model(pixels, vector, name=entry.name)
    return model, WeightsOrigin(origin, sha256_of_numbers(model))


def _network(entry: CatalogueEntry) -> Callable[..., Any]:
    network: Callable[..., Any] = getattr(keras.applications, entry.network)
    return network


def _raw(pixels: Any) -> Any:
    return keras.layers.Rescaling(1.0, name="raw")(pixels)  # to float32


def _tf(pixels: Any) -> Any:
    """-1 to 1."""
    return keras.layers.Rescaling(1 / 127.5, -1.0, name="scaled")(pixels)


def _torch(pixels: Any) -> Any:
    scale, offset = 1 / (255 * _DEVIATION), -_MEAN / _DEVIATION
    return keras.layers.Rescaling(scale.tolist(), offset.tolist(), name="scaled")(pixels)


def _caffe(pixels: Any) -> Any:
    """Blue first, and centred."""
    return keras.layers.Rescaling(1.0, _CAFFE_MEAN, name="centred")(keras.ops.flip(pixels, axis=-1))


PREPARATIONS: dict[PixelPreparation, Callable[[Any], Any]] = {"raw": _raw, "tf": _tf, "torch": _torch, "caffe": _caffe}
"""Of pixels, uint8 RGB, by the name that keras.applications has for each: a tensor in, a tensor out."""


def _finish_scaling(base: keras.Model, entry: CatalogueEntry) -> None:
    """The files of EfficientNet B0 to B7 hold deviations of colours in place of variances. Keras makes up for it with
    a layer more, which it adds only if it takes the weights from its own server."""
    if re.fullmatch("EfficientNetB[0-7]", entry.network):
        (layer,) = (each for each in base.layers if isinstance(each, keras.layers.Normalization))
        mean, variance, *rest = layer.get_weights()
        layer.set_weights([mean, variance**2, *rest])
        layer.finalize_state()


def _load(base: keras.Model, entry: CatalogueEntry, path: Path) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Keras only warns about layers without weights
            base.load_weights(path)
    except Exception as error:  # Keras and h5py raise errors of many types for a wrong file
        raise StageError(
            f"{path} does not hold the weights of {entry.network} without its top ({first_line(error)}): "
            "give it the file that Keras downloads for weights='imagenet', include_top=False"
        ) from error


def _downloaded(entry: CatalogueEntry, image_size: int) -> keras.Model:
    try:
        with _download_timeout():
            return _network(entry)(include_top=False, weights="imagenet", input_shape=(image_size, image_size, 3))
    except Exception as error:  # urllib's errors come back from Keras as bare Exception
        why = first_line(error)
        address = next(iter(re.findall(r"https://\S+\.h5", why)), "that file")
        raise StageError(
            f"the weights of {entry.name} cannot be downloaded ({why}). Either download {address} on a machine with "
            f"internet access and run: lookalike model push {entry.name} --weights {address.rpartition('/')[2]}; "
            f"or use a backbone whose weights are installed: lookalike model push {INSTALLED[0]}"
        ) from error


@contextmanager
def _download_timeout() -> Iterator[None]:
    """Sets a time limit for sockets opened meanwhile: Keras's download has none of its own."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_TIMEOUT)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
