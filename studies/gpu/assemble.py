"""Unpacks one piece on the machine with the GPU; with the last one, links the machine's own CUDA libraries to where the
packages look for them, and tries the imports:

    python3 -m studies.gpu.assemble .gpu/pieces/knn-01.piece SITE
"""

import argparse
import hashlib
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from studies.gpu import pieces

SUMS = "SHA256SUMS"
"""The file beside the pieces that has their checksums, as sha256sum writes it."""

_CUDA_13 = (
    "cublas", "cublasLt", "cudart", "cufft", "cufile", "curand", "cusolver", "cusparse", "nvJitLink", "nvrtc",
    "nvrtc-builtins",
)  # fmt: skip
# TensorFlow opens these by name before it uses a GPU; the networks here call none of their functions.
_STANDINS = {
    "nvidia/cufft/lib/libcufft.so.11": "cufft",
    "nvidia/curand/lib/libcurand.so.10": "curand",
    "nvidia/nccl/lib/libnccl.so.2": "nccl",
}
_IMPORTS = {
    "knn": "import cuml; from cuml.neighbors import NearestNeighbors; print('cuml', cuml.__version__)",
    "keras": "import keras, jax; print('keras', keras.__version__, jax.devices())",
    "tensorflow": "import tensorflow as tf; print(tf.__version__, tf.config.list_physical_devices('GPU'))",
}
_CUDA = (Path("/usr/local"), ("cuda*/lib64", "cuda*/targets/x86_64-linux/lib"))
_SYSTEM = (Path("/usr/lib"), ("x86_64-linux-gnu",))


def main(arguments: Sequence[str] | None = None) -> int:
    """Unpacks the piece that the arguments (the command line's by default) name; 1 if it is damaged or, after the last
    one, an import fails."""
    parser = argparse.ArgumentParser(prog="python3 -m studies.gpu.assemble", description="Unpacks one piece.")
    parser.add_argument("piece", type=Path, metavar="PIECE")
    parser.add_argument("site", type=Path, metavar="SITE", help="the folder for the packages")
    given = parser.parse_args(arguments)
    piece: Path = given.piece
    if f"{digest(piece)}  {piece.name}" not in (piece.parent / SUMS).read_text().splitlines():
        print(f"{piece} is not the one that {SUMS} lists", file=sys.stderr)
        return 1
    missing = pieces.unpack(piece, given.site)
    print(f"{piece.name}: unpacked; {f'missing: {missing}' if missing else 'all are there'}")
    if missing:
        return 0
    kind = piece.name.partition("-")[0]
    link(kind, given.site, _machine())
    return _try(kind, given.site)


def digest(piece: Path) -> str:
    """The SHA-256 of a file."""
    with piece.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def link(kind: str, site: Path, folders: Sequence[Path]) -> None:
    """Links the libraries of CUDA that the packages of this kind lack from the first of the folders that has them; one
    that was carried stays."""
    if kind == "knn":
        wanted = [(f"nvidia/cu13/lib/{found.name}", found) for name in _CUDA_13 for found in _found(name, folders)]
        wanted += [(f"nvidia/nccl/lib/{found.name}", found) for found in _found("nccl", folders)]
    elif kind == "tensorflow":
        wanted = [(path, found) for path, name in _STANDINS.items() for found in _found(name, folders)]
    else:
        wanted = []
    for path, found in wanted:
        place = site / path
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(found)
            print(f"linked {path} to {found}")


def _machine() -> list[Path]:
    """The folders of the machine's own libraries, those of its Python packages first."""
    packages = Path(sysconfig.get_path("purelib")), ("nvidia/*/lib",)
    return [
        found
        for place, patterns in (packages, _CUDA, _SYSTEM)
        for pattern in patterns
        for found in sorted(place.glob(pattern))
    ]


def _found(name: str, folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(folder.glob(f"lib{name}.so*"))


def _try(kind: str, site: Path) -> int:
    environment = {**os.environ, "PYTHONPATH": str(site), "TF_CPP_MIN_LOG_LEVEL": "1", "KERAS_BACKEND": "jax"}
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-P", "-c", _IMPORTS[kind]], env=environment, timeout=180)
    print(f"first import: {time.monotonic() - start:.1f} s, exit code {done.returncode}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
