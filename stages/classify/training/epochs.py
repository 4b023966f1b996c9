"""Epochs of training as one compiled function: a batch costs no Python, where Keras's own loop takes milliseconds.

TensorFlow's kernels, without XLA, give the same bits with any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

CHUNK = 4096
"""Rows of a forward pass without training."""


def compiled(
    head: keras.Sequential, optimizer: keras.optimizers.Optimizer, smoothing: float
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Epochs of training, which return float32 (epochs, 4): the sum of the losses and the number of right predictions
    while training, and these of the rows of the validation after it; and a forward pass. Traced once for all folds:
    shapes that differ between them are left open."""
    labels = head.output_shape[1]
    variables = head.trainable_variables

    def forward(vectors: Any, mean: Any, deviation: Any, rows: Any, training: bool = False) -> Any:
        return head((tf.gather(vectors, rows) - mean) / deviation, training=training)

    def counted(logits: Any, own: Any) -> Any:
        return tf.cast(tf.argmax(logits, 1, tf.int32) == own, tf.float32)

    @tf.function(  # type: ignore[untyped-decorator]
        input_signature=[
            *(_reals(2), _whole(1), _reals(1), _reals(1), _reals(1), _whole(1)),
            *(_whole(3), _reals(3), _reals(2)),
        ],
        jit_compile=False,
    )
    def epochs(
        vectors: Any,
        codes: Any,
        weights: Any,
        mean: Any,
        deviation: Any,
        validation: Any,
        batches: Any,
        valid: Any,
        rates: Any,
    ) -> Any:
        sums = tf.TensorArray(tf.float32, tf.shape(batches)[0], element_shape=[4])
        for epoch in tf.range(tf.shape(batches)[0]):
            found = tf.zeros([4])
            for step in tf.range(tf.shape(batches)[1]):
                rows, counts = batches[epoch, step], valid[epoch, step]
                own = tf.gather(codes, rows)
                target = tf.one_hot(own, labels) * (1 - smoothing) + smoothing / labels
                with tf.GradientTape() as tape:
                    logits = forward(vectors, mean, deviation, rows, training=True)
                    losses = tf.nn.softmax_cross_entropy_with_logits(target, logits) * tf.gather(weights, rows) * counts
                    loss = tf.reduce_sum(losses) / tf.reduce_sum(counts)
                optimizer.learning_rate.assign(rates[epoch, step])
                optimizer.apply(tape.gradient(loss, variables), variables)
                found += tf.stack([tf.reduce_sum(losses), tf.reduce_sum(counted(logits, own) * counts), 0.0, 0.0])
            for begin in tf.range(0, tf.shape(validation)[0], CHUNK):
                rows = validation[begin : begin + CHUNK]
                own = tf.gather(codes, rows)
                logits = forward(vectors, mean, deviation, rows)
                losses = tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(own, labels), logits)
                found += tf.stack([0.0, 0.0, tf.reduce_sum(losses), tf.reduce_sum(counted(logits, own))])
            sums = sums.write(epoch, found)
        return sums.stack()

    return epochs, tf.function(forward, input_signature=[_reals(2), _reals(1), _reals(1), _whole(1)], jit_compile=False)


def _reals(axes: int) -> tf.TensorSpec:
    """Of float32 tensors of any shape."""
    return tf.TensorSpec([None] * axes, tf.float32)


def _whole(axes: int) -> tf.TensorSpec:
    """Of int32 tensors of any shape."""
    return tf.TensorSpec([None] * axes, tf.int32)
