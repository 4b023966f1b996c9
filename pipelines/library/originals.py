"""The files of pictures on result sheets: copied beside the sheets or already on this machine, and links to them there.

A sheet as `render` wrote it has no such links, since it does not know where it will be read.
"""

import html
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from PIL import Image

from pipelines.client.server.connection import Connection
from pipelines.library import archive_members, result_folders, result_sheets
from pipelines.library.block_store import BlockDownloads
from pipelines.library.picture_sources import PictureSource
from pipelines.library.result_sheets import ResultSheet
from pipelines.library.snapshots import LibrarySnapshot, OriginalError
from stages.decode import stl10, stl10_records
from stages.files import blocks
from stages.record.pfs_names import escape_path

DIRECTORY = "originals"
"""The directory of the copies, beside those of the sheets."""

_MATCHES = re.compile(r'<ol class="matches">.*?</ol>', re.DOTALL)
_NAME = re.compile(r"<li><bdi>(.*?)</bdi></li>")
_PICTURE = re.compile(r'(<img [^>]*>)(?=<figcaption><ul class="sources"><li><bdi><a (href="[^"]*"))')


def names(sheets: Iterable[ResultSheet]) -> list[str]:
    """The true names of all neighbours on these sheets, sorted."""
    found = {
        name
        for sheet in sheets
        for query in result_sheets.answers(sheet)
        for neighbour in query["neighbors"]
        for name in neighbour["sources"]
    }
    return sorted(found)


def here(directory: Path, wanted: Iterable[str]) -> dict[str, Path]:
    """The pictures that are files of these names below a directory."""
    below = (name for name in wanted if not Path(name).is_absolute() and ".." not in Path(name).parts)
    return {name: path for name in below if (path := directory / name).is_file()}


def fetch(
    connection: Connection,
    commit: str,
    wanted: Iterable[str],
    to: Path,
    scratch: Path,
    report: Callable[[int], None] = lambda _: None,
    absent: dict[str, str] | None = None,
) -> dict[str, Path]:
    """Copies pictures at a commit of `images` into a directory, those of blocks and archives too; the file of each name
    that is there. A record of STL-10 becomes a PNG file. scratch: for blocks and archives, one at a time.

    absent: takes the reasons for which pictures that stay at their URLs cannot be had. Raises LookalikeError if a block
    is damaged, and without `absent` for these.
    """
    library = LibrarySnapshot(connection, commit, BlockDownloads(scratch))
    found: dict[str, Path] = {}
    for block, inside in sorted(library.by_block(wanted).items()):
        for name in inside:
            try:
                content = _content(library, name, scratch)
            except OriginalError as error:
                if absent is None:
                    raise
                content, absent[name] = None, str(error)
            if content is not None:
                found[name] = _written(name, content, to)
            report(1)
        library.forget(block)
    return found


def _content(library: LibrarySnapshot, name: str, scratch: Path) -> Iterator[bytes] | None:
    home = library.home(name)
    if home is not None:
        return library.original(home, name)
    files = library.files(name)
    if files:
        return library.content(files[0])
    above = archive_members.above(name, library)
    if above is None:
        return None
    whole = scratch / "archives"
    member = archive_members.fetch(archive_members.whole(library, above, whole), above, name, scratch)
    return None if member is None else _once(member)


def _once(member: PictureSource) -> Iterator[bytes]:
    """The bytes of a member, whose copy is deleted. A record of STL-10 stays in its file."""
    yield from blocks.content(member.span)
    if not stl10.is_record_name(member.name):
        member.path.unlink()


def _written(name: str, content: Iterable[bytes], to: Path) -> Path:
    if stl10.is_record_name(name):
        (pixels,) = stl10_records.upright(b"".join(content))
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG")
        name, content = f"{name}.png", [file.getvalue()]
    path = to / escape_path(name)
    result_folders.make(path.parent)
    fresh = path.with_name(f".{path.name[:200]}.new")
    with fresh.open("wb") as target:
        target.writelines(content)
    return fresh.replace(path)


def link(sheets: Sequence[ResultSheet], files: Mapping[str, Path]) -> int:
    """Links names and pictures on the pages of these sheets to the files, relative to the page; the number of names on
    the pages that have a link."""
    return sum(_link(page, files) for sheet in sheets for page in result_sheets.pages(sheet.directory))


def _link(page: Path, files: Mapping[str, Path]) -> int:
    linked = 0

    def named(found: re.Match[str]) -> str:
        nonlocal linked
        file = files.get(html.unescape(found[1]))
        if file is None:
            return found[0]
        linked += 1
        where = Path(os.path.relpath(file.absolute(), page.parent.absolute())).as_posix()
        return f'<li><bdi><a href="{html.escape(quote(os.fsencode(where)))}">{found[1]}</a></bdi></li>'

    def matches(found: re.Match[str]) -> str:
        return _PICTURE.sub(r"<a \2>\1</a>", _NAME.sub(named, found[0]))

    text = _MATCHES.sub(matches, page.read_text(encoding="utf-8"))
    if linked:
        fresh = page.with_name(f".{page.name}.new")
        fresh.write_text(text, encoding="utf-8", newline="\n")
        fresh.replace(page)
    return linked
