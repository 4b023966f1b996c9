"""Reads weights out of an ONNX file by the names that PyTorch's exporter gives to nodes: the path of a module, then the
operator. Names of a linear layer's weights are generated, those of its nodes are not. Knows no architecture."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from towers.plain import UnknownTowerError

_QUANTISED = ("Quantize", "Integer", "QLinear", "NBits")  # parts of the names of operators


class OnnxGraph:
    """path: the file. Scopes are paths of modules, as /text_model/encoder/layers.0/mlp/fc1. All methods raise
    UnknownTowerError for what the file does not have by that name."""

    def __init__(self, path: Path) -> None:
        """Raises UnknownTowerError for a file that is damaged or has other weights than of float32, operators of other
        makers than ONNX, branches, or weights in files that are not there or not beside it."""
        self.path = path
        try:
            model = onnx.load(path, load_external_data=False)
        except Exception as error:  # protobuf's own, which onnx does not name
            raise UnknownTowerError(f"{path.name} is not an ONNX file, or it is damaged: {error}") from error
        _check(model, path)
        self._opsets = model.opset_import
        self._tensors = {each.name: each for each in model.graph.initializer}
        self._makers: dict[str, Any] = {}  # of values that depend on no input
        self._scopes: dict[str, list[Any]] = {}
        for node in model.graph.node:  # each after those that it depends on
            self._scopes.setdefault(node.name.rpartition("/")[0], []).append(node)
            if all(map(self.is_constant, node.input)):
                self._makers |= dict.fromkeys(node.output, node)

    def is_constant(self, name: str) -> bool:
        return not name or name in self._tensors or name in self._makers

    def constant(self, name: str) -> Any:
        """The array by that name, which depends on no input."""
        if name in self._tensors:
            return numpy_helper.to_array(self._tensors[name], str(self.path.parent))
        if name not in self._makers:
            raise self._missing(name)
        node = self._makers[name]
        given = {each: self.constant(each) for each in node.input if each}
        ends = ([helper.make_empty_tensor_value_info(each) for each in names] for names in (given, node.output))
        model = helper.make_model(helper.make_graph([node], "constant", *ends), opset_imports=self._opsets)
        return dict(zip(node.output, ReferenceEvaluator(model).run(None, given), strict=True))[name]

    def linears(self, scope: str) -> list[list[Any]]:
        """The kernel (in, out) and the bias (out,) of each linear layer in a scope, in order; zeros for no bias."""
        found = []
        for node in self._nodes(scope, "MatMul", "Gemm"):
            if self.is_constant(node.input[1]):
                kernel = self.constant(node.input[1])
                turned = any(each.name == "transB" and each.i for each in node.attribute)
                kernel = kernel.T if turned else kernel
                sums = [
                    each.input for each in self._nodes(scope, "MatMul", "Gemm", "Add") if node.output[0] in each.input
                ]
                names = [*node.input[2:], *(each for both in sums for each in both if self.is_constant(each))]
                found.append([kernel, self.constant(names[0]) if names else np.zeros(kernel.shape[1], np.float32)])
        return found

    def linear(self, scope: str) -> list[Any]:
        """The kernel (in, out) and the bias (out,) of the linear layer in a scope."""
        if found := self.linears(scope):
            return found[0]
        raise self._missing(scope)

    def norm(self, scope: str) -> list[Any]:
        """The factors and the offsets of a layer normalisation, as one operator or as the steps of it."""
        nodes = self._nodes(scope, "LayerNormalization", "Mul", "Add")
        found = [self.constant(each) for node in nodes for each in node.input if self.is_constant(each)]
        return [each for each in found if each.ndim == 1 and each.size > 1]  # and not the epsilon

    def convolution(self, scope: str) -> list[Any]:
        """The kernel (side, side, in, out) and, if it has one, the bias (out,)."""
        kernel, *bias = map(self.constant, self._nodes(scope, "Conv")[0].input[1:])
        return [kernel.transpose(2, 3, 1, 0), *bias]

    def table(self, scope: str) -> Any:
        """The rows (n, d) of an embedding, also of one that gives the same rows in every pass."""
        same = f"{scope}/Gather_output_0"
        if self.is_constant(same):
            return self.constant(same)[0]
        return self.constant(self._nodes(scope, "Gather")[0].input[0])

    def has(self, scope: str) -> bool:
        return scope in self._scopes

    def _nodes(self, scope: str, *operators: str) -> list[Any]:
        found = [each for each in self._scopes.get(scope, []) if each.op_type in operators]
        if not found:
            raise self._missing(scope)
        return found

    def _missing(self, name: str) -> UnknownTowerError:
        return UnknownTowerError(
            f"{self.path.name} has no weights by the name {name}: only graphs of CLIP and SigLIP with the names that "
            "Optimum and transformers.js publish can be exported, not optimised ones"
        )


def _check(model: Any, path: Path) -> None:
    """Raises UnknownTowerError as `OnnxGraph`."""
    name, nodes, tensors = path.name, model.graph.node, [*_tensors(model.graph)]
    kinds = sorted({each.op_type for each in nodes if any(part in each.op_type for part in _QUANTISED)})
    if kinds:
        raise UnknownTowerError(f"{name} has quantised weights ({', '.join(kinds)}): take the file of float32")
    if any(each.data_type in (TensorProto.FLOAT16, TensorProto.BFLOAT16) for each in tensors):
        raise UnknownTowerError(
            f"{name} has weights of 16 bits, with which every runtime rounds in another way: take the file of float32"
        )
    if kinds := sorted({f"{each.op_type} of {each.domain}" for each in nodes if each.domain not in ("", "ai.onnx")}):
        raise UnknownTowerError(f"{name} was optimised for a runtime ({', '.join(kinds)}): take it as it was before")
    nested = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
    if model.functions or any(part.type in nested for each in nodes for part in each.attribute):
        raise UnknownTowerError(f"{name} has branches, loops or functions, which no exported CLIP or SigLIP has")
    for tensor in tensors:
        if tensor.data_location == TensorProto.EXTERNAL:
            _check_beside(next((each.value for each in tensor.external_data if each.key == "location"), ""), path)


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    yield from (part.t for each in graph.node for part in each.attribute if part.type == AttributeProto.TENSOR)


def _check_beside(location: str, path: Path) -> None:
    """Raises UnknownTowerError unless a file with weights is in the directory of an ONNX file or below."""
    directory = path.parent.resolve()
    if not (directory / location).resolve().is_relative_to(directory):
        raise UnknownTowerError(
            f"{path.name} has weights in {location!r}, outside of its directory, where nothing is read; if that is a "
            "symbolic link, copy the directory with `cp -rL` first"
        )
    if not (directory / location).is_file():
        raise UnknownTowerError(f"{path.name} has weights in {location!r}, which is not beside it: get that file too")
