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
from stages.report.markup import text

_ON_A_PAGE = 100  # entries
_FIRST = 1 << 20  # bytes of a sheet in which its first picture is looked for

_QUERY = re.compile(rb'<div class="query">.{0,200}?(<img src="data:image/jpeg;base64,[A-Za-z0-9+/=]+")', re.DOTALL)

_STYLE = """
.entries {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(200px, 1fr)); gap: 20px; margin: 20px 0; padding: 0;
  list-style: none;
}
.entries li { overflow: hidden; border: 1px solid var(--edge); border-radius: 14px; background: var(--card); }
.entries a { display: block; height: 100%; padding: 16px; color: inherit; text-decoration: none; }
.entries a:hover, .entries a:focus-visible { background: var(--tint); }
.entries img, .entries .blank { max-width: none; margin-bottom: 10px; }
.entries b { display: block; color: var(--accent); font-weight: 600; }
.entries small { display: block; color: var(--muted); font-size: 0.8125rem; }
@media (max-width: 640px) { .entries { grid-template-columns: repeat(auto-fill, minmax(140px, 1fr)); gap: 12px; } }
"""


@dataclass(frozen=True)
class _Entry:
    """A sheet: its entry's name, its directory, the first query's picture as the start of an element, and facts."""

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
    return directory / page_links.name(1) if pages else None


def _is_sheet(directory: Path) -> bool:
    return (directory / result_sheets.ANSWERS).is_file() and (directory / page_links.name(1)).is_file()


def _entry(name: str, directory: Path) -> _Entry:
    with (directory / page_links.name(1)).open("rb") as page:
        picture = _QUERY.search(page.read(_FIRST))
    queries = result_sheets.answers(ResultSheet(name, directory))
    facts = [text_format.counted(len(queries), "query picture", "query pictures")]
    distances = [neighbour["distance"] for query in queries for neighbour in query["neighbors"][:1]]
    if distances:
        facts.append(f"nearest at distance {text_format.distance(min(distances))}")
    return _Entry(name, directory, "" if picture is None else picture[1].decode("ascii"), tuple(facts))


def _pages(entries: Sequence[_Entry]) -> Iterator[tuple[str, str]]:
    parts = [entries[begin : begin + _ON_A_PAGE] for begin in range(0, len(entries), _ON_A_PAGE)]
    for number, part in enumerate(parts, start=1):
        title = "Result sheets" if len(parts) == 1 else f"Result sheets, page {number:,} of {len(parts):,}"
        links = [*page_links.links(number, len(parts))]
        summary = text_format.counted(len(entries), "entry", "entries")
        head = [*markup.head(title, page_links.STYLE + _STYLE), "<header>", "<h1>Result sheets</h1>"]
        head += [f'<p class="summary">{summary}</p>', *links, "</header>"]
        body = ["<main>", '<ul class="entries">', *map(_item, part), "</ul>", "</main>"]
        foot = ["<footer>", *links, "</footer>", *markup.end(), ""]
        yield page_links.name(number), "\n".join([*head, *body, *foot])


def _item(entry: _Entry) -> str:
    where = f"{quote(entry.directory.name)}/{page_links.name(1)}"
    picture = f'{entry.picture} alt="" width="224" height="224">' if entry.picture else markup.picture(None, "")
    facts = "".join(f"<small>{text(fact)}</small>" for fact in entry.facts)
    return f'<li><a href="{where}">{picture}<b><bdi>{text(entry.name)}</bdi></b>{facts}</a></li>'
