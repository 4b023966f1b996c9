"""The judging of words: which pictures are judged, and what is right."""

import numpy as np
import pytest
from PIL import Image

from stages.quality.distance_limits import SIMILAR, VERY_SIMILAR, WEAK, DistanceLimits
from stages.quality.distance_scale import DistanceScale
from studies.likeness import judged, unseen
from studies.sets.labelled import Labelled, Picture

pytestmark = pytest.mark.soak

_LIMITS = DistanceLimits(0.0, 0.15, 0.3)
_SCALE = DistanceScale("", False, _LIMITS, _LIMITS)


def _labelled(*labels: str) -> Labelled:
    return Labelled("made", tuple(Picture(Image.new("RGB", (4, 4)), label) for label in labels))


def test_the_nearest_are_judged_by_their_words_and_labels_without_the_query() -> None:
    said, right = judged(_labelled("a", "a", "b", "b"), np.asarray([[0.0], [0.1], [0.25], [5.0]], np.float32), _SCALE)
    assert said[0].tolist() == [VERY_SIMILAR, SIMILAR, WEAK, WEAK]  # the last is the query itself, out of reach
    assert right[0].tolist()[:3] == [True, False, False]


def test_pictures_that_the_scale_is_made_from_are_left_out() -> None:
    assert [each.label for each in unseen(_labelled("cat", "mine", "moon")).pictures] == ["mine"]
