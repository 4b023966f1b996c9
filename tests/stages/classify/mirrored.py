"""Fine-tunes the pictures below a directory on several virtual devices of this machine's CPU, and prints the results.

A process of its own, since TensorFlow's devices are fixed when it first computes: python mirrored.py DIRECTORY DEVICES
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import tensorflow as tf

from stages import devices
from stages.classify import archive, dataset, finetuning, heads
from stages.classify.parameters import FineTune, Parameters
from stages.classify.pixels import framed
from stages.classify.trainer import devices as training_devices
from stages.framing import Framing


def main(directory: Path, number: int) -> None:
    """Prints the number of devices, and of the training its curves, its logits and whether it goes on from a state."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * number)
    devices.prepare({})
    given = dataset.read(directory / "labelled")
    tune = FineTune(epochs=12, learning_rate=0.002, batch_size=15)
    chosen = Parameters("tuned", head="mlp", hidden=(8,), dropout=0.1, epochs=5, folds=2, fine_tune=tune)
    trained = finetuning.train(given, chosen, tune, directory / "models", {})
    archive.save(trained.network, directory / "model.keras")
    unseen = given.unseen
    pictures = framed([given.thumbnails[row] for row in unseen], Framing(given.backbone.image_size, given.backbone.fit))
    loaded = archive.load(directory / "model.keras")(pictures).numpy()
    loss, accuracy = heads.loss_and_accuracy(trained.held_out, given.codes[unseen])
    kept = replace(tune, checkpoints=f"file://{directory}/runs-{number}", checkpoint_steps=1)
    again = finetuning.train(given, replace(chosen, fine_tune=kept), kept, directory / "models", {})
    print(
        json.dumps(
            {
                "devices": len(training_devices()),
                "curves": trained.curves,
                "held_out": [loss, accuracy],
                "weights": trained.weights,
                "saved": float(np.abs(loaded - trained.held_out).max()),
                "apart": float(np.abs(trained.logits - again.logits).max()),
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
