"""The pieces of an upload: all of its bytes, and none much larger than the others."""

from pathlib import Path

import pytest

from pipelines.client import upload_chunks


@pytest.mark.parametrize("sizes", [[], [0], [0, 0, 5], [1], [3, 4, 9], [10], [11], [25, 1], [4] * 9])
def test_pieces_have_about_one_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sizes: list[int]) -> None:
    monkeypatch.setattr(upload_chunks, "CHUNK_SIZE", 10)
    parts = [bytes([number]) * size for number, size in enumerate(sizes)]
    sent = list(upload_chunks.chunks_of(parts))
    assert b"".join(sent) == b"".join(parts)
    assert all(10 <= len(piece) < 20 for piece in sent[:-1])
    assert all(0 < len(piece) < 20 for piece in sent[-1:])
    (tmp_path / "file").write_bytes(b"".join(parts))
    for whole in (b"".join(parts), tmp_path / "file"):
        assert list(upload_chunks.chunks_of(whole)) == [
            b"".join(parts)[start : start + 10] for start in range(0, sum(sizes), 10)
        ]
