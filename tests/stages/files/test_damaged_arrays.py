"""Files of arrays whose header is damaged."""

from pathlib import Path

import numpy as np
import pytest

from stages.datum.contract import StageError
from stages.files.packs import read_pack
from stages.files.vector_files import read_vectors


def test_a_damaged_header_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.zeros((2, 1), np.float32))
    whole = (tmp_path / "v.npy").read_bytes()
    header = b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little")
    signs = header + b"-" * 8999 + b"1" + bytes(64)
    huge = whole.replace(b"(2, 1), }" + b" " * 11, b"(99999999999, 1), } ")
    assert huge != whole
    for broken in (huge, signs, whole.replace(b"), }", b"(, }")):
        (tmp_path / "b.npy").write_bytes(broken)
        for read in (read_pack, lambda path: read_vectors(path, 1)):
            with pytest.raises(StageError, match=r"b\.npy"):
                read(tmp_path / "b.npy")
