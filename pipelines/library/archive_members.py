"""Pictures in archives and STL-10 files that are files of the library: the file that holds one, and its bytes."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pipelines.library.picture_sources import PictureSource
from pipelines.library.snapshots import LibrarySnapshot
from stages.decode import stl10
from stages.decode.archives.archive_member import ArchiveMember, BadArchive, BadMember
from stages.decode.archives.archive_reader import members
from stages.record.file_kinds import HEAD, kind_of
from stages.record.file_limits import LIMITS
from stages.record.pfs_names import escape_component

_PIECE = 1 << 20


def above(name: str, library: LibrarySnapshot) -> str | None:
    """The true name of the file of the library that would hold a member of this name; None if there is none. Does not
    look into blocks: lookalike puts no archives into them."""
    parts = name.split("/")
    names = ("/".join(parts[:end]) for end in range(len(parts) - 1, 0, -1))
    return next((each for each in names if library.files(each)), None)


def whole(library: LibrarySnapshot, name: str, directory: Path) -> Path:
    """A file of the library outside blocks, copied into a directory unless it is there."""
    file = directory / escape_component(name).replace("/", "%2F")
    if not file.exists():
        directory.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as target:
            target.writelines(library.content(library.files(name)[0]))
    return file


def holds(file: Path, archive: str, name: str) -> bool:
    """Whether a file that is called `archive` holds a picture of this name."""
    size = file.stat().st_size
    if stl10.holds_pictures(archive, size):
        return _record(archive, name, size) is not None
    return any(f"{archive}/{each.name}" == name for each in _members(file))


def fetch(file: Path, archive: str, name: str, directory: Path) -> PictureSource | None:
    """The bytes of a member as a source on this machine; None if there is no such member or it cannot be read."""
    size = file.stat().st_size
    if stl10.holds_pictures(archive, size):
        number = _record(archive, name, size)
        return None if number is None else PictureSource(name, file, stl10.RECORD, number * stl10.RECORD)
    for each in _members(file):
        if f"{archive}/{each.name}" == name and each.stream is not None:
            taken = directory / escape_component(name).replace("/", "%2F")
            try:
                with taken.open("wb") as target:
                    target.writelines(iter(partial(each.stream.read, _PIECE), b""))
            except BadMember:
                return None
            return PictureSource(name, taken, taken.stat().st_size)
    return None


def _record(archive: str, name: str, size: int) -> int | None:
    """The number of the record that a name means, if a file of that size has it."""
    last = name.rpartition("/")[2]
    known = last.isdecimal() and int(last) < size // stl10.RECORD and stl10.record_name(archive, int(last)) == name
    return int(last) if known else None


def _members(file: Path) -> Iterator[ArchiveMember]:
    with file.open("rb") as stream:
        kind = kind_of(stream.read(HEAD))
    if kind.is_archive:
        try:
            yield from members(file, kind, LIMITS)
        except BadArchive:
            return
