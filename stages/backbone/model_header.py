"""The configuration of a .keras file before anything is built from it: how large a model it states.

Keras builds a model first and reads its weights afterwards, so a file of two kilobytes could take gigabytes. Does not
know Keras, nor what layers compute.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_LARGEST = 1 << 26  # numbers that a layer may give for one picture: a batch of 32 then takes 8 GiB
_MOST_LAYERS = 4000  # the largest networks of Keras have about 1,050
_SLACK = 1 << 20  # numbers that a model may have beside those of its file
STATELESS = ("keras.initializers", "keras.regularizers", "keras.constraints", "keras.dtype_policies")
"""Packages of the parts of layers that compute the same wherever they are equal."""

_WIDTHS = ("units", "filters", "output_dim", "embedding_dim", "intermediate_dim", "hidden_dim")
"""Settings of which a layer has at least as many weights."""


def check_header(config: Any, numbers: int) -> None:
    """Raises ValueError for a configuration of more layers than any network has, of more weights than the `numbers` in
    its file, or of arrays that do not fit in memory."""
    layers = list(filter(_is_layer, parts(config)))
    if len(layers) > _MOST_LAYERS:
        raise ValueError(f"it has {len(layers):,} layers, and the most are {_MOST_LAYERS:,}")
    stated = sum(_stated(layer["config"], layer.get("build_config")) for layer in layers)
    if stated > numbers + _SLACK:
        raise ValueError(f"its layers have at least {stated:,} weights, but the file holds {numbers:,}")
    for layer in layers:
        for shape in parts([layer.get("build_config"), layer["config"].get("batch_shape")]):
            if isinstance(shape, list) and all(each is None or type(each) is int for each in shape):
                check_activation(shape)


def check_activation(shape: Sequence[int | None]) -> None:
    """Raises ValueError if an array of this shape, with the pictures first, does not fit in memory."""
    size = math.prod(each or 1 for each in shape[1:])
    if size > _LARGEST:
        raise ValueError(f"a layer has {size:,} numbers for each picture, and the most are {_LARGEST:,}")


def parts(value: Any) -> Iterator[Any]:
    """A value of JSON, and all values in it."""
    yield value
    for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from parts(each)


def _is_layer(value: Any) -> bool:
    """Whether it is a model, a layer, or whatever else is not known to be a part of one."""
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("config"), Mapping)
        and value.get("module") not in STATELESS
        and not str(value.get("class_name")).endswith(("DTypePolicy", "__keras_tensor__"))
    )


def _stated(settings: Mapping[str, Any], built: Any) -> int:
    """The fewest weights that a layer can have: its width, times its kernel, its words or the width of its input."""
    widths = [settings[name] for name in _WIDTHS if type(settings.get(name)) is int]
    if not widths:
        return 0
    kernel = settings.get("kernel_size")
    others = [*(kernel if isinstance(kernel, list) else []), settings.get("input_dim")]
    if "units" in settings and isinstance(built, Mapping) and isinstance(built.get("input_shape"), list):
        # Half of it, as two weights of four bits are one number.
        others += [each // 2 for each in built["input_shape"][-1:] if type(each) is int]
    return int(max(widths)) * math.prod(each for each in others if type(each) is int and each > 0)
