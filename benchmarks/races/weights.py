"""Writes random weights of ResNet50 without its top: `python -m benchmarks.races.weights FILE`. ImageNet's weights
cannot be downloaded everywhere and make no difference to the speed. A separate program, so that no other process loads
Keras."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras


def main(path: str) -> None:
    """Writes the weights to a file whose name ends in .weights.h5."""
    keras.utils.set_random_seed(0)
    keras.applications.ResNet50(weights=None, include_top=False).save_weights(path)


if __name__ == "__main__":
    main(sys.argv[1])
