"""The weights that Keras makes while it loads a model, bounded: it makes all that a configuration states, and only then
reads the file, which may hold none of them. Knows no files."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras

_SLACK = 8 << 20
"""Numbers that a model may have beside those of its file."""


class _WeightBudget(threading.local):
    """The numbers that this thread may still make; None for any."""

    left: int | None = None


_budget = _WeightBudget()


@contextmanager
def weights_of_at_most(numbers: int) -> Iterator[None]:
    """Within it a thread can make that many numbers of weights and some more; beyond, making one raises ValueError."""
    _budget.left = numbers + _SLACK
    try:
        yield
    finally:
        _budget.left = None


_initialised = keras.Variable.__init__


@functools.wraps(_initialised)
def _within_budget(self: keras.Variable, initializer: Any, shape: Any = None, *others: Any, **named: Any) -> None:
    if _budget.left is not None and isinstance(shape, tuple | list):
        _budget.left -= math.prod(shape)
        if _budget.left < 0:
            raise ValueError(f"its layers have more weights than its file, such as one of the shape {list(shape)}")
    _initialised(self, initializer, shape, *others, **named)


keras.Variable.__init__ = _within_budget
