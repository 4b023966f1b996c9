"""The order of an epoch, lots, and pictures made ahead."""

import threading

import numpy as np
import pytest

from stages.classify.training.epoch_batches import BatchRows, epoch_order, load_batches, split_rows
from stages.record.framing import Pixels

IDS = [f"{number:064x}" for number in range(100)]
ROWS = np.arange(10, 90)


def test_every_epoch_has_all_rows_in_an_order_of_its_own() -> None:
    orders = [epoch_order(ROWS, IDS, seed, epoch).tolist() for seed, epoch in ((0, 0), (0, 1), (1, 0))]
    assert all(sorted(each) == ROWS.tolist() for each in orders)
    assert len({*map(tuple, orders)}) == 3
    assert epoch_order(ROWS, IDS, 0, 0).tolist() == orders[0]


def test_other_pictures_do_not_change_the_order_of_the_rest() -> None:
    some = epoch_order(ROWS[::2], IDS, 0, 0).tolist()
    assert some == [row for row in epoch_order(ROWS, IDS, 0, 0).tolist() if row in some]


def test_rows_are_cut_into_lots_from_any_lot_on() -> None:
    assert [each.tolist() for each in split_rows(np.arange(7), 3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [each.tolist() for each in split_rows(np.arange(7), 3, 1)] == [[3, 4, 5], [6]]
    assert not list(split_rows(np.arange(7), 3, 3))


def pictures(rows: BatchRows) -> Pixels:
    return np.repeat(rows.astype(np.uint8), 12).reshape(-1, 2, 2, 3)


def test_pictures_come_in_the_order_of_the_lots_and_few_are_made_ahead() -> None:
    asked: list[int] = []

    def make(rows: BatchRows) -> Pixels:
        asked.extend(rows.tolist())
        return pictures(rows)

    coming = load_batches(make, split_rows(ROWS, 20))
    rows, given = next(coming)
    assert rows.tolist() == ROWS[:20].tolist()
    assert len(asked) <= 60
    rest = list(coming)
    assert np.concatenate([rows, *(each for each, _ in rest)]).tolist() == ROWS.tolist()
    assert np.array_equal(np.concatenate([given, *(each for _, each in rest)]), pictures(ROWS))


def test_a_picture_that_cannot_be_made_ends_it_and_its_threads() -> None:
    def make(rows: BatchRows) -> Pixels:
        if 50 in rows:
            raise ValueError("no picture")
        return pictures(rows)

    with pytest.raises(ValueError, match="no picture"):
        list(load_batches(make, split_rows(ROWS, 10)))
    assert not [each for each in threading.enumerate() if each.name.startswith("pictures")]
