"""Programs that find copies among pictures in files, lookalike's vectors and hashes and imagededup's methods: each as
distances between pictures and a threshold. Owns their use; judges nothing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.environment import SETUPS, cached, ensure, run
from benchmarks.pooled import POOLINGS, unit
from benchmarks.ways import DEFAULT, Vectors
from stages.contract import Input
from stages.decoderprocesses import DecoderProcesses
from stages.framing import PAD, Framing, Pixels, unpadded
from stages.perceptual import perceptual_hash
from stages.reading import Decoded, read

LOCK = SETUPS / "copies.lock"
VARIABLE = "LOOKALIKE_IMAGEDEDUP"
"""Names the directory of imagededup's environment, unless the option does."""

OURS, VECTORS, HASHES = "lookalike", "its vectors alone", "its hashes alone"
HAMMING = 10
"""imagededup's default for its hashes: pictures whose hashes differ in so many bits or fewer are copies."""

_BATCH = 256  # pictures embedded at once


@dataclass(frozen=True, slots=True)
class Finder:
    """A program and its results on n pictures. codes: (n, d), numbers or bits, whose squared Euclidean distance is that
    of the pictures, or its square if `root`; pairs: those it found, where it tells no more. default: the threshold that
    it finds pairs by, None if it is to be chosen."""

    name: str
    default: float | None = None
    codes: NDArray[np.float32] | None = None
    pairs: frozenset[tuple[int, int]] = frozenset()
    root: bool = False

    def distances(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """(m, m): between these pictures; without codes 0 for pairs that were found and infinite for others."""
        if self.codes is None:
            known = [self._known(one, other) for one in rows.tolist() for other in rows.tolist()]
            return np.reshape(known, (len(rows), len(rows)))
        codes = self.codes[rows].astype(np.float64)
        squares = (codes**2).sum(axis=1)
        apart = np.maximum(squares[:, None] + squares - 2 * codes @ codes.T, 0)
        return np.asarray(np.sqrt(apart)) if self.root else apart

    def _known(self, one: int, other: int) -> float:
        return 0.0 if (min(one, other), max(one, other)) in self.pairs else np.inf


def ours(paths: Sequence[Path], scratch: Path) -> tuple[Finder, Finder]:
    """The vectors of the default backbone and the perceptual hashes, of pictures in one directory, as the pipelines
    make them."""
    backbone = Vectors(scratch).backbone(DEFAULT.backbone, DEFAULT.size)
    vectors: dict[str, NDArray[np.float32]] = {}
    hashes: dict[str, NDArray[np.float32]] = {}
    with DecoderProcesses() as decoders:
        everything = read(Input("images", paths[0].parent, "", ""), Framing(DEFAULT.size, PAD), decoders)
        decoded = (each for each in everything if isinstance(each, Decoded))
        while batch := list(islice(decoded, _BATCH)):
            names = [each.source.path for each in batch]
            found = backbone(np.stack([each.framed.pixels for each in batch]))[POOLINGS.index(DEFAULT.pooling)]
            vectors |= zip(names, unit(found), strict=True)
            hashes |= {name: _own_bits(unpadded(each.framed)) for name, each in zip(names, batch, strict=True)}
    return (
        Finder(VECTORS, None, np.stack([vectors[path.name] for path in paths]), root=True),
        Finder(HASHES, None, np.stack([hashes[path.name] for path in paths])),
    )


def _own_bits(pixels: Pixels) -> NDArray[np.float32]:
    return _bits(f"{perceptual_hash(pixels):016x}")


def place(environment: Mapping[str, str]) -> Path:
    """The directory of imagededup's environment, existing or not."""
    return cached(environment, VARIABLE, "imagededup", LOCK)


def imagededup(paths: Sequence[Path], directory: Path, scratch: Path) -> tuple[list[Finder], str, dict[str, str]]:
    """Its methods at their defaults on files of one directory, its version, and for each method that cannot be used the
    reason. The environment is made if missing. Raises environment.Unavailable."""
    ensure(directory, LOCK, "imagededup", "2.5 GB to download, 6 GB on disk, minutes", VARIABLE)
    out = scratch / "imagededup.json"
    program = [str(directory / "bin" / "python"), str(SETUPS / "copies.py"), str(paths[0].parent), str(out)]
    run(program, "imagededup does not run")
    found = json.loads(out.read_text())
    methods = found["methods"]
    finders = [_finder(name, said, paths) for name, said in methods.items() if "reason" not in said]
    return finders, found["version"], {name: said["reason"] for name, said in methods.items() if "reason" in said}


def _finder(name: str, said: Mapping[str, Any], paths: Sequence[Path]) -> Finder:
    rows = {path.name: row for row, path in enumerate(paths)}
    pairs = frozenset((min(each), max(each)) for each in ((rows[one], rows[other]) for one, other in said["pairs"]))
    if said["hashes"] is None:
        return Finder(name, 0.0, None, pairs)
    codes = np.stack([_bits(said["hashes"][path.name]) for path in paths])
    return Finder(name, float(HAMMING), codes, pairs)


def _bits(text: str) -> NDArray[np.float32]:
    return np.unpackbits(np.frombuffer(bytes.fromhex(text), np.uint8)).astype(np.float32)
