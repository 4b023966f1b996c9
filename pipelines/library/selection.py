"""Words of the command line as names in the library: pictures, folders, globs, and paths as they were added."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from pipelines.errors import LookalikeError
from pipelines.library.picture_sources import folder_name
from speclang.globs import Glob, GlobError

_GLOB = frozenset("*?[{")


class NothingFoundError(LookalikeError):
    """None of the names is there."""


def select(
    words: Sequence[str],
    holds: Callable[[str], bool],
    names: Callable[[], Iterable[str]],
    where: str,
    outcome: str = "removed",
) -> list[str]:
    """The names that words mean, in order and each once. `holds` tells whether there is a name, and `names` gives all
    of them, which may take long. Raises LookalikeError if a word means none: `where` says where, and `outcome` what was
    not done.

    A word is a name; else a folder of names; else a path on this machine, with the name that it has when it is added;
    else a glob of names or folders, in Pachyderm's dialect.
    """
    found: dict[str, None] = {}
    missing: list[str] = []
    known: list[str] = []
    for word in words:
        selected: list[str] = []
        for meaning in _meanings(word):
            if holds(meaning) and not word.endswith("/"):
                selected = [meaning]
            else:
                known = known or sorted(names())
                selected = list(_below(meaning, known))
            if selected:
                break
        selected = selected or [name for meaning in _meanings(word) for name in _matching(meaning, known)]
        found |= dict.fromkeys(selected)
        missing += [] if selected else [word]
    if missing:
        raise NothingFoundError(f"not in {where}: {', '.join(missing)}; nothing was {outcome}")
    return list(found)


def _meanings(word: str) -> Iterator[str]:
    """The name as it was typed, and the one that a path gets when it is added."""
    typed = word.rstrip("/").removeprefix("./")
    yield typed
    path = Path(word)
    added = folder_name(path)
    if word and added != typed and path.exists():
        yield added


def _below(folder: str, names: Iterable[str]) -> Iterator[str]:
    return (name for name in names if name.startswith(f"{folder}/"))


def _matching(pattern: str, names: Iterable[str]) -> Iterator[str]:
    if not _GLOB & set(pattern):
        return
    try:
        glob = Glob(pattern)
    except GlobError:
        return
    for name in names:
        parts = name.split("/")
        if any(glob.match(f"/{'/'.join(parts[:end])}") for end in range(1, len(parts) + 1)):
            yield name
