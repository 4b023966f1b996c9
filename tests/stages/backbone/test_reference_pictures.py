"""The reference pictures: always the same, of every photograph, with copies that differ from their originals."""

from collections import Counter

import numpy as np

from stages.backbone.photographs import PHOTOGRAPHS
from stages.backbone.reference_pictures import reference_pictures


def test_they_are_the_same_every_time_and_show_every_photograph() -> None:
    found, again = reference_pictures(32), reference_pictures(32)
    assert found.pictures.shape == (len(found.labels), 32, 32, 3)
    assert np.array_equal(found.pictures, again.pictures) and np.array_equal(found.copies, again.copies)
    assert Counter(found.labels).keys() == PHOTOGRAPHS.keys()
    assert min(Counter(found.labels).values()) >= 4
    assert len({each.tobytes() for each in found.pictures}) == len(found.labels)


def test_copies_look_like_their_originals() -> None:
    found = reference_pictures(32)
    originals = found.pictures[list(found.originals)].astype(int)
    apart = np.abs(found.copies - originals).mean(axis=(1, 2, 3))
    others = np.abs(found.copies - np.roll(originals, 5, axis=0)).mean(axis=(1, 2, 3))
    assert len(found.copies) == len(originals) > 50
    assert (apart > 0).all()
    assert np.median(apart) < np.median(others) / 3
