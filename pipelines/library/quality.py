"""Precision of the answers, by labels known from names, and that of a plain colour histogram.

Pure functions over answers, pictures and a naming rule: knows no server, no file and no sample set.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

LabelFunction: TypeAlias = Callable[[str], str]
"""Maps a picture's true source path to its label."""

QueryVerdicts: TypeAlias = Sequence[Sequence[bool]]
"""For each query, nearest neighbour first: whether the neighbour has the query's label."""

BINS = 8
"""Levels of each colour channel in the histogram."""


def judge(lines: Iterable[str], label: LabelFunction) -> list[list[bool]]:
    """Compares the labels in the lines of neighbors.jsonl, one query each.

    A picture with several sources has all their labels, and one in common is enough.
    """
    verdicts = []
    for line in lines:
        answer = json.loads(line)
        wanted = {label(path) for path in answer["sources"]}
        verdicts.append([not wanted.isdisjoint(map(label, neighbour["sources"])) for neighbour in answer["neighbors"]])
    return verdicts


def precision(verdicts: QueryVerdicts, k: int) -> float:
    """Precision@k: the share of correct ones among each query's k nearest, averaged over the queries.

    A neighbour that is missing, in a library of fewer than k pictures, counts as wrong.
    Raises ValueError if there is no query or k is below 1.
    """
    if k < 1 or not verdicts:
        raise ValueError("precision needs at least one query and one neighbour")
    return sum(sum(row[:k]) for row in verdicts) / (k * len(verdicts))


def judge_histogram(
    library: Mapping[str, npt.NDArray[np.uint8]],
    queries: Mapping[str, npt.NDArray[np.uint8]],
    k: int,
    label: LabelFunction,
) -> list[list[bool]]:
    """The verdicts on the k nearest library pictures by colour histogram, the baseline for a backbone.

    Both map source paths to normalised pictures, (H, W, 3) uint8. As in a search, equal pictures are one neighbour, and
    equal distances are ordered alike in every run.
    """
    distinct = _distinct(library)
    if not distinct or not queries:
        return [[] for _ in queries]
    table = np.stack([histogram(library[paths[0]]) for paths in distinct])
    verdicts = []
    for path, picture in queries.items():
        distances = np.linalg.norm(table - histogram(picture), axis=1)
        nearest = np.argsort(distances, kind="stable")[:k]
        verdicts.append([label(path) in map(label, distinct[row]) for row in nearest])
    return verdicts


def histogram(picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """The colours of a picture (H, W, 3) uint8, as a unit vector (`BINS`³,) float64.

    Square roots of the shares of pixels in each cell of RGB space, so that the Euclidean distance is Hellinger's.
    """
    levels = picture.reshape(-1, 3).astype(np.int64) * BINS // 256
    cells = (levels[:, 0] * BINS + levels[:, 1]) * BINS + levels[:, 2]
    shares: npt.NDArray[np.float64] = np.bincount(cells, minlength=BINS**3) / len(cells)
    roots: npt.NDArray[np.float64] = np.sqrt(shares)
    return roots


def _distinct(pictures: Mapping[str, npt.NDArray[np.uint8]]) -> list[list[str]]:
    """The source paths of each distinct picture, in the order of their first paths."""
    groups: dict[tuple[tuple[int, ...], bytes], list[str]] = {}
    for path in sorted(pictures):
        groups.setdefault((pictures[path].shape, pictures[path].tobytes()), []).append(path)
    return list(groups.values())
