"""The probability, in per cent, that two pictures are of the same thing, by the calibration that evaluate wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy.typing as npt

from stages.quality import calibration


@dataclass(frozen=True)
class SimilarityCalibration:
    """A calibration for the distances of one model, given by its identity hash, and metric. knots: see
    stages.quality.calibration."""

    model: str
    metric: str
    knots: tuple[tuple[float, float], ...]

    def per_cent(self, distances: npt.ArrayLike) -> Sequence[float]:
        """The per cents, 0 to 100 with one decimal, for distances of any shape (n,)."""
        found = 100 * calibration.probability(self.knots, distances)
        return [round(float(each), 1) for each in found]


def read(content: bytes) -> SimilarityCalibration | None:
    """The calibration in a calibration.json; None for one without pairs, and for anything else."""
    try:
        held = json.loads(content)
        knots = tuple((float(distance), float(share)) for distance, share in held["knots"])
        facts = held["facts"]
        return SimilarityCalibration(str(facts["model"]), str(facts["metric"]), knots) if knots else None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
