"""The layers of Keras as operations of TensorFlow, the very ones that Keras runs, so that vectors are the same bit by
bit: `tests/stages/backbone/test_graphs.py` compares them.

A layer that is not here, or has a setting that is not read here, is Unfamiliar.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.backbone.graphs.graph_operations import OperationGraph
from stages.backbone.graphs.tensorflow_library import OperationOutput

LayerConfig = Mapping[str, Any]

_FLOAT, _INTEGER = np.dtype(np.float32), np.dtype(np.int32)
_OF_TRAINING = ("_initializer", "_regularizer", "_constraint", "momentum", "trainable", "synchronized")
_FLOAT32 = {"class_name": "DTypePolicy", "config": {"name": "float32"}, "module": "keras", "registered_name": None}
_LONGEST = 1e12  # 1 / the square root of Keras's smallest square of a length


class UnfamiliarLayerError(Exception):
    """A backbone of which not everything is known here; the text says of what."""


class LayerOutput(NamedTuple):
    """The output of a layer in a graph."""

    output: OperationOutput
    dtype: np.dtype[Any]


def settings(config: LayerConfig) -> dict[str, Any]:
    """The settings of a layer's configuration that have an effect after its training."""
    return {name: value for name, value in config.items() if name != "name" and not name.endswith(_OF_TRAINING)}


class KerasLayer:
    """One layer: its settings, which must all be read, and its weights, which must all be used."""

    def __init__(self, graph: OperationGraph, kind: str, config: LayerConfig, weights: Sequence[NDArray[Any]]) -> None:
        self.graph = graph
        self._kind = kind
        self._settings = settings(config)
        self._weights = list(weights)

    def run(self, inputs: Sequence[LayerOutput]) -> LayerOutput:
        """Adds the layer's operations. Raises Unfamiliar."""
        if self._kind not in _LAYERS:
            raise UnfamiliarLayerError(f"the layer {self._kind}")
        if self._kind != "Rescaling" and any(each.dtype != _FLOAT for each in inputs):
            raise UnfamiliarLayerError(f"{self._kind} of whole numbers")
        self.fixed("dtype", _FLOAT32)
        found = _LAYERS[self._kind](self, *inputs)
        if self._settings or self._weights:
            raise UnfamiliarLayerError(f"{self._kind} with {', '.join(self._settings) or 'more weights'}")
        return found

    def setting(self, name: str) -> Any:
        """The value of a setting."""
        if name not in self._settings:
            raise UnfamiliarLayerError(f"{self._kind} without {name}")
        return self._settings.pop(name)

    def fixed(self, name: str, *values: Any, absent: bool = False) -> None:
        """Reads a setting that has one of these values."""
        if absent and name not in self._settings:
            return
        value = self.setting(name)
        if value not in values:
            raise UnfamiliarLayerError(f"{self._kind} with {name}={value}")

    def square(self, name: str) -> list[int]:
        """A setting of two numbers, of height and width, for the four axes of a batch of pictures."""
        return [1, *self.setting(name), 1]

    def padding(self) -> str:
        value = self.setting("padding")
        if value not in ("same", "valid"):
            raise UnfamiliarLayerError(f"{self._kind} with padding={value}")
        return str(value).upper()

    def weight(self) -> OperationOutput:
        """Reads the next weight."""
        return self.graph.variable(self._next())

    def row(self) -> OperationOutput:
        """Reads the next weight as a row of pixels' channels."""
        value = self._next()
        return self.add("Reshape", self.graph.variable(value), self.whole([1, 1, 1, len(value)]))

    def _next(self) -> NDArray[Any]:
        if not self._weights or self._weights[0].dtype != _FLOAT:
            raise UnfamiliarLayerError(f"{self._kind} without weights of float32")
        return self._weights.pop(0)

    def whole(self, value: Any) -> OperationOutput:
        return self.graph.constant(np.asarray(value, _INTEGER))

    def number(self, value: Any) -> OperationOutput:
        return self.graph.constant(np.asarray(value, _FLOAT))

    def add(self, kind: str, *inputs: OperationOutput, **attributes: Any) -> OperationOutput:
        return self.graph.add(kind, *inputs, **attributes)


def _rescaling(layer: KerasLayer, given: LayerOutput) -> LayerOutput:
    pixels = given.output if given.dtype == _FLOAT else layer.add("Cast", given.output, SrcT=given.dtype, DstT=_FLOAT)
    scaled = layer.add("Mul", pixels, layer.number(layer.setting("scale")))
    return _floats(layer.add("AddV2", scaled, layer.number(layer.setting("offset"))))


def _convolution(layer: KerasLayer, given: LayerOutput) -> LayerOutput:
    layer.fixed("groups", 1)
    layer.setting("filters"), layer.setting("kernel_size")  # in the shape of the weights
    return _convolved(layer, "Conv2D", given)


def _depthwise(layer: KerasLayer, given: LayerOutput) -> LayerOutput:
    layer.setting("depth_multiplier"), layer.setting("kernel_size")  # in the shape of the weights
    return _convolved(layer, "DepthwiseConv2dNative", given)


def _convolved(layer: KerasLayer, kind: str, given: LayerOutput) -> LayerOutput:
    layer.fixed("data_format", "channels_last")
    layer.fixed("dilation_rate", [1, 1])
    strides = layer.square("strides")
    if kind != "Conv2D" and strides[1] != strides[2]:
        raise UnfamiliarLayerError(f"{kind} with strides={strides}")
    found = layer.add(kind, given.output, layer.weight(), strides=strides, padding=layer.padding())
    if layer.setting("use_bias"):
        found = layer.add("BiasAdd", found, layer.add("Squeeze", layer.row()))
    return _activated(layer, found)


def _dense(layer: KerasLayer, given: LayerOutput) -> LayerOutput:
    layer.fixed("quantization_config", None, absent=True)
    layer.setting("units")  # in the shape of the weights
    if len(layer.graph.shape(given.output)) != 2:
        raise UnfamiliarLayerError("Dense of more than one vector a picture")
    found = layer.add("MatMul", given.output, layer.weight())
    if layer.setting("use_bias"):
        found = layer.add("BiasAdd", found, layer.weight())
    return _activated(layer, found)


def _normalisation(layer: KerasLayer, given: LayerOutput) -> LayerOutput:
    layer.fixed("renorm", False, absent=True)
    layer.setting("renorm_clipping")
    weight = layer.weight if layer.setting("axis") == -1 else layer.row
    gamma = weight() if layer.setting("scale") else None
    beta = weight() if layer.setting("center") else None
    mean, variance = weight(), weight()
    inverse = layer.add("Rsqrt", layer.add("AddV2", variance, layer.number(layer.setting("epsilon"))))
    if gamma is not None:
        inverse = layer.add("Mul", inverse, gamma)
    scaled = layer.add("Mul", given.output, inverse)
    if beta is None:
        moved = layer.add("Mul", layer.add("Neg", mean), inverse)
    else:
        moved = layer.add("Sub", beta, layer.add("Mul", mean, inverse))
    return _floats(layer.add("AddV2", scaled, moved))


def _relu(layer: KerasLayer, given: LayerOutput) -> LayerOutput:
    layer.fixed("negative_slope", 0)
    layer.fixed("threshold", 0)
    most = layer.setting("max_value")
    if most not in (None, 6):
        raise UnfamiliarLayerError(f"ReLU with max_value={most}")
    return _floats(layer.add("Relu" if most is None else "Relu6", given.output))


def _activation(layer: KerasLayer, given: LayerOutput) -> LayerOutput:
    return _activated(layer, given.output)


def _activated(layer: KerasLayer, given: OperationOutput) -> LayerOutput:
    name = layer.setting("activation")
    if name not in _ACTIVATIONS:
        raise UnfamiliarLayerError(f"the activation {name}")
    kind = _ACTIVATIONS[name]
    return _floats(given if kind is None else layer.add(kind, given))


def _zero_padding(layer: KerasLayer, given: LayerOutput) -> LayerOutput:
    layer.fixed("data_format", "channels_last")
    edges = layer.whole([[0, 0], *layer.setting("padding"), [0, 0]])
    return _floats(layer.add("Pad", given.output, edges))


def _of_windows(kind: str, layer: KerasLayer, given: LayerOutput) -> LayerOutput:
    layer.fixed("data_format", "channels_last")
    window, strides = layer.square("pool_size"), layer.square("strides")
    return _floats(layer.add(kind, given.output, ksize=window, strides=strides, padding=layer.padding()))


def _over_pixels(kind: str, layer: KerasLayer, given: LayerOutput) -> LayerOutput:
    layer.fixed("data_format", "channels_last")
    layer.fixed("keepdims", False)
    return _floats(layer.add(kind, given.output, layer.whole([1, 2]), keep_dims=False))


def _flat(layer: KerasLayer, given: LayerOutput) -> LayerOutput:
    layer.fixed("data_format", "channels_last")
    pictures, *others = layer.graph.shape(given.output)
    return _floats(layer.add("Reshape", given.output, layer.whole([pictures, math.prod(others)])))


def _dropout(layer: KerasLayer, given: LayerOutput) -> LayerOutput:
    layer.setting("rate"), layer.setting("seed"), layer.setting("noise_shape")  # of trainings
    return given


def _sum(layer: KerasLayer, *given: LayerOutput) -> LayerOutput:
    first, *others = (each.output for each in given)
    for each in others:
        first = layer.add("AddV2", first, each)
    return _floats(first)


def _unit(layer: KerasLayer, given: LayerOutput) -> LayerOutput:
    squares = layer.add("Square", given.output)
    sums = layer.add("Sum", squares, layer.whole(layer.setting("axis")), keep_dims=True)
    inverse = layer.add("Minimum", layer.add("Rsqrt", sums), layer.number(_LONGEST))
    return _floats(layer.add("Mul", given.output, inverse))


def _floats(output: OperationOutput) -> LayerOutput:
    return LayerOutput(output, _FLOAT)


_ACTIVATIONS = {"linear": None, "relu": "Relu", "relu6": "Relu6", "sigmoid": "Sigmoid", "tanh": "Tanh"}
_LAYERS: dict[str, Callable[..., LayerOutput]] = {
    "Activation": _activation,
    "Add": _sum,
    "AveragePooling2D": partial(_of_windows, "AvgPool"),
    "BatchNormalization": _normalisation,
    "Conv2D": _convolution,
    "Dense": _dense,
    "DepthwiseConv2D": _depthwise,
    "Dropout": _dropout,
    "Flatten": _flat,
    "GlobalAveragePooling2D": partial(_over_pixels, "Mean"),
    "GlobalMaxPooling2D": partial(_over_pixels, "Max"),
    "MaxPooling2D": partial(_of_windows, "MaxPool"),
    "ReLU": _relu,
    "Rescaling": _rescaling,
    "UnitNormalization": _unit,
    "ZeroPadding2D": _zero_padding,
}
