"""The members of an exported library as text: values and those that are none."""

from collections.abc import Callable

import pytest

from pipelines.transfer import bundle
from pipelines.transfer.bundle import BundleCommit, PipelineOutput

COMMIT = BundleCommit("images", "0" * 32, "2026-01-31T12:00:00+00:00", "the first", 2, 11)
OUTPUT = PipelineOutput("search", "3" * 64, "4" * 32, {"/a/0.parquet": "5" * 64})


def test_members_are_read_as_they_were_written() -> None:
    assert bundle.library(bundle.library_text([COMMIT])) == (COMMIT,)
    assert bundle.format_of(bundle.library_text([])) == bundle.FORMAT
    assert bundle.removed(bundle.removed_text(["/é.jpg"])) == ("/é.jpg",)
    assert bundle.output(bundle.output_text(OUTPUT)) == OUTPUT
    assert bundle.sums(bundle.sums_text({"images/a b": "0" * 64})) == {"images/a b": "0" * 64}


@pytest.mark.parametrize("parse", [bundle.library, bundle.format_of, bundle.removed, bundle.output])
@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_other_members_are_refused(parse: Callable[[bytes], object], text: bytes) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        parse(text)
