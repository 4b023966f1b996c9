"""Vectors that expose rounding errors."""

import io
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from skimage import data

from stages.knn import searcher_factory
from stages.knn.backend import Vectors


def _features(pictures: NDArray[np.uint8], dimension: int = 96) -> Vectors:
    """Positive features of pictures, uint8 (n, 32, 32, 3), from a fixed layer, like the pooled ones of a network."""
    weights = np.random.default_rng(7).normal(size=(32 * 32 * 3, dimension)) / 55
    flat = pictures.reshape(len(pictures), -1).astype(np.float64) / 255
    return np.maximum(flat @ weights + 1, 0).astype(np.float32)


@cache
def _crops() -> NDArray[np.uint8]:
    """Real pictures, uint8 (n, 32, 32, 3)."""
    crops = []
    for photograph in (data.astronaut(), data.chelsea(), data.coffee(), data.rocket()):
        for top in range(0, photograph.shape[0] - 64, 48):
            crops += [photograph[top : top + 64 : 2, left : left + 64 : 2] for left in range(0, 256, 32)]
    return np.array([crop for crop in crops if crop.shape == (32, 32, 3)])


def _jpeg(picture: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


def one_pixel_family(random: np.random.Generator) -> Vectors:
    crops = _crops()
    variants = np.repeat(crops[:2], 100, axis=0)
    for picture in variants:
        picture[random.integers(32), random.integers(32)] ^= np.uint8(1)
    return _features(np.concatenate([crops, variants]))


def exact_copies(random: np.random.Generator) -> Vectors:
    vectors = _features(_crops())
    copied: Vectors = np.concatenate([vectors, np.repeat(vectors[3:5], 100, axis=0)])
    return copied[random.permutation(len(copied))]


def jpeg_reencodes(random: np.random.Generator) -> Vectors:
    crops = _crops()
    return _features(
        np.concatenate([crops, [_jpeg(crop, quality) for crop in crops[:8] for quality in range(40, 98, 3)]])
    )


def huge_norms(random: np.random.Generator) -> Vectors:
    """Vectors so long that float32 cannot distinguish most of them."""
    return (1e6 + random.normal(size=(400, 24)) * 1e-1).astype(np.float32)


def mixed_scales(random: np.random.Generator) -> Vectors:
    vectors = random.normal(size=(400, 24)) * 10.0 ** random.integers(-20, 18, size=(400, 1))
    vectors[random.integers(400, size=30)] = 0
    return vectors.astype(np.float32)


def near_constant(random: np.random.Generator) -> Vectors:
    """All roundings of a sum of equal numbers go one way: the worst case of a matrix product."""
    vectors: Vectors = (np.full((120, 2048), 0.1) * (1 + 1e-5 * random.normal(size=(120, 1)))).astype(np.float32)
    return vectors


def overflowing(random: np.random.Generator) -> Vectors:
    """Squares beyond float32, differences within it."""
    return (random.normal(size=(300, 16)) * 1e30 + 1e37).astype(np.float32)


def vanishing(random: np.random.Generator) -> Vectors:
    """Squares below float32."""
    return (random.normal(size=(300, 16)) * 1e-30).astype(np.float32)


def outlier(random: np.random.Generator) -> Vectors:
    """One huge vector, which must not spoil the bound of all the others."""
    vectors = random.normal(size=(500, 24))
    vectors[77] *= 1e15
    return vectors.astype(np.float32)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has a GPU, as far as its files tell."""
    monkeypatch.setattr(searcher_factory, "gpu_visible", lambda environment, devices=Path("/dev"): True)


FAMILIES = [
    one_pixel_family,
    exact_copies,
    jpeg_reencodes,
    huge_norms,
    mixed_scales,
    near_constant,
    overflowing,
    vanishing,
    outlier,
]


@cache
def _made(make: Callable[[np.random.Generator], Vectors]) -> Vectors:
    """A family, once for all tests, which must not change it."""
    vectors = make(np.random.default_rng(11))
    vectors.flags.writeable = False
    return vectors


@pytest.fixture(params=FAMILIES, ids=lambda family: family.__name__)
def family(request: pytest.FixtureRequest) -> Vectors:
    """Library vectors, float32 (n, d), of one hard kind; all of them can be queries."""
    return _made(request.param)
