"""The side of a picture: held out, or in a fold of the training pictures. Functions of its id alone.

Only the standard library. So a picture never changes sides when others come, and a picture that is held out at one
share is held out at every larger one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from stages.datum import stage_parameters
from stages.datum.contract import StageError

HELD_OUT = "HELD_OUT"
"""The variable of the stages: the share of the labelled pictures that no training sees."""

DEFAULT_SHARE, LARGEST_SHARE = 0.2, 0.9

_PARTS = 1 << 64


def share(environment: Mapping[str, str]) -> float:
    """The share of pictures that are held out, from the variable HELD_OUT. Raises StageError for a bad one."""
    found = stage_parameters.number(environment, HELD_OUT, DEFAULT_SHARE)
    if found > LARGEST_SHARE:
        raise StageError(
            f"{HELD_OUT}={found:g}: must be a number from 0 to {LARGEST_SHARE}; change it in the spec's env"
        )
    return found


def held_out(id: str, share: float) -> bool:
    """Whether a picture is held out. share: from 0, no picture, to 1, all of them."""
    return _place("held-out", id) < share * _PARTS


def fold(id: str, folds: int) -> int:
    """The fold of a picture, from 0 to folds - 1, independent of `held_out`."""
    return _place("fold", id) * folds // _PARTS


def _place(prefix: str, id: str) -> int:
    """A number below _PARTS, which is as good as random."""
    return int.from_bytes(hashlib.sha256(f"{prefix}:{id}".encode()).digest()[:8], "big")
