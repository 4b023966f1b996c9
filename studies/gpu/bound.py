"""The lower bound of every search: a bare product of the article's size, brute force and copies, by PyTorch."""

import sys
from collections.abc import Callable

import torch

from studies.gpu import notebook, vectors
from studies.gpu.notebook import REHEARSAL, Notebook, best

_ROUNDS = 2 if REHEARSAL else 5
_ON = "cpu" if REHEARSAL else "cuda"
_COPIED = 1 << (22 if REHEARSAL else 30)
"""Numbers of float32 in the copy within the card."""


def bound(notes: Notebook) -> None:
    """Seconds and rates; nothing that searches all pairs can be faster than the product."""
    left = torch.randn(vectors.QUERIES, vectors.DIMENSION, device=_ON)
    right = torch.randn(vectors.LIBRARY, vectors.DIMENSION, device=_ON)
    out = torch.empty(vectors.QUERIES, vectors.LIBRARY, device=_ON)
    operations = 2.0 * vectors.QUERIES * vectors.LIBRARY * vectors.DIMENSION
    for name, allowed in (("float32", False), ("TF32", True)):
        torch.backends.cuda.matmul.allow_tf32 = allowed
        taken = _best(lambda: torch.matmul(left, right.T, out=out))
        notes.note(f"product {name}", {**taken, "TFLOP/s": round(1e-12 * operations / taken["least"], 1)})
    torch.backends.cuda.matmul.allow_tf32 = False
    norms = (right * right).sum(1)

    def nearest() -> None:
        for some in left.split(2500):
            torch.topk(norms[None, :] - 2 * (some @ right.T), vectors.K, dim=1, largest=False).indices.cpu()

    notes.note("brute force by PyTorch, on the device", _best(nearest))
    one = torch.empty(_COPIED, device=_ON)
    other = torch.empty_like(one)
    taken = _best(lambda: other.copy_(one))
    notes.note("copy", {**taken, "GB/s read and written": round(8e-9 * _COPIED / taken["least"])})
    host = vectors.library()
    notes.note("library from host memory", _best(lambda: torch.from_numpy(host).to(_ON)))


def _best(work: Callable[[], object]) -> dict[str, float]:
    return best(lambda: (work(), None if REHEARSAL else torch.cuda.synchronize()), _ROUNDS)


if __name__ == "__main__":
    sys.exit(notebook.main({"bound": bound}))
