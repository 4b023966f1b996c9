"""The old PyTorch format: the content of the real file, and the refusal of bad ones without running their code."""

import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.backbone.efficientnet import LITE
from stages.backbone.torch_file import read_tensors
from stages.datum.contract import StageError

LITE0 = LITE["efficientnet-lite0"]


def test_the_real_file_holds_296_tensors() -> None:
    tensors = read_tensors(LITE0.weights_file())
    assert len(tensors) == 296
    assert tensors["_conv_stem.weight"].shape == (32, 3, 3, 3)
    assert tensors["_fc.weight"].shape == (1000, 1280)
    assert tensors["_bn0.num_batches_tracked"].shape == ()
    assert {str(tensor.dtype) for tensor in tensors.values()} == {"float32", "int64"}
    assert all(tensor.flags.c_contiguous for tensor in tensors.values())
    assert all(
        np.isfinite(tensor).all() and (tensor != 0).any() for name, tensor in tensors.items() if "weight" in name
    )


@pytest.mark.parametrize("size", [0, 5, 20, 500, 30_000, 1_000_000, 18_826_031])
def test_a_truncated_file_is_refused(tmp_path: Path, size: int) -> None:
    (tmp_path / "w.pth").write_bytes(LITE0.weights_file().read_bytes()[:size])
    with pytest.raises(StageError, match=r"w\.pth is not a PyTorch weights file of the old format, or it is damaged"):
        read_tensors(tmp_path / "w.pth")


class Malicious:
    """Python's own unpickler would make a directory of it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_code_in_a_file_is_not_run(tmp_path: Path) -> None:
    bad = tmp_path / "w.pth"
    parts = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}, Malicious(tmp_path / "made")]
    bad.write_bytes(b"".join(pickle.dumps(part, protocol=2) for part in parts))
    with pytest.raises(StageError, match="it uses"):
        read_tensors(bad)
    assert not (tmp_path / "made").exists()


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "w.pth").write_bytes(pickle.dumps({"a": 1}) * 4)
    with pytest.raises(StageError, match="magic number"):
        read_tensors(tmp_path / "w.pth")
    with pytest.raises(StageError, match="cannot be read: No such file"):
        read_tensors(tmp_path / "missing.pth")


def tensor(shape: int, stride: int, count: int) -> bytes:
    """A file with a tensor of `shape` rows and columns, on a storage of `count` numbers, of which 1 is there."""
    four = struct.Struct("<i").pack
    storage = b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0aX\3\0\0\0cpuJ" + four(count) + b"NtQ"
    sizes = b"K\0" + b"".join(b"J" + four(each) + b"J" + four(each) + b"\x86" for each in (shape, stride))
    body = b"\x80\2}X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n(" + storage + sizes + b"tRs."
    before = (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
    numbers = pickle.dumps(["a"], 2) + struct.pack("<Qf", count, 0.5)
    return b"".join(pickle.dumps(each, 2) for each in before) + body + numbers


def test_numbers_that_are_not_in_the_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.pth"
    path.write_bytes(tensor(1, 0, 1))
    assert read_tensors(path)["w"] == 0.5
    path.write_bytes(tensor(100_000, 0, 1))
    with pytest.raises(StageError, match="a tensor has more numbers than its storage"):
        read_tensors(path)
    path.write_bytes(tensor(10_000, 1, 1 << 30))
    with pytest.raises(StageError, match="it ends early"):
        read_tensors(path)
