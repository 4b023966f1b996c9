"""Values that clients cache: the least recently used one goes when there are too many."""

import pytest

from localpachd.errors import NotFound
from localpachd.pfs.files import cache
from localpachd.pfs.pfs_service import PfsService


def test_the_least_recently_used_value_is_evicted(pfs: PfsService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_LIMIT", 2)

    def put(key: str) -> None:
        pfs.transact(lambda txn: cache.put(txn, key, key.encode(), [], ""))

    def get(key: str) -> bytes:
        return pfs.transact(lambda txn: cache.get(txn, key))

    put("a")
    put("b")
    get("a")
    put("c")
    assert (get("a"), get("c")) == (b"a", b"c")
    with pytest.raises(NotFound):
        get("b")
