"""The type of the stages' fixture for small backbones. Loads no Keras."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import keras


class SmallModel(Protocol):
    """Builds a small backbone: uint8 (n, size, size, 3) in, float32 (n, dimension) out, weights from the seed."""

    def __call__(self, size: int = 32, dimension: int = 4, seed: int = 0) -> "keras.Model": ...
