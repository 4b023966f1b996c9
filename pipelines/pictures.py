"""What people name on the command line, as sources: one true name each, and the bytes behind it."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import LookalikeError

_DROPPINGS = frozenset({".DS_Store", "Thumbs.db", "desktop.ini", "__MACOSX"})
"""What operating systems leave in directories of pictures."""


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """A file to put: `name` is its true name in the library, a relative path; `path` is where it lies; `size` is in
    bytes."""

    name: str
    path: Path
    size: int


def find(arguments: Sequence[Path]) -> list[Source]:
    """The files that paths stand for, by name: a file by its own name, a directory by every file below it, named from
    the directory's own name on. Raises LookalikeError for what is not there, for special files, and where two files
    would have one name."""
    found: dict[str, Source] = {}
    for argument in arguments:
        for source in _expand(argument):
            other = found.setdefault(source.name, source)
            if other.path != source.path:
                raise LookalikeError(
                    f"{other.path} and {source.path} would both be called {source.name}: add their directories instead"
                )
    return sorted(found.values())


def _expand(argument: Path) -> Iterator[Source]:
    try:
        if argument.is_dir():
            yield from _walk(argument)
        elif argument.is_file():
            yield Source(argument.name, argument, argument.stat().st_size)
        elif argument.exists():
            raise LookalikeError(f"{argument} is neither a file nor a directory")
        else:
            raise LookalikeError(f"{argument} is not there")
    except OSError as error:
        raise LookalikeError(f"cannot read {argument}: {error.strerror}") from error


def _walk(directory: Path) -> Iterator[Source]:
    top = directory.resolve().name

    def fail(error: OSError) -> None:
        raise error

    for here, below, files in os.walk(directory, onerror=fail):
        below[:] = sorted(set(below) - _DROPPINGS)
        for file in sorted(set(files) - _DROPPINGS):
            path = Path(here) / file
            if not path.is_file():
                raise LookalikeError(
                    f"{path} is no readable file: a broken link or a special file; remove it or name others"
                )
            yield Source((Path(top) / path.relative_to(directory)).as_posix(), path, path.stat().st_size)
