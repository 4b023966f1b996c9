"""Owns the array libraries of a bare CUDA machine, CuPy and PyTorch, for the GPU benchmark: copying vectors, a plain
matrix product, and a brute-force search that serves only as a labelled comparison. NumPy replaces them where the
benchmark is tried without a GPU."""

import importlib
import importlib.util
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

_TILE_BYTES = 1 << 30  # bytes of distances held at once


class Arrays(Protocol):
    """An array library on one device."""

    name: str

    def put(self, values: Vectors) -> Any:
        """A copy on the device."""
        ...

    def product(self, left: Any, right: Any) -> Any:
        """left @ right.T in float32, without TF32; done when this returns."""
        ...

    def nearest(self, queries: Any, library: Any, k: int) -> NDArray[np.int64]:
        """Rows of the k nearest by |x|² - 2 q·x, nearest first, (n, k), in host memory. Not exact: near rows may
        change places."""
        ...


class XpArrays:
    """CuPy, or NumPy for trials."""

    def __init__(self, module: str) -> None:
        self.name = {"cupy": "CuPy", "numpy": "NumPy"}[module]
        self._xp = importlib.import_module(module)

    def put(self, values: Vectors) -> Any:
        """See Arrays."""
        return self._xp.asarray(values)

    def product(self, left: Any, right: Any) -> Any:
        """See Arrays."""
        made = left @ right.T
        if self.name == "CuPy":
            self._xp.cuda.Device().synchronize()
        return made

    def nearest(self, queries: Any, library: Any, k: int) -> NDArray[np.int64]:
        """See Arrays. One pass over the distances for each of the k: CuPy's partition sorts all of them."""
        xp, norms = self._xp, self._xp.einsum("ij,ij->i", library, library)
        rows = np.empty((len(queries), k), np.int64)
        for some in _tiles(len(queries), len(library)):
            squares = norms[None, :] - 2 * (queries[some] @ library.T)
            every = xp.arange(len(squares))
            for rank in range(k):
                best = squares.argmin(axis=1)
                rows[some, rank] = best.get() if self.name == "CuPy" else best
                squares[every, best] = xp.inf
        return rows


class TorchArrays:
    """PyTorch on its first CUDA device, or else on the CPU."""

    name = "PyTorch"

    def __init__(self) -> None:
        self._torch = importlib.import_module("torch")
        self._torch.backends.cuda.matmul.allow_tf32 = False
        self._device = "cuda" if self._torch.cuda.is_available() else "cpu"

    def put(self, values: Vectors) -> Any:
        """See Arrays."""
        return self._torch.from_numpy(values).to(self._device)

    def product(self, left: Any, right: Any) -> Any:
        """See Arrays."""
        made = left @ right.T
        if self._device == "cuda":
            self._torch.cuda.synchronize()
        return made

    def nearest(self, queries: Any, library: Any, k: int) -> NDArray[np.int64]:
        """See Arrays."""
        norms = (library * library).sum(dim=1)
        rows = np.empty((len(queries), k), np.int64)
        for some in _tiles(len(queries), len(library)):
            squares = norms[None, :] - 2 * (queries[some] @ library.T)
            rows[some] = self._torch.topk(squares, k, dim=1, largest=False).indices.cpu().numpy()
        return rows


def on_gpu() -> list[Arrays]:
    """The libraries that are installed and find a GPU."""
    found: list[Arrays] = []
    if importlib.util.find_spec("cupy") is not None and importlib.import_module("cupy").is_available():
        found.append(XpArrays("cupy"))
    if importlib.util.find_spec("torch") is not None and importlib.import_module("torch").cuda.is_available():
        found.append(TorchArrays())
    return found


def _tiles(queries: int, library: int) -> list[slice]:
    rows = max(1, _TILE_BYTES // (4 * library))
    return [slice(start, min(start + rows, queries)) for start in range(0, queries, rows)]
