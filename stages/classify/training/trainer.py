"""Steps of training of a network, on one device or on several GPUs that share each batch, and its whole state.

Steps on one device are deterministic: equal states and equal batches give equal bits. On several devices the order of
their sums is not defined, so results are equal in accuracy alone. TensorFlow only. Knows no files and no folds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from stages.classify.training.joint_network import computes_in_half, in_training
from stages.classify.training.training_parameters import ConvolutionalParameters, FineTuneParameters
from stages.record.framing import Pixels

FORWARD = 32
"""Pictures of every forward pass without training. Their logits may differ in the last bits by their places among
these, which only another training changes."""


class TrainingBatch(NamedTuple):
    """n pictures of a step: uint8 (n, S, S, 3); the codes of their labels, int32 (n,); their weights, float32 (n,)."""

    pictures: Pixels
    codes: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]


class StepSums(NamedTuple):
    """Sums over the pictures of steps: losses times weights, right predictions, and pictures."""

    loss: float = 0.0
    right: float = 0.0
    pictures: float = 0.0


def devices() -> list[str]:
    """The devices that train together: all GPUs that TensorFlow sees, or else the CPU."""
    found = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    return [each.name for each in found]


class Trainer:
    """A network, (n, S, S, 3) pictures to (n, L) logits, with its optimizer, AdamW."""

    def __init__(
        self,
        make: Callable[[], keras.Model],
        tune: FineTuneParameters | ConvolutionalParameters,
        label_smoothing: float,
        names: list[str],
    ) -> None:
        """make: builds the network, of which the weights that are trainable are trained: a joined one, whose backbone
        stays in inference mode, or a convolutional one. names: as from `devices`."""
        self._joined = isinstance(tune, FineTuneParameters)
        self._label_smoothing = label_smoothing
        self._strategy = tf.distribute.MirroredStrategy(names) if len(names) > 1 else tf.distribute.get_strategy()
        self._each = -(-tune.batch_size // len(names))  # pictures of a step on each device
        with self._strategy.scope():
            self.network = make()
            self._optimizer = _optimizer(self.network, tune.weight_decay)
        self._stepping = tf.function(self._on_all, jit_compile=False)
        self._forward = tf.function(lambda pictures: self.network(pictures, training=False), jit_compile=False)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Every number that later steps depend on: of the network, with its random generators, and of the optimizer."""
        return {name: np.array(variable.numpy()) for name, variable in self._variables().items()}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Sets what `state` gave. Raises KeyError or ValueError for the state of another network."""
        for name, variable in self._variables().items():
            variable.assign(state[name])

    def step(self, batch: TrainingBatch, learning_rate: float) -> Callable[[], StepSums]:
        """One step of training. Returns a function that waits for the sums over the batch, before the step, so that the
        next step can be prepared meanwhile."""
        self._optimizer.learning_rate.assign(learning_rate)
        several, each = self._strategy.num_replicas_in_sync, self._each
        filled = [_filled(values, several * each).reshape(several, each, *values.shape[1:]) for values in batch]
        found = self._stepping(*map(tf.constant, filled))
        return lambda: StepSums(*(float(value) for value in np.asarray(found)))

    def logits(self, pictures: Pixels) -> npt.NDArray[np.float32]:
        """The logits, (n, L), of at most FORWARD pictures."""
        given = np.asarray(self._forward(tf.constant(_filled(pictures, FORWARD))))
        return given[: len(pictures)].astype(np.float32)

    def _variables(self) -> dict[str, Any]:
        """By place and not by name, since Keras's names count what a process has built before."""
        both = {"network": self.network.variables, "optimizer": self._optimizer.variables}
        return {f"{kind}.{place}": each for kind, several in both.items() for place, each in enumerate(several)}

    def _on_all(self, pictures: tf.Tensor, codes: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        count = tf.math.count_nonzero(weights, dtype=tf.float32)
        found = self._strategy.run(self._on_one, args=(pictures, codes, weights, count))
        return self._strategy.reduce(tf.distribute.ReduceOp.SUM, found, axis=None)

    def _on_one(self, pictures: tf.Tensor, codes: tf.Tensor, weights: tf.Tensor, whole: tf.Tensor) -> tf.Tensor:
        """A device's part of a step; the optimizer adds up the gradients of all devices."""
        place = tf.distribute.get_replica_context().replica_id_in_sync_group
        pictures, codes, weights = pictures[place], codes[place], weights[place]
        with tf.GradientTape() as tape:
            found = in_training(self.network, pictures) if self._joined else self.network(pictures, training=True)
            logits = tf.cast(found, tf.float32)
            labels, smoothing = logits.shape[1], self._label_smoothing
            wanted = tf.one_hot(codes, labels) * (1 - smoothing) + smoothing / labels
            losses = tf.nn.softmax_cross_entropy_with_logits(wanted, logits) * weights
            loss = self._optimizer.scale_loss(tf.reduce_sum(losses) / whole)
        variables = self.network.trainable_variables
        self._optimizer.apply(tape.gradient(loss, [each.value for each in variables]), variables)
        counted = tf.cast(weights > 0, tf.float32)
        right = tf.cast(tf.argmax(logits, axis=1, output_type=tf.int32) == codes, tf.float32) * counted
        return tf.stack([tf.reduce_sum(each) for each in (losses, right, counted)])


def _optimizer(network: keras.Model, weight_decay: float) -> keras.optimizers.Optimizer:
    made = keras.optimizers.AdamW(weight_decay=weight_decay)  # each step has its own learning rate
    # Offsets and scales do not overfit; to pull them to zero changes what a network computes.
    made.exclude_from_weight_decay([each for each in network.trainable_variables if len(each.shape) < 2])
    if computes_in_half(network):
        made = keras.optimizers.LossScaleOptimizer(made)
    made.build(network.trainable_variables)
    return made


def _filled(values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """The rows with zeros after them, to `size` rows: every step has one shape, and zeros have no weight."""
    if len(values) == size:
        return values
    filled = np.zeros((size, *values.shape[1:]), values.dtype)
    filled[: len(values)] = values
    return filled
