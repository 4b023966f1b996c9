"""The same network and epochs in plain Keras, as a tutorial trains it: `python -m studies.mnist.plain_keras DIRECTORY
PICTURES PARAMETERS`. Prints the test pictures that are right, and their number.
"""

import json
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from PIL import Image

from stages.classify.training import convolutional, training_loop
from stages.classify.training.training_parameters import ConvolutionalParameters, parse
from studies.mnist import digits

SIDE = 32
"""That of the pipelines' pictures, see overlay.json."""


def main(directory: Path, most: int, file: Path) -> None:
    """Trains on the first pictures without every `folds`th, which validate each epoch, and tests the network."""
    parameters = parse(file.name, file.read_bytes())
    chosen = parameters.convolutional
    assert chosen is not None
    keras.utils.set_random_seed(parameters.seed)
    taken = _enlarged(digits.pictures(directory, digits.TRAIN)[:most])
    wanted = digits.labels(directory, digits.TRAIN)[:most]
    left_out = np.arange(len(taken)) % parameters.folds == 0
    network = convolutional.network(SIDE, 10, parameters, chosen)
    _fit(network, chosen, (taken[~left_out], wanted[~left_out]), (taken[left_out], wanted[left_out]))
    predicted = network.predict(_enlarged(digits.pictures(directory, digits.TEST)), verbose=0).argmax(axis=1)
    own = digits.labels(directory, digits.TEST)
    print(json.dumps({"right": int((predicted == own).sum()), "of": len(own)}))


def _fit(network: keras.Model, chosen: ConvolutionalParameters, training: tuple[Any, Any], validation: Any) -> None:
    taken, wanted = training
    changes = chosen.augmentation
    augment = keras.Sequential(
        [
            keras.layers.RandomTranslation(changes.shift, changes.shift, fill_mode="constant"),
            keras.layers.RandomRotation(changes.rotation, fill_mode="constant"),
            keras.layers.RandomZoom(changes.zoom, fill_mode="constant"),
        ]
    )
    steps = -(-len(taken) // chosen.batch_size) * chosen.epochs
    first = int(steps * training_loop.WARM_UP)
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, steps - first, warmup_target=chosen.learning_rate, warmup_steps=first
    )
    batches = tf.data.Dataset.from_tensor_slices((taken, wanted)).shuffle(len(taken)).batch(chosen.batch_size)
    changed = batches.map(lambda some, own: (augment(some, training=True), own), tf.data.AUTOTUNE)
    network.compile(
        keras.optimizers.AdamW(rate, chosen.weight_decay),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    fitted = network.fit(
        changed.prefetch(tf.data.AUTOTUNE), validation_data=validation, epochs=chosen.epochs, verbose=0
    )
    print(*(f"{each:.4f}" for each in fitted.history["val_accuracy"]), file=sys.stderr)


def _enlarged(pictures: Any) -> Any:
    """The pictures as the pipelines have them: RGB of SIDE pixels."""
    found = [Image.fromarray(each).convert("RGB").resize((SIDE, SIDE), Image.Resampling.LANCZOS) for each in pictures]
    return np.stack([np.asarray(each) for each in found])


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
