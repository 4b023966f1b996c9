"""The size of a pack's pictures, from the header of its `.npy` part. Without NumPy, which takes long to import."""

import ast
from pathlib import Path

from stages.contract import StageError

_MAGIC = b"\x93NUMPY\x01\x00"  # version 1.0, in which packs are written


def picture_size(npy: Path) -> tuple[int, int]:
    """(width, height) of a pack's pictures in pixels. Raises StageError for a file that is not a pack."""
    try:
        with npy.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise ValueError("it does not begin as one")
            header = file.read(int.from_bytes(file.read(2), "little")).decode("latin1")
            _, height, width, _ = ast.literal_eval(header)["shape"]
    except (OSError, ValueError, SyntaxError, KeyError, TypeError) as failure:
        raise StageError(
            f"the pack {npy.name} cannot be read ({failure}); run preprocess again: "
            "lookalike deploy --reprocess preprocess"
        ) from failure
    return width, height
