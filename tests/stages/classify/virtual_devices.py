"""Fine-tunes the pictures below a directory on several virtual devices of this machine's CPU, and prints the results.

A process of its own, since TensorFlow fixes its devices when it first computes: virtual_devices.py DIRECTORY DEVICES
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from stages.backbone import devices
from stages.backbone.backbones import load_keras, save_keras
from stages.classify.training import dataset, fine_tuning
from stages.classify.training.trainer import devices as training_devices
from stages.classify.training.training_parameters import AugmentationParameters, FineTuneParameters, TrainingParameters
from stages.classify.training.training_pixels import frame_thumbnails
from stages.record.framing import Framing


def results(directory: Path) -> dict[str, Any]:
    """Of a training of the pictures below a directory, on all devices: how many these are, curves, logits of held-out
    pictures, and the same from the network as it was saved."""
    given = dataset.read(directory / "labelled")
    tune = FineTuneParameters(
        epochs=8, learning_rate=0.001, batch_size=15, augmentation=AugmentationParameters(False, 0, 0, 0, 0, 0)
    )
    chosen = TrainingParameters("tuned", epochs=5, folds=2, class_weight="balanced", fine_tune=tune)
    trained = fine_tuning.train(given, chosen, tune, directory / "models", {})
    file = directory / "model.keras"
    save_keras(trained.network, file)
    framing = Framing(given.origin.image_size, given.origin.fit)
    loaded = load_keras(file)(frame_thumbnails([given.thumbnails[row] for row in given.unseen], framing))
    return {
        "devices": len(training_devices()),
        "curves": dict(trained.curves),
        "held_out": trained.held_out.tolist(),
        "saved": np.asarray(loaded).tolist(),
        "weights": trained.weights,
    }


def main(directory: Path, number: int) -> None:
    """Prints the results on so many devices."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * number)
    devices.prepare({})
    print(json.dumps(results(directory)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
