"""Owns the small changes of a library to measure. An added picture has a query's pixels, so that the sheet must show
it; a removed one must be gone from the sheet."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from PIL import Image

from benchmarks.kit.stl10_pieces import PhotographPieces
from benchmarks.whole.library import Library, Puts, Step
from benchmarks.whole.sheets import Answers
from pipelines.library import ingest, picture_sources, queries, snapshots
from pipelines.library.picture_sources import PictureSource
from stages.decode.stl10 import RECORD
from stages.decode.stl10_records import records, upright
from stages.files import blocks

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
    yield library.change("add one picture", _adding(library, _LONE, file), _finds(first, _LONE))
    _write_png(place / _SECOND, _bytes(third))
    yield library.change("add one picture, warm", _adding(library, _SECOND, place / _SECOND), _finds(third, _SECOND))
    _write_png(file, _bytes(second))

    def replaced(answers: Answers) -> None:
        answers.check_nearest(second.name, _LONE, True)
        answers.check_nearest(first.name, _LONE, False)

    yield library.change("change one picture, a file", _adding(library, _LONE, file), replaced)
    yield library.change("remove one picture, a file", _removing(library, _LONE), _lacks(_LONE))


def query(library: Library, place: Path) -> Iterator[Step]:
    """Asks with one picture, and with another while processes are warm."""
    first, second, *_ = _distinct(library.split.queries)
    file = place / _ASKED
    for name, source in (("query one picture", first), ("query one picture, warm", second)):
        _write_png(file, _bytes(source))
        puts = {queries.REPO: lambda: queries.put(library.connection, queries.find([file])).commit}
        yield library.change(name, puts, lambda _: None)


def block(library: Library, place: Path) -> Iterator[Step]:
    """Changes a picture in a block, and removes another."""

    def shown() -> list[str]:
        names = {each.name for each in library.split.library}
        return [*dict.fromkeys(each for each in library.answers.names() if each in names)][:2]

    changed, removed = library.journal.once("pictures in blocks", shown)
    asked = _distinct(library.split.queries)[-1]
    file = place / "record"
    file.write_bytes(_bytes(asked))
    yield library.change("change one picture, in a block", _adding(library, changed, file), _finds(asked, changed))
    removing = _removing(library, removed)
    yield library.change("remove one picture, in a block", removing, _lacks(removed), more=-RECORD)


def more(library: Library, place: Path) -> Iterator[Step]:
    """Adds a tenth as many pictures as there are, at most 1,000, each in a file."""
    directory = place / "more"
    number = min(MOST_ADDED, library.pictures // 10)
    if not directory.is_dir():
        _write_more(place, directory, number)
    found = picture_sources.find([directory]).sources
    size = sum(each.size for each in found)
    puts = {snapshots.REPO: lambda: ingest.add(library.connection, found).commit}
    yield library.change(more_name(library.pictures), puts, lambda _: None, number, size)


def more_name(pictures: int) -> str:
    """The name of that change of a library of so many pictures."""
    return f"add {min(MOST_ADDED, pictures // 10):,} pictures"


CHANGES: dict[str, Callable[[Library, Path], Iterator[Step]]] = {
    "one": one,
    "query": query,
    "more": more,
    "block": block,
}
"""The changes by their names on the command line, in the order in which they are made."""


def _adding(library: Library, name: str, file: Path) -> Puts:
    source = PictureSource(name, file, file.stat().st_size)
    return {snapshots.REPO: lambda: ingest.add(library.connection, [source]).commit}


def _removing(library: Library, name: str) -> Puts:
    return {snapshots.REPO: lambda: ingest.remove(library.connection, [name]).commit}


def _finds(query: PictureSource, name: str) -> Callable[[Answers], None]:
    return lambda answers: answers.check_nearest(query.name, name, True)


def _lacks(name: str) -> Callable[[Answers], None]:
    return lambda answers: answers.check_gone(name)


def _distinct(sources: Iterable[PictureSource], number: int = 3) -> list[PictureSource]:
    """The first `number` sources whose bytes differ."""
    found: dict[bytes, PictureSource] = {}
    for source in sources:
        if len(found) < number:
            found.setdefault(_bytes(source), source)
    return list(found.values())


def _bytes(source: PictureSource) -> bytes:
    return b"".join(blocks.content(source.span))


def _write_more(place: Path, directory: Path, number: int) -> None:
    """Writes `number` other pictures to a new directory."""
    new, records_file = place / "more.new", place / "more.bin"
    new.mkdir(exist_ok=True)
    with records_file.open("wb") as file:
        PhotographPieces(seed=1).write(file, number)
    with records_file.open("rb") as file:
        for index, record in enumerate(records(b"", file)):
            _write_png(new / f"{index:04}.png", record)
    new.rename(directory)


def _write_png(path: Path, record: bytes) -> None:
    (picture,) = upright(record)
    Image.fromarray(picture).save(path)
