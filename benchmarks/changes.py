"""Owns the small changes of a library to measure. An added picture has a query's pixels, so that the sheet must show
it; a removed one must be gone from the sheet."""

from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path

from PIL import Image

from benchmarks.library import Library, Step
from pipelines.library import blocks, ingest, pictures, queries, stl10
from pipelines.library.pictures import Source
from pipelines.library.stl10samples import write_stl10
from stages.stl10 import RECORD
from stages.stl10records import pictures as records

MOST_ADDED = 1_000

_LONE = "lone.png"
_SECOND = "second.png"
_ASKED = "asked.png"


def one(library: Library, place: Path) -> Iterator[Step]:
    """Adds, changes and removes a picture in a file of its own. The first change starts every process, since the server
    has just been started; for the next ones they are warm."""
    first, second, third = _distinct(library.split.queries)
    file = place / _LONE
    _write_png(file, _bytes(first))
    yield library.change("add one picture", _adding(library, _LONE, file))
    library.answers.check_nearest(first.name, _LONE, True)
    _write_png(place / _SECOND, _bytes(third))
    yield library.change("add one picture, warm", _adding(library, _SECOND, place / _SECOND))
    library.answers.check_nearest(third.name, _SECOND, True)
    _write_png(file, _bytes(second))
    yield library.change("change one picture, a file", _adding(library, _LONE, file))
    library.answers.check_nearest(second.name, _LONE, True)
    library.answers.check_nearest(first.name, _LONE, False)
    yield library.change("remove one picture, a file", _removing(library, _LONE))
    library.answers.check_gone(_LONE)


def query(library: Library, place: Path) -> Iterator[Step]:
    """Asks with one picture, and with another while processes are warm."""
    first, second, *_ = _distinct(library.split.queries)
    file = place / _ASKED

    def ask() -> list[str]:
        return [queries.put(library.connection, [file]).commit]

    _write_png(file, _bytes(first))
    yield library.change("query one picture", ask)
    _write_png(file, _bytes(second))
    yield library.change("query one picture, warm", ask)


def block(library: Library, place: Path) -> Iterator[Step]:
    """Changes a picture in a block, and removes another."""
    names = {each.name for each in library.split.library}
    changed, removed, *_ = dict.fromkeys(each for each in library.answers.names() if each in names)
    asked = _distinct(library.split.queries)[-1]
    file = place / "record"
    file.write_bytes(_bytes(asked))
    yield library.change("change one picture, in a block", _adding(library, changed, file))
    library.answers.check_nearest(asked.name, changed, True)
    yield library.change("remove one picture, in a block", _removing(library, removed), more=-RECORD)
    library.answers.check_gone(removed)


def more(library: Library, place: Path) -> Iterator[Step]:
    """Adds a tenth as many pictures as there are, at most 1,000, each in a file."""
    directory = place / "more"
    number = min(MOST_ADDED, (len(library.split.library) + len(library.split.queries)) // 10)
    _write_more(place, directory, number)
    found = pictures.find([directory]).sources
    size = sum(each.size for each in found)

    def add() -> list[str]:
        return [ingest.add(library.connection, found).commit]

    yield library.change(f"add {number:,} pictures", add, number, size)


CHANGES: dict[str, Callable[[Library, Path], Iterator[Step]]] = {
    "one": one,
    "query": query,
    "more": more,
    "block": block,
}
"""The changes by their names on the command line, in the order in which they are made."""


def _adding(library: Library, name: str, file: Path) -> Callable[[], list[str]]:
    source = Source(name, file, file.stat().st_size)
    return lambda: [ingest.add(library.connection, [source]).commit]


def _removing(library: Library, name: str) -> Callable[[], list[str]]:
    return lambda: [ingest.remove(library.connection, [name]).commit]


def _distinct(sources: Iterable[Source], number: int = 3) -> list[Source]:
    """The first `number` sources whose bytes differ."""
    found: dict[bytes, Source] = {}
    for source in sources:
        if len(found) < number:
            found.setdefault(_bytes(source), source)
    return list(found.values())


def _bytes(source: Source) -> bytes:
    return b"".join(blocks.content(source.span))


def _write_more(place: Path, directory: Path, number: int) -> None:
    """Writes `number` other pictures to a new directory."""
    directory.mkdir()
    write_stl10(place / "other", number, (1, 1), seed=1)
    with (place / "other" / stl10.UNLABELLED).open("rb") as file:
        for index, (_, picture) in enumerate(records(b"", file)):
            Image.fromarray(picture).save(directory / f"{index:04}.png")


def _write_png(path: Path, record: bytes) -> None:
    ((_, picture),) = records(b"", BytesIO(record))
    Image.fromarray(picture).save(path)
