"""The buckets of query entries: the same for ever, and for any name that PFS can hold."""

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from stages.record import entry_paths
from stages.record.pfs_names import LONGEST_COMPONENT, escape_component


@pytest.mark.parametrize(
    ("entry", "bucket"), [("sample-queries", "a1"), ("holiday", "81"), ("%5B%C3%A9%5D.png", "3e"), ("a b%", "bc")]
)
def test_buckets_never_change(entry: str, bucket: str) -> None:
    """Another bucket would be another path for an entry that has not changed, and all of its answers computed again."""
    assert entry_paths.directory(entry) == f"queries/{bucket}/{entry}"


def test_entries_are_spread_evenly() -> None:
    counts = Counter(entry_paths.bucket(f"entry {number}.jpg") for number in range(25_600))
    assert len(counts) == entry_paths.BUCKETS == 256
    assert min(counts.values()) > 60
    assert max(counts.values()) < 140


@given(st.text(min_size=1, max_size=400))
def test_any_name_has_one(name: str) -> None:
    entry = escape_component(name).partition("/")[0]
    queries, bucket, last = entry_paths.directory(entry).split("/")
    assert (queries, last) == ("queries", entry)
    assert bucket in {f"{number:02x}" for number in range(entry_paths.BUCKETS)}
    assert max(map(len, (bucket, last))) <= LONGEST_COMPONENT
