"""The members of an exported library as text: values and those that are none."""

from collections.abc import Callable
from functools import partial

import pytest

from pipelines.transfer import bundle
from pipelines.transfer.bundle import BundleCommit, CommitList, CommitRemovals, PipelineOutput

COMMIT = BundleCommit("images", "0" * 32, "2026-01-31T12:00:00+00:00", "the first", 2, 11)
VALUES = (
    CommitList(bundle.FORMAT, (COMMIT,)),
    CommitRemovals(("/é.jpg",)),
    PipelineOutput("search", "3" * 64, "4" * 32, {"/a/0.parquet": "5" * 64}),
)
PARSERS = (bundle.format_of, *(partial(bundle.parse, type(each)) for each in VALUES))


def test_members_are_read_as_they_were_written() -> None:
    for each in VALUES:
        assert bundle.parse(type(each), bundle.text(each)) == each
    assert bundle.format_of(bundle.text(VALUES[0])) == bundle.FORMAT
    assert bundle.sums(bundle.sums_text({"images/a b": "0" * 64})) == {"images/a b": "0" * 64}


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_other_members_are_refused(parse: Callable[[bytes], object], text: bytes) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        parse(text)
