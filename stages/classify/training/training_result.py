"""A trained network and its predictions of pictures that its training had not seen: what every way of training gives.

Ways of training are `heads.train` (vectors) and `fine_tuning.train` (pictures); each raises runs.Failure, with the
reason, for a training that diverges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training on a Dataset with n training and m held-out pictures and L labels.

    network: trained on all training pictures, from inputs (batch, …) to logits (batch, L), not probabilities: the
    temperature and the softmax are put on top later. All its layers have names. logits: float32 (n, L), of each
    training picture in the order of Dataset.training, by the network of the fold that left it out. held_out: float32
    (m, L), logits of `network`, in the order of Dataset.unseen. curves: of runs.CURVES, a number for each epoch, the
    mean over the folds. weights: numbers that were trained in `network`.
    notes: of the run.
    """

    network: keras.Model
    logits: npt.NDArray[np.float32]
    held_out: npt.NDArray[np.float32]
    curves: Mapping[str, Sequence[float]]
    weights: int
    notes: Sequence[str] = ()
