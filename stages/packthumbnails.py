"""The files of thumbnails beside packs: one for each pack, with a thumbnail for each of its rows.

The file is apart, so that whatever reads pixels or names does not read thumbnails. It is NumPy's `.npy` (uint64,
(n + 1,)), the places at which the thumbnails begin and end, counted from the end of the array, and the thumbnails, JPEG
files. Equal content gives equal bytes. Knows no decoding and no Pachyderm.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from stages.contract import StageError
from stages.damage import LONGEST_HEADER, is_damage


def beside(npy: Path) -> Path:
    """The file of the thumbnails of a pack."""
    return npy.with_suffix(".thumbnails")


def write(npy: Path, count: int, thumbnails: Iterable[bytes]) -> None:
    """Writes the `count` thumbnails of a pack, in the order of its rows, one at a time."""
    places = np.zeros(count + 1, "<u8")
    with beside(npy).open("wb") as file:
        header = {"descr": "<u8", "fortran_order": False, "shape": places.shape}
        np.lib.format.write_array_header_1_0(file, header)  # type: ignore[no-untyped-call]
        begin = file.tell()
        file.write(places.tobytes())
        for row, each in enumerate(thumbnails):
            file.write(each)
            places[row + 1] = places[row] + len(each)
        file.seek(begin)
        file.write(places.tobytes())


def read(npy: Path, count: int) -> Iterator[bytes]:
    """The `count` thumbnails of a pack, in the order of its rows, one at a time.

    Raises StageError if `write` did not write their file, or for another number of them.
    """
    path = beside(npy)
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)  # type: ignore[no-untyped-call]
            shape, _, dtype = np.lib.format.read_array_header_1_0(file, LONGEST_HEADER)  # type: ignore[call-arg, no-untyped-call]
            if dtype != np.dtype("<u8") or shape != (count + 1,):
                raise ValueError(f"it holds {dtype} {shape} for {count} pictures")
            places = np.frombuffer(file.read(8 * (count + 1)), "<u8").astype(np.int64)
            sizes = np.diff(places)
            held = os.fstat(file.fileno()).st_size - file.tell()
            if len(sizes) != count or (sizes < 0).any() or places[0] or places[-1] != held:
                raise ValueError("it is not whole")
            for size in sizes.tolist():
                yield file.read(size)
    except FileNotFoundError as failure:
        raise StageError(
            f"{path.name} is missing: an older version of preprocess wrote its pack; {_AGAIN}"
        ) from failure
    except Exception as failure:
        if not is_damage(failure):
            raise
        raise StageError(f"{path.name} is not a file of thumbnails ({failure}); {_AGAIN}") from failure


_AGAIN = "run preprocess again: lookalike deploy --reprocess preprocess"
