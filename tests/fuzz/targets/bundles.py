"""Exported libraries: the tar that `lookalike import` reads, from a file and from a stream."""

import io
from collections.abc import Callable, Iterator
from functools import partial

from pipelines.errors import LookalikeError
from pipelines.transfer import bundle
from pipelines.transfer.bundle import BundleCommit, CommitList, CommitRemovals, PipelineOutput
from pipelines.transfer.bundle_reader import BundleFile, BundleReader
from pipelines.transfer.bundle_writer import BundleWriter
from tests.fuzz.target import Target

_COMMITS = (
    BundleCommit("images", "0" * 32, "2026-01-31T12:00:00+00:00", "the first", 2, 11),
    BundleCommit("images", "1" * 32, "2026-02-01T12:00:00+00:00", "", 1, 6),
)


class _Stream(io.BytesIO):
    """A stream that cannot seek."""

    def seekable(self) -> bool:
        return False


def _read(data: bytes) -> None:
    """All of it, and again with its first commit skipped, as an import does that continues."""
    whole = _taken(io.BytesIO(data), skipped=0)
    assert whole == _taken(_Stream(data), skipped=0)
    skipped = _taken(io.BytesIO(data), skipped=1)
    assert not whole or skipped


def _taken(file: io.BytesIO, skipped: int) -> bool:
    try:
        reader = BundleReader(file, "a.tar")
        for number, commit in enumerate(reader.library()):
            if number < skipped:
                reader.skip(commit)
                continue
            reader.removed(commit)
            for each in reader.files(commit):
                if isinstance(each, BundleFile):
                    for _ in each.content:
                        pass
        reader.outputs()
    except LookalikeError as reason:
        assert str(reason).startswith("a.tar")
        return False
    return True


def _texts(data: bytes) -> None:
    values = (CommitList, CommitRemovals, PipelineOutput)
    parsers: tuple[Callable[[bytes], object], ...] = (
        bundle.format_of,
        bundle.sums,
        *(partial(bundle.parse, each) for each in values),
    )
    for parse in parsers:
        try:
            parse(data)
        except (KeyError, TypeError, ValueError):
            continue


def _seeds() -> Iterator[bytes]:
    file = io.BytesIO()
    writer = BundleWriter(file.write)
    writer.library(_COMMITS)
    first, second = _COMMITS
    writer.begin(first, ())
    name = f"{first.name}/a.jpg"
    writer.file(name, 5, [b"abcde"], lambda _: None)
    sums = writer.seal(first.name)
    writer.begin(second, ["/b.jpg"])
    writer.link(f"{second.name}/c.jpg", name, sums[name])
    writer.seal(second.name)
    writer.output(PipelineOutput("search", "3" * 64, "4" * 32, {"/a/0.parquet": "5" * 64}))
    writer.end()
    yield file.getvalue()


def _members() -> Iterator[bytes]:
    yield bundle.text(CommitList(bundle.FORMAT, _COMMITS))
    yield bundle.text(CommitRemovals(("/a.jpg",)))
    yield bundle.text(PipelineOutput("search", "3" * 64, "4" * 32, {"/a": "5" * 64}))
    yield bundle.sums_text({"images/a": "0" * 64})


TARGETS = (
    Target("bundles", _read, _seeds, (b"ustar\x0000", b"path=", b"size=", b"linkpath=", b"GNU.sparse."), 12_000),
    Target("members-of-bundles", _texts, _members, (b'"commits"', b'"files"', b"null", b"[" * 1200, b"9" * 4400), 6000),
)
