from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from stages.knn.onnx_file import OnnxNode, OnnxVariable, model


def test_a_model_computes_its_nodes() -> None:
    random = np.random.default_rng(0)
    weights = random.normal(size=(130, 300)).astype(np.float32)  # lengths of one byte and of two
    offset = np.arange(300, dtype=np.float32)
    made = model(
        (OnnxNode("MatMul", ("left", "weights"), "product"), OnnxNode("Add", ("product", "offset"), "sum")),
        (OnnxVariable("left", "float32", (None, 130)),),
        OnnxVariable("sum", "float32", (None, 300)),
        {"weights": weights, "offset": offset},
    )
    session = onnxruntime.InferenceSession(made)
    left = random.normal(size=(7, 130)).astype(np.float32)
    (found,) = session.run(None, {"left": left})
    np.testing.assert_allclose(found, left @ weights + offset, rtol=1e-4, atol=1e-4)
    (given,), (taken,) = session.get_outputs(), session.get_inputs()
    assert (taken.name, taken.shape[1], taken.type) == ("left", 130, "tensor(float)")
    assert (given.name, given.shape[1]) == ("sum", 300)


def test_whole_numbers_and_an_operation_of_another_domain() -> None:
    whole = np.arange(-6, 6, dtype=np.int8).reshape(4, 3)
    tensors: dict[str, NDArray[Any]] = {
        "whole": whole,
        "one": np.array(1, np.float32),
        "scale": np.array([1, 2, -3], np.float32),
        "zero": np.array(5, np.uint8),
    }
    node = OnnxNode("MatMulIntegerToFloat", ("left", "whole", "one", "scale", "zero"), "product", "com.microsoft")
    made = model(
        (node,), (OnnxVariable("left", "uint8", (None, 4)),), OnnxVariable("product", "float32", (None, 3)), tensors
    )
    left = np.arange(8, dtype=np.uint8).reshape(2, 4)
    (found,) = onnxruntime.InferenceSession(made).run(None, {"left": left})
    assert np.array_equal(found, ((left.astype(int) - 5) @ whole.astype(int)) * np.array([1, 2, -3]))
