"""A backbone's file as a graph: the configuration of its network, and its weights, in the way that Keras reads them.

Knows no operations.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.backbone.backbone_file import ModelContents
from stages.backbone.backbone_spec import BackboneSpec
from stages.backbone.forward_passes import FEW
from stages.backbone.graphs.graph_operations import GraphSession, OperationGraph, Placeholder
from stages.backbone.graphs.keras_layers import KerasLayer, LayerOutput, UnfamiliarLayerError
from stages.backbone.graphs.tensorflow_library import OperationOutput
from stages.backbone.model_header import check_activation

_PIXELS = np.dtype(np.uint8)


class GraphNetwork:
    """A network that maps batches of one shape, and of a smaller one, to vectors. May be called from several threads at
    once."""

    def __init__(self, contents: ModelContents, spec: BackboneSpec, threads: int = 0) -> None:
        """contents: of the file of the backbone that the spec describes. threads: as in Session.

        Raises Unfamiliar if the network has something that is not known here, or is not as described; LibraryError if
        TensorFlow's library cannot be used.
        """
        graph = OperationGraph()
        try:
            self._full, self._few = (_added(graph, contents, spec, batch) for batch in (spec.batch, FEW))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise UnfamiliarLayerError(f"a configuration of another form ({error!r})") from error
        self._session = GraphSession(graph, threads)

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """uint8 RGB (batch, S, S, 3) to float32 (batch, dimension). Raises LibraryError if the machine fails."""
        return self._session.run([(self._full.given, pictures)], self._full.vectors)

    def few(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The same of FEW pictures, with the same weights. Bits may be other ones."""
        return self._session.run([(self._few.given, pictures)], self._few.vectors)


class _Pass(NamedTuple):
    """The input and the output of a graph for one size of batches."""

    given: Placeholder
    vectors: OperationOutput


def _added(graph: OperationGraph, contents: ModelContents, spec: BackboneSpec, batch: int) -> _Pass:
    """The network, which has one input and one output, for batches of that many pictures."""
    config = contents.config
    if config["class_name"] != "Functional":
        raise UnfamiliarLayerError(f"a model of the class {config['class_name']}")
    pixels, *layers = config["config"]["layers"]
    taken = _input(graph, pixels, spec, batch)
    values = {str(pixels["name"]): LayerOutput(taken.value, _PIXELS)}
    held = _by_layer([each["class_name"] for each in layers], contents.weights)
    for each, own in zip(layers, held, strict=True):
        inputs = [values[name] for name in _inputs(each)]
        made = values[each["name"]] = KerasLayer(graph, each["class_name"], each["config"], own).run(inputs)
        check_activation(graph.shape(made.output))
    given, last = (_only(config["config"][name]) for name in ("input_layers", "output_layers"))
    if given != pixels["name"]:
        raise UnfamiliarLayerError(f"the input {given}")
    vectors = values[last]
    if vectors.dtype != np.float32 or graph.shape(vectors.output) != [batch, spec.dimension]:
        raise UnfamiliarLayerError("another output than the description states")
    return _Pass(taken, vectors.output)


def _input(graph: OperationGraph, layer: Mapping[str, Any], spec: BackboneSpec, batch: int) -> Placeholder:
    (count, *shape), dtype = layer["config"]["batch_shape"], layer["config"]["dtype"]
    expected = [spec.image_size, spec.image_size, 3]
    if layer["class_name"] != "InputLayer" or dtype != "uint8" or shape != expected or count not in (None, spec.batch):
        raise UnfamiliarLayerError(f"an input of {dtype} {shape}")
    return graph.placeholder(_PIXELS, [batch, *shape])


def _only(ends: list[Any]) -> str:
    """The layer of the only input or output."""
    name, node, tensor = ends
    if not isinstance(name, str) or node or tensor:
        raise UnfamiliarLayerError("several inputs or outputs")
    return name


def _inputs(layer: Mapping[str, Any]) -> Iterator[str]:
    """The layers that a layer takes its inputs from."""
    (node,) = layer["inbound_nodes"] if len(layer["inbound_nodes"]) == 1 else [None]
    if node is None or any(value not in (None, False) for value in node["kwargs"].values()):  # such as training
        raise UnfamiliarLayerError(f"the uses of {layer['name']}")
    (given,) = node["args"]
    for each in given if isinstance(given, list) else [given]:
        yield _only(each["config"]["keras_history"])


def _by_layer(kinds: list[str], weights: Mapping[str, NDArray[Any]]) -> list[list[NDArray[Any]]]:
    """The weights of each layer in their order. Keras numbers the layers of a class."""
    numbers: Counter[str] = Counter()
    left = {path: value for path, value in weights.items() if "/seed_generator/" not in path}  # which trainings use
    found = []
    for kind in kinds:
        name = re.sub("([a-z])([A-Z])", r"\1_\2", re.sub("(.)([A-Z][a-z]+)", r"\1_\2", kind)).lower()
        place = f"layers/{name}_{numbers[name]}/vars" if numbers[name] else f"layers/{name}/vars"
        numbers[name] += 1
        own = [path for path in left if path.startswith(f"{place}/")]
        found.append([left.pop(path) for path in sorted(own, key=lambda path: int(path.rpartition("/")[2]))])
    if left:
        raise UnfamiliarLayerError(f"the weights {next(iter(left))}")
    return found
