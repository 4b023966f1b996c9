"""The overview of the result sheets in a directory: pages that link to each, with a picture and a few facts.

Reads the sheets that are there, knows no server, and loads nothing but what is in its pages.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pipelines.library import result_sheets
from pipelines.library.result_sheets import ResultSheet
from stages.datum import text_format
from stages.report import markup, page_links

_ON_A_PAGE = 100  # entries
_FIRST = 1 << 20  # bytes of a sheet in which its first picture is looked for

_QUERY = re.compile(rb'<div class="query">.{0,200}?<img src="data:image/jpeg;base64,([A-Za-z0-9+/=]+)"', re.DOTALL)


@dataclass(frozen=True)
class _Entry:
    """A sheet: its entry's name, its directory, the first query's picture, a JPEG file in base 64, or "", and facts."""

    name: str
    directory: Path
    picture: str
    facts: tuple[str, ...]


def write(directory: Path, sheets: Iterable[ResultSheet]) -> Path | None:
    """Writes the pages for all sheets below the directory, and removes those of an earlier, longer overview; the first
    page. None, and nothing is written, if there is no sheet, or an entry is called like a page. sheets: those of which
    the true names are known; others are called like their directories."""
    names = {sheet.directory.name: sheet.entry for sheet in sheets}
    entries = sorted(
        (_entry(names.get(each.name, each.name), each) for each in directory.iterdir() if _is_sheet(each)),
        key=lambda entry: (entry.name, entry.directory.name),
    )
    pages = dict(_pages(entries)) if entries else {}
    if any((directory / name).is_dir() for name in pages):
        return None
    for name, page in pages.items():
        fresh = directory / f".{name}.new"
        fresh.write_text(page, encoding="utf-8", newline="\n")
        fresh.replace(directory / name)
    for page_number, old in result_sheets.further_pages(directory):
        if page_number > len(pages) and old.is_file():
            old.unlink()
    return directory / page_links.FIRST if pages else None


def _is_sheet(directory: Path) -> bool:
    return (directory / result_sheets.ANSWERS).is_file() and (directory / page_links.FIRST).is_file()


def _entry(name: str, directory: Path) -> _Entry:
    with (directory / page_links.FIRST).open("rb") as page:
        picture = _QUERY.search(page.read(_FIRST))
    queries = result_sheets.answers(ResultSheet(name, directory))
    facts = [text_format.counted(len(queries), "query picture", "query pictures")]
    distances = [neighbour["distance"] for query in queries for neighbour in query["neighbors"][:1]]
    if distances:
        facts.append(f"nearest at distance {text_format.distance(min(distances))}")
    return _Entry(name, directory, "" if picture is None else picture[1].decode("ascii"), tuple(facts))


def _pages(entries: Sequence[_Entry]) -> Iterator[tuple[str, str]]:
    for page in page_links.divided(entries, _ON_A_PAGE):
        yield page.file, markup.fill("overview.html", page=page, entries=len(entries), link=_link)


def _link(entry: _Entry) -> str:
    return f"{quote(entry.directory.name)}/{page_links.FIRST}"
