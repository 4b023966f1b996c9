"""The float64 brute force that every search is held against, and vectors that make rounding errors show."""

import io

import numpy as np
import pytest
from PIL import Image
from skimage import data


def brute(queries, library, k, metric="euclidean", exclude=None):
    """Distances (float32) and rows of the k nearest, all pairs in float64, ties by row: obviously right, and slow."""
    q, x = queries.astype(np.float64), library.astype(np.float64)
    if metric == "cosine":
        q = q / np.where((n := np.sqrt((q * q).sum(axis=1))) > 0, n, 1)[:, None]
        x = x / np.where((n := np.sqrt((x * x).sum(axis=1))) > 0, n, 1)[:, None]
    distances = np.empty((len(q), len(x)), dtype=np.float32)
    for row, query in enumerate(q):
        squares = ((query - x) ** 2).sum(axis=1)
        if metric == "cosine":
            squares += query.any() != x.any(axis=1)
        distances[row] = np.sqrt(squares) if metric == "euclidean" else squares / 2
    if exclude is not None:
        known = np.flatnonzero(exclude >= 0)
        distances[known, exclude[known]] = np.inf
    rows = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, rows, axis=1), rows


def _features(pictures, dimension=96):
    """Pictures, uint8 (n, 32, 32, 3), through a fixed layer of positive features, as a network's pooled ones are."""
    weights = np.random.default_rng(7).normal(size=(32 * 32 * 3, dimension)) / 55
    flat = pictures.reshape(len(pictures), -1).astype(np.float64) / 255
    return np.maximum(flat @ weights + 1, 0).astype(np.float32)


def _crops():
    """Real pictures, uint8 (n, 32, 32, 3)."""
    crops = []
    for photograph in (data.astronaut(), data.chelsea(), data.coffee(), data.rocket()):
        for top in range(0, photograph.shape[0] - 64, 48):
            crops += [photograph[top : top + 64 : 2, left : left + 64 : 2] for left in range(0, 256, 32)]
    return np.array([crop for crop in crops if crop.shape == (32, 32, 3)])


def _jpeg(picture, quality):
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


def one_pixel_family(random):
    crops = _crops()
    variants = np.repeat(crops[:3], 100, axis=0)
    for picture in variants:
        picture[random.integers(32), random.integers(32)] ^= np.uint8(1)
    return _features(np.concatenate([crops, variants]))


def exact_copies(random):
    vectors = _features(_crops())
    return np.concatenate([vectors, np.repeat(vectors[3:5], 100, axis=0)])[random.permutation(len(vectors) + 200)]


def jpeg_reencodes(random):
    crops = _crops()
    return _features(
        np.concatenate([crops, [_jpeg(crop, quality) for crop in crops[:12] for quality in range(40, 98, 3)]])
    )


def huge_norms(random):
    """Vectors so long that float32 sees no difference between most of them."""
    return (1e6 + random.normal(size=(400, 24)) * 1e-1).astype(np.float32)


def mixed_scales(random):
    vectors = random.normal(size=(400, 24)) * 10.0 ** random.integers(-20, 18, size=(400, 1))
    vectors[random.integers(400, size=30)] = 0
    return vectors.astype(np.float32)


def near_constant(random):
    """All roundings of a sum of equal numbers point one way: the worst case of a matrix product."""
    return (np.full((300, 2048), 0.1) * (1 + 1e-5 * random.normal(size=(300, 1)))).astype(np.float32)


def overflowing(random):
    """Squares beyond float32, differences within it."""
    return (random.normal(size=(300, 16)) * 1e30 + 1e37).astype(np.float32)


def vanishing(random):
    """Squares below float32."""
    return (random.normal(size=(300, 16)) * 1e-30).astype(np.float32)


def outlier(random):
    """One huge vector must not spoil the bound for all the others."""
    vectors = random.normal(size=(500, 24))
    vectors[77] *= 1e15
    return vectors.astype(np.float32)


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


@pytest.fixture
def oracle():
    return brute


@pytest.fixture(params=FAMILIES, ids=lambda family: family.__name__)
def family(request):
    """Library vectors, float32 (n, d), of one hard kind; any of them can be asked for."""
    return request.param(np.random.default_rng(11))
