"""How often the words for a distance are right, on sets that make no scale: `python -m studies.likeness`."""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.kit import program, report
from stages.backbone.photographs import PHOTOGRAPHS
from stages.backbone.reference_pictures import reference_pictures
from stages.knn.vector_set import VectorSet
from stages.quality import distance_scale
from stages.quality.distance_limits import SIMILAR, VERY_SIMILAR, WEAK
from stages.quality.distance_scale import DistanceScale
from studies.kit import wheels
from studies.kit.environment import Unavailable
from studies.quality import PACKAGES, SETS
from studies.sets.labelled import Labelled, Picture
from studies.sets.ways import DEFAULT, Vectors, Way

_RESULTS = 12  # the nearest of each query that are judged, as the page shows them
_JUDGED = ("emoji", "sprites", "icons", "views")


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the scale of the default backbone for one size of pictures, and a table of each word's precision on each
    set; 1 if the wheels cannot be had."""
    given = _parse(arguments)
    program.exit_on_sigterm()
    way = replace(DEFAULT, size=given.size)
    try:
        found = wheels.unpacked(given.wheels or wheels.place(os.environ))
        with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
            vectors = Vectors(Path(scratch))
            print(report.place(report.machine(), report.versions(PACKAGES), report.commit()))
            scale = measured(vectors, way)
            print(f"\nvery similar up to {scale.euclidean.very_similar}, similar up to {scale.euclidean.similar}\n")
            print("\n".join(table([unseen(SETS[name](found)) for name in _JUDGED], vectors, way, scale)))
    except (Unavailable, OSError) as error:
        print(f"studies.likeness: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def measured(vectors: Vectors, way: Way) -> DistanceScale:
    """The scale that a push makes."""
    tried = reference_pictures(way.size)
    pictures, copies = (
        vectors.of(Labelled("references", tuple(Picture(Image.fromarray(each), "") for each in pixels)), way)
        for pixels in (tried.pictures, tried.copies)
    )
    scale = distance_scale.read(distance_scale.measured("", pictures, tried.labels, copies, tried.originals), "")
    assert scale is not None
    return scale


def unseen(labelled: Labelled) -> Labelled:
    """The pictures that the scale is not made from."""
    return replace(labelled, pictures=tuple(each for each in labelled.pictures if each.label not in PHOTOGRAPHS))


def table(sets: Sequence[Labelled], vectors: Vectors, way: Way, scale: DistanceScale) -> Iterator[str]:
    """For each set the share of the nearest pictures that has each word, and how many of them have the query's label;
    and the share of the queries for which nothing is similar."""
    words = (VERY_SIMILAR, SIMILAR, WEAK)
    yield f"| set | queries | {' | '.join(f'{word}: share, right' for word in words)} | nothing similar |"
    yield "|---" * (len(words) + 3) + "|"
    for each in sets:
        said, right = judged(each, vectors.of(each, way), scale)
        cells = (f"{(said == word).mean():.2f}, {_share(right[said == word])}" for word in words)
        yield f"| {each.name} | {len(said)} | {' | '.join(cells)} | {(said == WEAK).all(axis=1).mean():.2f} |"


def judged(
    labelled: Labelled, points: NDArray[np.float32], scale: DistanceScale
) -> tuple[NDArray[np.str_], NDArray[np.bool_]]:
    """The word for each of the nearest pictures of each query, and whether they have its label, both (queries, k)."""
    of, others = VectorSet(points), np.arange(len(labelled))
    said, right = [], []
    for query in labelled.asked:
        distances = of.distances(np.full(len(labelled), query), of, others)
        distances[labelled.houses == labelled.houses[query]] = np.inf
        nearest = np.argsort(distances, kind="stable")[:_RESULTS]
        said.append([scale.euclidean.likeness(each) for each in distances[nearest].tolist()])
        right.append(labelled.labels[nearest] == labelled.labels[query])
    return np.asarray(said), np.asarray(right)


def _share(right: NDArray[np.bool_]) -> str:
    return f"{right.mean():.2f}" if right.size else "none"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m studies.likeness", description=__doc__)
    parser.add_argument("--size", type=program.positive, default=DEFAULT.size, help="side of the pictures in pixels")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="the unpacked wheels, downloaded if missing")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
