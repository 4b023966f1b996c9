"""Arguments of the command line as sources: files with one true name each, and their bytes."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.errors import LookalikeError
from pipelines.library.blocks import Span
from stages.kinds import HEAD, kind_of
from stages.limits import MAX_PICTURE_BYTES
from stages.names import is_dropping
from stages.stl10 import holds_pictures, is_record_name


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """A file to put: `name` is its true name, a relative path; `path` is the file on disk; `size` is in bytes.

    offset: the first byte of a part of the file at `path`; None for the whole file.
    """

    name: str
    path: Path
    size: int
    offset: int | None = None

    @property
    def holds_many(self) -> bool:
        """Whether this may hold many pictures: an archive, a file of STL-10, or a file too large to be a picture."""
        if holds_pictures(self.name, self.size):
            return not is_record_name(self.name)
        if self.size > MAX_PICTURE_BYTES:
            return True
        with self.path.open("rb") as file:
            file.seek(self.offset or 0)
            return kind_of(file.read(HEAD)).is_archive

    @property
    def span(self) -> Span:
        """The range of its bytes."""
        return Span(self.path) if self.offset is None else Span(self.path, self.offset, self.size)


@dataclass(frozen=True, slots=True)
class Found:
    """The files that paths stand for, by name, and the skipped directory entries, each with the reason."""

    sources: list[Source] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def find(arguments: Sequence[Path]) -> Found:
    """The files that paths stand for: a file by its own name, a directory by every file below it, named from the
    directory's own name on. Files that operating systems leave in directories are skipped silently.

    Raises LookalikeError for a missing path, and if two files would have the same name.
    """
    found: dict[str, Source] = {}
    left_out: list[str] = []
    for argument in arguments:
        try:
            expanded = _expand(argument)
        except OSError as error:
            raise LookalikeError(f"cannot read {error.filename or argument}: {error.strerror}") from error
        for source in expanded.sources:
            other = found.setdefault(source.name, source)
            if other.path != source.path:
                raise LookalikeError(
                    f"{other.path} and {source.path} would both be called {source.name}: put them into one directory "
                    "and add that, or rename one"
                )
        left_out += expanded.left_out
    return Found(sorted(found.values()), left_out)


def _expand(argument: Path) -> Found:
    if argument.is_dir():
        return _walk(argument)
    if argument.is_file():
        return Found([Source(argument.name, argument, argument.stat().st_size)])
    if argument.is_symlink() and not argument.exists():
        raise LookalikeError(f"{argument} is a broken link")
    raise LookalikeError(f"{argument} is {'neither a file nor a directory' if argument.exists() else 'not there'}")


def _walk(directory: Path) -> Found:
    top = directory.name if directory.name not in ("", "..") else directory.resolve().name
    found = Found()

    def fail(error: OSError) -> None:
        raise error

    for here, below, files in os.walk(directory, onerror=fail):
        below[:] = sorted(name for name in below if not is_dropping(name))
        links = [name for name in below if (Path(here) / name).is_symlink()]
        for name in sorted(name for name in files if not is_dropping(name)):
            path = Path(here) / name
            if path.is_file():
                true = (Path(top) / path.relative_to(directory)).as_posix()
                found.sources.append(Source(true, path, path.stat().st_size))
            else:
                found.left_out.append(f"{path}: {'a broken link' if path.is_symlink() else 'not a file'}")
        found.left_out.extend(f"{Path(here) / name}: a link to a directory; add it by its own path" for name in links)
    return found
