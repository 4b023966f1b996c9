"""Backbones and pictures for the stages' tests; slow ones are made once for all tests."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.shared_directories import once
from tests.stages.models import SmallModel


@pytest.fixture(scope="session", autouse=True)
def devices() -> None:
    """Prepared before any test makes a tensor: models that tests build themselves do not see to it."""
    if "tensorflow" in sys.modules:  # some test file imports it
        from stages.backbone import devices  # noqa: PLC0415

        devices.prepare({})


@pytest.fixture(scope="session")
def tiles() -> NDArray[np.uint8]:
    """37 different pieces of real photographs: uint8 (37, 96, 96, 3)."""
    data = pytest.importorskip("skimage.data")
    pieces = [
        photograph[top : top + 96, left : left + 96]
        for photograph in (data.astronaut(), data.chelsea())
        for top in range(0, photograph.shape[0] - 95, 96)
        for left in range(0, photograph.shape[1] - 95, 96)
    ]
    return np.stack(pieces)


@pytest.fixture(scope="session")
def lite0(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the two files of efficientnet-lite0 for pictures of 96 pixels."""

    def make(directory: Path) -> None:
        from stages.zoo import make_backbone  # noqa: PLC0415  Keras takes seconds; most tests do without

        make_backbone("efficientnet-lite0", 96, None, directory)

    return once(tmp_path_factory, "lite0", make)


@pytest.fixture(scope="session")
def small_model() -> SmallModel:
    """See SmallModel."""
    import keras  # noqa: PLC0415

    def build(size: int = 32, dimension: int = 4, seed: int = 0) -> keras.Model:
        pixels = keras.Input((size, size, 3), dtype="uint8", name="pixels")
        x = keras.layers.Rescaling(1 / 255, name="scaled")(pixels)
        start = keras.initializers.GlorotUniform(seed)
        x = keras.layers.Conv2D(dimension, 3, 2, name="one", kernel_initializer=start)(x)
        x = keras.layers.Conv2D(dimension, 3, 2, name="two", kernel_initializer=start)(x)
        return keras.Model(pixels, keras.layers.GlobalAveragePooling2D(name="vector")(x), name="small")

    return build
