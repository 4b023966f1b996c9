"""The size of a pack's pictures, from the header of its `.npy` part. Without NumPy, which takes long to import."""

import re
from pathlib import Path

from stages.datum.contract import StageError

MAGIC = b"\x93NUMPY\x01\x00"  # version 1.0, in which packs are written
_SHAPE = re.compile(rb"'shape': \((\d{1,9}), ([1-9]\d{0,5}), ([1-9]\d{0,5}), (3)\)")


def picture_size(npy: Path) -> tuple[int, int]:
    """(width, height) of a pack's pictures in pixels. Raises StageError for a file that is not a pack."""
    try:
        with npy.open("rb") as file:
            head = file.read(len(MAGIC) + 2)
            _, height, width, _ = shape(head + file.read(int.from_bytes(head[len(MAGIC) :], "little")))
    except (OSError, ValueError) as failure:
        raise StageError(
            f"the pack {npy.name} cannot be read ({failure}); run preprocess again: "
            "lookalike deploy --reprocess preprocess"
        ) from failure
    return width, height


def shape(head: bytes) -> tuple[int, int, int, int]:
    """The shape (pictures, H, W, 3) of the array that begins with these bytes. Raises ValueError if no array of
    a pack does."""
    if not head.startswith(MAGIC):
        raise ValueError("it does not begin as one")
    found = _SHAPE.search(head, len(MAGIC) + 2)
    if found is None:
        raise ValueError("it is not an array of pictures")
    pictures, height, width, colours = map(int, found.groups())
    return pictures, height, width, colours
