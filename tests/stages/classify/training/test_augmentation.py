"""Changes of pictures: what each of them does, and that they depend on the seed, the epoch and the picture alone."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from stages.classify.training.augmentation import PictureChange, augmented, change, changed
from stages.classify.training.training_parameters import AugmentationParameters
from tests.example_counts import examples

NOTHING = PictureChange(False, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0)
NONE = AugmentationParameters(flip=False, shift=0, zoom=0, rotation=0, brightness=0, contrast=0)
ALL = AugmentationParameters(flip=True, shift=0.3, zoom=0.4, rotation=0.5, brightness=0.6, contrast=0.7)
IDS = [f"{number:064x}" for number in range(400)]

shares = st.floats(0, 0.5)


def test_nothing_changes_without_a_change(tiles: NDArray[np.uint8]) -> None:
    assert np.array_equal(changed(tiles[0], NOTHING), tiles[0])
    assert np.array_equal(augmented(tiles, NONE, 0, 0, IDS[: len(tiles)]), tiles)


def test_a_picture_is_mirrored(tiles: NDArray[np.uint8]) -> None:
    assert np.array_equal(changed(tiles[0], NOTHING._replace(mirrored=True)), np.fliplr(tiles[0]))


def test_a_picture_moves_by_shares_of_its_side_and_leaves_the_colour_of_its_border(tiles: NDArray[np.uint8]) -> None:
    moved = changed(tiles[0], NOTHING._replace(right=0.25, down=-0.125))
    assert np.array_equal(moved[:-12, 24:], tiles[0][12:, :-24])
    border = np.concatenate([tiles[0][[0, -1]].reshape(-1, 3), tiles[0][1:-1, [0, -1]].reshape(-1, 3)])
    filled = np.concatenate([moved[:, :24].reshape(-1, 3), moved[-12:].reshape(-1, 3)])
    assert (filled == np.rint(border.mean(axis=0))).all()


def test_a_picture_turns_clockwise(tiles: NDArray[np.uint8]) -> None:
    turned = changed(tiles[0], NOTHING._replace(turn=0.25)).astype(int)
    assert np.abs(turned - np.rot90(tiles[0], -1)).max() <= 1


def test_a_picture_grows_about_its_middle() -> None:
    picture = np.zeros((40, 40, 3), np.uint8)
    picture[15:25, 15:25] = 200
    grown = changed(picture, NOTHING._replace(zoom=2.0))
    assert grown[12:28, 12:28].min() == 200
    assert grown[:9].max() == grown[31:].max() == grown[:, :9].max() == grown[:, 31:].max() == 0


def test_brightness_multiplies_the_values_and_contrast_their_distance_from_the_mean() -> None:
    picture = np.full((8, 8, 3), 100, np.uint8)
    picture[:, 4:] = 140
    assert np.unique(changed(picture, NOTHING._replace(brightness=1.5))).tolist() == [150, 210]
    assert np.unique(changed(picture, NOTHING._replace(contrast=0.5))).tolist() == [110, 130]
    assert np.unique(changed(picture, NOTHING._replace(contrast=20.0))).tolist() == [0, 255]


@settings(max_examples=examples(60))
@given(st.booleans(), shares, shares, shares, shares, shares)
def test_changes_stay_in_their_ranges(
    flip: bool, shift: float, zoom: float, turn: float, light: float, contrast: float
) -> None:
    wanted = AugmentationParameters(flip, shift, zoom, turn, light, contrast)
    drawn = [change(wanted, 3, 2, id) for id in IDS[:50]]
    for each in drawn:
        assert max(abs(each.right), abs(each.down)) <= shift
        assert abs(each.zoom - 1) <= zoom + 1e-12
        assert abs(each.turn) <= turn
        assert abs(each.brightness - 1) <= light + 1e-12
        assert abs(each.contrast - 1) <= contrast + 1e-12
        assert flip or not each.mirrored


def test_the_ranges_are_filled_evenly() -> None:
    drawn = [change(ALL, 0, 0, id) for id in IDS]
    assert 0.4 < np.mean([each.mirrored for each in drawn]) < 0.6
    for values, most in (([each.right for each in drawn], 0.3), ([each.turn for each in drawn], 0.5)):
        assert min(values) < -0.95 * most
        assert max(values) > 0.95 * most
        assert abs(np.mean(values)) < 0.1 * most


@pytest.mark.parametrize("other", [(1, 0, IDS[0]), (0, 1, IDS[0]), (0, 0, IDS[1])], ids=["seed", "epoch", "picture"])
def test_a_change_depends_on_seed_epoch_and_picture(other: tuple[int, int, str]) -> None:
    assert change(ALL, 0, 0, IDS[0]) == change(ALL, 0, 0, IDS[0])
    assert change(ALL, *other) != change(ALL, 0, 0, IDS[0])


def test_a_picture_is_changed_alike_alone_and_among_others(tiles: NDArray[np.uint8]) -> None:
    together = augmented(tiles, ALL, 5, 1, IDS[: len(tiles)])
    alone = augmented(tiles[7:8], ALL, 5, 1, IDS[7:8])
    assert np.array_equal(together[7:8], alone)
    assert not np.array_equal(together[7], tiles[7])
