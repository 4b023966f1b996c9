"""The layout stage: a sample of the library laid out on the map by UMAP, with clusters.

Runs on plain directories only, for `lookalike map fit`. Input `sample`: a directory with ids.npy (m × 64 bytes),
vectors.npy (float32, m × d) and about.json (origin, metric, and what is recorded as it is). Parameters: SEED. Writes
the files of a layout (stages.files.layout_files). One thread computes, since with several the order of sums varies.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    import os
    import sys

    from stages.datum import contract

    # Before NumPy and numba start their threads.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    sys.modules["tensorflow"] = None  # type: ignore[assignment]  # umap imports it where it can, and needs it for nothing here
    raise SystemExit(contract.run("stages.layout"))

import json
import platform
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import umap
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA

from stages.datum.contract import Datum, StageError
from stages.datum.stage_parameters import integer
from stages.files.layout_files import LEAST, TOO_FEW, Layout, projected
from stages.knn.vector_set import VectorSet
from stages.record import origin
from stages.record.origin import Origin

_NUMBERS = 50
"""Of the principal components, at most."""

_NEIGHBOURS = 15
_PACKAGES = ("umap-learn", "numpy", "scikit-learn", "scipy", "numba", "pynndescent")


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads SEED (default 0). Raises StageError unless it is a whole number below 2**32."""
    seed = integer(environment, "SEED", 0, 0, (1 << 32) - 1)

    def process(datum: Datum) -> None:
        sample = datum.inputs["sample"].path
        ids, vectors = np.load(sample / "ids.npy"), np.load(sample / "vectors.npy")
        about = json.loads((sample / "about.json").read_bytes())
        made = fit(ids, vectors, Origin.parse(about.pop("origin"), origin.ALL), about.pop("metric"), seed, about)
        made.write(datum.out)
        print(f"layout: {len(made)} pictures, {len(made.facts['clusters'])} clusters")

    return process


def fit(
    ids: NDArray[np.bytes_],
    vectors: NDArray[np.float32],
    of: Origin,
    metric: str,
    seed: int,
    about: Mapping[str, Any],
) -> Layout:
    """The layout of m pictures with these vectors, float32 (m, d). about: is recorded in its facts. Raises StageError
    for fewer than LEAST pictures, for vectors with NaN or infinities, and if all are equal."""
    if len(ids) < LEAST:
        raise StageError(TOO_FEW.format(len(ids)))
    prepared = VectorSet(vectors, metric, [each.decode() for each in ids.tolist()]).prepared
    if not np.ptp(prepared, axis=0).any():
        raise StageError("all pictures have the same vector, so there is nothing to lay out")
    analysis = PCA(min(_NUMBERS, len(ids), vectors.shape[1]), svd_solver="covariance_eigh").fit(
        prepared.astype(np.float64)
    )
    projection, points = projected(of, metric, prepared, analysis.mean_, analysis.components_)
    positions = _spread(_embedded(points, seed))
    clusters = _clusters(positions, seed)
    numbers, counts = np.unique(clusters[clusters >= 0], return_counts=True)
    facts = {
        **about,
        "seed": seed,
        "neighbours": _NEIGHBOURS,
        "explained": round(float(analysis.explained_variance_ratio_.sum()), 6),
        "sample": len(ids),
        "clusters": [
            {"x": round(float(x), 4), "y": round(float(y), 4), "sample": int(count)}
            for number, count in zip(numbers, counts, strict=True)
            for x, y in [np.median(positions[clusters == number].astype(np.float64), axis=0)]
        ],
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
    }
    return Layout(
        of,
        metric,
        ids,
        points=points.astype(np.int32),
        positions=positions,
        clusters=clusters,
        facts=facts,
        **projection,
    )


def _embedded(points: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """UMAP of the projections, (m, 2)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that a seed means one thread
        found = umap.UMAP(
            n_neighbors=min(_NEIGHBOURS, len(points) - 1), min_dist=0.3, random_state=seed, n_jobs=1, init="pca"
        ).fit_transform(points / max(1.0, np.abs(points).max()))
    if not np.isfinite(found).all():
        raise StageError("UMAP did not lay out all pictures: try another --seed")
    return np.asarray(found, np.float64)


def _spread(found: NDArray[np.float64]) -> NDArray[np.float32]:
    """Positions from -1 to 1, with the same scale both ways."""
    low, high = found.min(axis=0), found.max(axis=0)
    return np.asarray((found - (low + high) / 2) / (max(high - low) / 2 * 1.02), np.float32)


def _clusters(positions: NDArray[np.float32], seed: int) -> NDArray[np.int32]:
    """Dense regions of the map, numbered by their size; without at least two, as many parts as k-means makes."""
    least = max(8, len(positions) // 150)
    found = HDBSCAN(min_cluster_size=least, min_samples=5, copy=True).fit_predict(positions)
    if found.max() < 1:
        found = KMeans(8, random_state=seed, n_init=4).fit_predict(positions)
    numbers, counts = np.unique(found[found >= 0], return_counts=True)
    order = numbers[np.argsort(-counts, kind="stable")]
    renamed = np.full(int(found.max()) + 2, -1, np.int32)
    renamed[order] = np.arange(len(order))
    return np.asarray(renamed[found], np.int32)
