"""Arguments of the command line as sources: files with one true name each, and their bytes."""

import contextlib
import glob
import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pipelines.errors import LookalikeError
from pipelines.library import idx_files, result_folders
from pipelines.library.idx_files import IdxPictures
from stages.datum.text_format import counted, first_of
from stages.decode.stl10 import holds_pictures, is_named_so, is_record_name
from stages.files.blocks import ByteRange
from stages.record.file_kinds import HEAD, FileKind, has_picture_extension, is_not_a_picture, kind_of, why_unreadable
from stages.record.file_limits import MAX_PICTURE_BYTES
from stages.record.pfs_names import is_system_file
from stages.record.url_records import UrlRecord

_EXTENSION = re.compile(r"\.[a-z0-9_+-]{1,12}")
_MOST_KINDS = 8
"""Most kinds of skipped files that are named."""


@dataclass(frozen=True, slots=True, order=True)
class PictureSource:
    """A file to put: `name` is its true name, a relative path; `path` is the file on disk; `size` is in bytes.

    offset: the first byte of a part of the file at `path`; None for the whole file. prefix: bytes that come before
    those of the file, and are part of `size`. record: of a picture that stays at its URL, of which nothing is
    read at `path`.
    """

    name: str
    path: Path
    size: int
    offset: int | None = None
    prefix: bytes = b""
    record: UrlRecord | None = None

    @property
    def holds_many(self) -> bool:
        """Whether this may hold many pictures: an archive, a file of STL-10, or a file too large to be a picture."""
        if self.record is not None:
            return False
        if holds_pictures(self.name, self.size):
            return not is_record_name(self.name)
        if self.size > MAX_PICTURE_BYTES:
            return True
        return kind_of(self.head()).is_archive

    @property
    def is_not_a_picture(self) -> bool:
        """Whether this is neither a picture nor a file of many, by its name and its content. Raises OSError if its
        first bytes cannot be read."""
        if has_picture_extension(self.name) or is_named_so(self.name):
            return False
        head = self.head()
        return kind_of(head) is FileKind.OTHER and is_not_a_picture(self.name, why_unreadable(head))

    def head(self) -> bytes:
        """Its first bytes, which tell its kind. Raises OSError, which names the file, if they cannot be read."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset or 0)
                return self.prefix + file.read(HEAD)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    @property
    def span(self) -> ByteRange:
        """The range of its bytes."""
        if self.offset is None:
            return ByteRange(self.path)
        return ByteRange(self.path, self.offset, self.size - len(self.prefix), self.prefix)


@dataclass(frozen=True, slots=True)
class PictureSources:
    """The files that paths stand for, by name; the skipped directory entries, each with the reason, and the skipped
    files that are not pictures, by kind; the reasons for which files and directories could not be read, by path.
    idx: the files in the IDX format whose pictures are among `sources`, with their names before those of their
    pictures. idx_labels: files of labels in that format."""

    sources: list[PictureSource] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    idx: dict[PictureSource, IdxPictures] = field(default_factory=dict)
    idx_labels: list[Path] = field(default_factory=list)


def find(arguments: Sequence[Path], beside: Callable[[str], bool] | None = None, idx: bool = True) -> PictureSources:
    """The files that paths stand for: a file by its own name, a directory by every file below it, named from the
    directory's own name on, and with `idx` a file in the IDX format by its pictures. Files that are not pictures are
    skipped, those that operating systems leave in directories silently. beside: says of names which files are taken
    though they are not pictures; with it labels in the IDX format are not skipped either.

    Raises LookalikeError for a missing path, for a damaged file in the IDX format, and if two files would have the same
    name.
    """
    made = PictureSources()
    found: dict[str, PictureSource] = {}
    skipped: dict[Path, str] = {}
    for argument in expanded(arguments):
        try:
            one = _expand(argument)
        except OSError as error:
            raise LookalikeError(f"cannot read {error.filename or argument}: {error.strerror}") from error
        for file in one.sources:
            try:
                taken = [file] if beside and beside(PurePosixPath(file.name).name) else _pictures_of(file, made, idx)
            except OSError as error:
                made.unreadable[str(file.path)] = error.strerror or str(error)
                continue
            if not taken and file not in made.idx and not (beside and file.path in made.idx_labels):
                skipped[file.path] = file.name
            for source in taken:
                other = found.setdefault(source.name, source)
                if other.path != source.path:
                    raise LookalikeError(
                        f"{other.path} and {source.path} would both be called {source.name}: put them into one "
                        "directory and add that, or rename one"
                    )
        made.left_out.extend(one.left_out)
        made.unreadable.update(one.unreadable)
    made.left_out.extend([words_of_skipped(skipped.values())] if skipped else [])
    made.sources.extend(sorted(found.values()))
    return made


def _pictures_of(file: PictureSource, made: PictureSources, idx: bool) -> list[PictureSource]:
    """A file itself, or the pictures in one of the IDX format; none if it is not a picture. Raises OSError if it cannot
    be read, and LookalikeError for a damaged one of the IDX format."""
    if idx and (not has_picture_extension(file.name) or file.name.lower().endswith(".gz")):
        held = idx_files.pictures(file.path)
        if held is not None:
            made.idx[file] = held
            size, prefix = len(held.prefix) + held.size, held.prefix
            return [
                PictureSource(f"{file.name}/{held.name(number)}", held.path, size, held.offset(number), prefix)
                for number in range(held.count)
            ]
        if idx_files.is_labels(file.path):
            made.idx_labels.append(file.path)
            return []
    return [] if file.is_not_a_picture else [file]


def words_of_skipped(names: Collection[str]) -> str:
    """Files that are not pictures, counted by extension, the most frequent first."""
    extensions = (PurePosixPath(name).suffix.lower() for name in names)
    kinds = Counter(each if _EXTENSION.fullmatch(each) else "without extension" for each in extensions)
    counts = [f"{number:,} {kind}" for kind, number in sorted(kinds.items(), key=lambda each: (-each[1], each))]
    files = counted(len(names), "file that is not a picture", "files that are not pictures")
    return f"{files}: {first_of(counts, _MOST_KINDS)}"


def expanded(arguments: Sequence[Path]) -> list[Path]:
    """The paths, with those that a pattern matches in its place, unless a file is called so: a shell leaves a pattern
    as it is where it is quoted."""
    found: list[Path] = []
    for each in arguments:
        matches = [] if os.path.lexists(each) else glob.glob(str(each))  # noqa: PTH207  it may be absolute
        found += sorted(map(Path, matches)) or [each]
    return found


def choose_pictures(sources: Sequence[PictureSource], number: int) -> list[PictureSource]:
    """So many of the files that are pictures, always the same ones, from all over their directory."""
    found: list[PictureSource] = []
    for each in sorted(sources, key=lambda each: hashlib.sha256(os.fsencode(each.name)).digest()):
        if len(found) == number:
            break
        with contextlib.suppress(OSError):
            found += [each] if kind_of(each.head()).is_picture else []
    return sorted(found)


def readable(sources: Sequence[PictureSource]) -> PictureSources:
    """The files whose first bytes can be read, and the reasons for which those of others cannot."""
    found = PictureSources()
    for each in sources:
        try:
            each.head()
        except OSError as error:
            found.unreadable[str(each.path)] = error.strerror or str(error)
        else:
            found.sources.append(each)
    return found


def _expand(argument: Path) -> PictureSources:
    if argument.is_dir():
        return _walk(argument)
    if argument.is_file():
        return PictureSources([PictureSource(argument.name, argument, argument.stat().st_size)])
    if argument.is_symlink() and not argument.exists():
        raise LookalikeError(f"{argument} is a broken link")
    raise LookalikeError(
        f"{argument} is neither a file nor a directory" if argument.exists() else f"{argument}: not found"
    )


def folder_name(directory: Path) -> str:
    """The name with which the names of all files below a directory begin; "" for the root of the file system."""
    return directory.name if directory.name not in ("", "..") else directory.resolve().name


def _walk(directory: Path) -> PictureSources:
    top = folder_name(directory)
    found = PictureSources()

    def leave_out(error: OSError) -> None:
        found.unreadable[str(error.filename)] = error.strerror or str(error)

    for here, below, files in os.walk(directory, onerror=leave_out):
        if result_folders.is_marked(Path(here)):
            found.left_out.append(f"{Path(here)}: results of lookalike's")
            below.clear()
            continue
        below[:] = sorted(name for name in below if not is_system_file(name))
        links = [name for name in below if (Path(here) / name).is_symlink()]
        for name in sorted(name for name in files if not is_system_file(name)):
            path = Path(here) / name
            try:
                if path.is_file():
                    true = (Path(top) / path.relative_to(directory)).as_posix()
                    found.sources.append(PictureSource(true, path, path.stat().st_size))
                else:
                    found.left_out.append(f"{path}: {'a broken link' if path.is_symlink() else 'not a file'}")
            except OSError as error:
                leave_out(error)
        found.left_out.extend(f"{Path(here) / name}: a link to a directory; add it by its own path" for name in links)
    return found
