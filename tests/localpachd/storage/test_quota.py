"""The most bytes that a store may hold."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from localpachd.database import Database
from localpachd.errors import OverQuota
from localpachd.storage.chunk_store import SMALL, ChunkStore
from localpachd.storage.quota import Quota

BIG = 1 << 20


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def test_the_last_byte_fits() -> None:
    quota = Quota(limit=10, used=lambda: 4)
    assert not quota.lacks(6) and quota.lacks(7)


@pytest.mark.parametrize("size", [SMALL - 1, BIG])
def test_what_would_exceed_it_is_refused(tmp_path: Path, size: int) -> None:
    store = ChunkStore(tmp_path, quota=8 * BIG)
    stored = []
    with pytest.raises(OverQuota, match=r"quota of 8.389 MB is used up .*delete files.*--retention.*raise --quota"):
        for seed in range(1000):
            stored.append(store.put(noise(size, seed)))
    assert 0.85 * 8 * BIG < len(stored) * size <= 8 * BIG
    assert store.put(noise(size, 0)) == stored[0]  # takes no more room
    store.flush()
    assert store.get(stored[-1]) == noise(size, len(stored) - 1)
    store.close()


def test_the_trash_makes_room_before_its_day_is_over(tmp_path: Path) -> None:
    store = ChunkStore(tmp_path, quota=4 * BIG)
    kept, gone = store.put(noise(BIG, 1)), [store.put(noise(BIG, seed)) for seed in (2, 3)]
    store.flush()
    assert store.sweep([kept]) == 2
    assert store.empty_trash(86400) == 0
    more = [store.put(noise(BIG, seed)) for seed in (4, 5)]
    assert sorted(store.hashes()) == sorted([kept, *more])
    assert store.usage().trash == 0
    assert not [each for each in gone if each in set(store.hashes())]
    store.close()


def test_others_count_too(tmp_path: Path) -> None:
    store = ChunkStore(tmp_path, quota=4 * BIG, others=lambda: 4 * BIG)
    with pytest.raises(OverQuota):
        store.put(b"x")
    store.close()


def test_counts_follow_every_change_and_agree_with_a_measurement(tmp_path: Path) -> None:
    store = ChunkStore(tmp_path)
    digests = [store.put(noise(BIG, seed)) for seed in range(6)]
    store.put(noise(BIG, 0))  # there already
    store.flush()
    path = next(tmp_path.glob(f"{digests[1].hex()[:2]}/{digests[1].hex()[2:]}"))
    path.write_bytes(path.read_bytes()[:-100])
    store.measure()
    store.put(noise(BIG, 1))  # repairs it
    store.sweep(digests[:3])
    store.sweep(digests[:4])  # takes one back
    store.put(noise(BIG, 4))  # takes another back
    store.empty_trash(-1.0)
    counted = store.usage()
    store.measure()
    assert store.usage() == counted
    assert counted.trash == 0
    assert 5 * BIG < counted.chunks < 5.5 * BIG
    store.close()


def test_the_file_of_a_database_without_its_free_pages_is_in_use(tmp_path: Path) -> None:
    db = Database(tmp_path / "state.sqlite")
    empty = db.usage().use
    db.write(lambda conn: conn.execute("INSERT INTO facts VALUES ('large', ?)", ("x" * BIG,)))
    assert db.usage().use > empty + BIG
    db.write(lambda conn: conn.execute("DELETE FROM facts"))
    assert db.usage().use < empty + 100_000
    db.close()
