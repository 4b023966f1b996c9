"""Writes random weights of ResNet50 without its top: `python -m benchmarks.weights FILE`. ImageNet's cannot be
downloaded everywhere, and do not change how fast anything is. A program, so that nobody else must hold Keras."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras


def main(path: str) -> None:
    """Writes them; the name ends in .weights.h5."""
    keras.utils.set_random_seed(0)
    keras.applications.ResNet50(weights=None, include_top=False).save_weights(path)


if __name__ == "__main__":
    main(sys.argv[1])
