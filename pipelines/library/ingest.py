"""Pictures put into `images` and removed from it, as top-level entries, in one commit.

A picture is a top-level file of its own or is in a block; never both.
"""

import tarfile
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from pipelines.client.connection import Connection
from pipelines.client.repository import Edit, Put, Remove, Repository
from pipelines.errors import LookalikeError
from pipelines.library import blocks
from pipelines.library.blocks import Span
from pipelines.library.pictures import Source
from stages.names import escape_component, escape_path

REPO = "images"

SINGLE_FILES = 1000
"""Most files that are put as top-level files of their own; more go into blocks."""

Report = Callable[[int], None]
"""Called with the number of files put since the last call."""


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of a write: the number of files put or removed, and its commit."""

    files: int
    commit: str


def add(
    connection: Connection, sources: Sequence[Source], report: Report = lambda _: None, most_single: int = SINGLE_FILES
) -> Written:
    """Puts files under their true names, replacing those of the same name.

    Up to `most_single` become one top-level file each, except those that are in a block already. More go into blocks,
    except archives and other files of many pictures. Raises LookalikeError if there are none or one cannot be read.
    """
    if not sources:
        raise LookalikeError("no files found: nothing was put")
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        library = _Library(connection, Path(scratch))
        return Written(len(sources), library.repo.write(library.adding(sources, len(sources) > most_single, report)))


def remove(connection: Connection, names: Iterable[str]) -> Written:
    """Removes the pictures with these true names. Raises LookalikeError, and removes none, if one is missing."""
    wanted = list(dict.fromkeys(names))
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        library = _Library(connection, Path(scratch))
        return Written(len(wanted), library.repo.write(library.removing(wanted)))


def forget(connection: Connection, names: Iterable[str]) -> Written | None:
    """Removes the pictures with these true names, ignoring missing ones; None if all are missing."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        library = _Library(connection, Path(scratch))
        present = [name for name in names if library.holds(name)]
        return Written(len(present), library.repo.write(library.removing(present))) if present else None


class _Library:
    """`images` as lookalike fills it. `scratch` is a directory for downloaded blocks."""

    def __init__(self, connection: Connection, scratch: Path) -> None:
        self.repo = Repository(connection, REPO)
        self._scratch = scratch
        self._read: dict[str, dict[str, Span]] = {}
        self._entries = {path.removeprefix("/") for path in self.repo.list()}
        prefixes = map(blocks.prefix_of, self._entries)
        self._blocks = {prefix for prefix in prefixes if prefix is not None}

    def holds(self, name: str) -> bool:
        """Whether the library has a picture of this true name, in a block or as a file of its own."""
        prefix = blocks.home(name, self._blocks)
        top = escape_component(name).partition("/")[0]
        return (prefix is not None and name in self._block(prefix)) or bool({top, f"{top}/"} & self._entries)

    def adding(self, sources: Sequence[Source], in_blocks: bool, report: Report) -> Iterator[Edit]:
        """The edits that put files. Blocks only grow, so each is read and written once."""
        for prefix, group in self._by_leaf(sources).items():
            held = self._block(prefix)
            fitting = {each.name: each for each in group if (in_blocks or each.name in held) and not each.holds_many}
            if fitting:
                yield from self._growing(prefix, fitting, report)
            for single in group:
                if single.name not in fitting:
                    yield from self._as_file(single, held)
                    report(1)
            self._forget(prefix)

    def removing(self, names: Sequence[str]) -> Iterator[Edit]:
        """The edits that remove pictures; blocks that have become small are joined."""
        files: list[str] = []
        missing: list[str] = []
        shrunk: dict[str, set[str]] = {}
        for name in names:
            prefix = blocks.home(name, self._blocks)
            if prefix is not None and name in self._block(prefix):
                shrunk.setdefault(prefix, set(self._block(prefix))).discard(name)
                continue
            found = [path for path in _paths(name) if self.repo.exists(path)]
            files += found
            missing += [] if found else [name]
        if missing:
            raise LookalikeError(f"not in the library: {', '.join(missing)}; nothing was removed")
        leaves, gone = blocks.join(shrunk, self._blocks - shrunk.keys(), self._block)
        spans = {name: span for held in self._read.values() for name, span in held.items()}
        written = (_block_put(prefix, leaves[prefix], spans) for prefix in sorted(leaves))
        return chain(map(Remove, files), map(_block_removal, sorted(gone)), written)

    def _by_leaf(self, sources: Iterable[Source]) -> dict[str, list[Source]]:
        """The files by the block, existing or new, to which they belong."""
        leaves: dict[str, list[Source]] = {}
        for source in sources:
            prefix = blocks.home(source.name, self._blocks)
            if prefix is None:
                prefix = blocks.free_branch(source.name, self._blocks)
            leaves.setdefault(prefix, []).append(source)
        return leaves

    def _growing(self, prefix: str, new: Mapping[str, Source], report: Report) -> Iterator[Edit]:
        spans = self._block(prefix) | {name: source.span for name, source in new.items()}
        leaves = blocks.divide(spans, prefix)
        if prefix in self._blocks and prefix not in leaves:
            yield _block_removal(prefix)
        for leaf in sorted(leaves):
            yield _block_put(leaf, leaves[leaf], spans)
            report(len(leaves[leaf] & new.keys()))
        for name in new:
            yield from self._removals(_paths(name))

    def _as_file(self, source: Source, held: Collection[str]) -> Iterator[Edit]:
        if source.name in held:
            raise LookalikeError(
                f"{source.path} holds many pictures, but the library has a single picture of that name: remove that "
                f"first, with `lookalike remove`"
            )
        own, *others = _paths(source.name)
        if f"{own[1:]}/" in self._entries:
            raise LookalikeError(
                f"{REPO} has a directory called {source.name}: rename {source.path}, or remove the directory with "
                f"`pachctl delete file -r {REPO}@master:{own}`"
            )
        yield from self._removals(others)
        yield Put(own, source.path if source.offset is None else blocks.content(source.span))

    def _removals(self, paths: Iterable[str]) -> Iterator[Edit]:
        for path in paths:
            top, _, below = path[1:].partition("/")
            if (f"{top}/" if below else top) in self._entries:
                yield Remove(path)

    def _block(self, prefix: str) -> dict[str, Span]:
        """The pictures of a block; none for a new one."""
        if prefix in self._blocks and prefix not in self._read:
            name = blocks.file_name(prefix)
            file = self._scratch / name
            with file.open("wb") as target:
                self.repo.fetch(f"/{name}", target)
            try:
                self._read[prefix] = blocks.read(file)
            except tarfile.TarError as error:
                raise LookalikeError(f"{name} in {REPO} is not a block of lookalike's: remove it ({error})") from error
        return self._read.get(prefix, {})

    def _forget(self, prefix: str) -> None:
        if self._read.pop(prefix, None) is not None:
            (self._scratch / blocks.file_name(prefix)).unlink()


def _block_put(prefix: str, names: Iterable[str], spans: Mapping[str, Span]) -> Put:
    return Put(f"/{blocks.file_name(prefix)}", blocks.tar({name: spans[name] for name in names}))


def _block_removal(prefix: str) -> Remove:
    return Remove(f"/{blocks.file_name(prefix)}")


def _paths(name: str) -> list[str]:
    """The paths of a picture of this true name outside blocks: the one that lookalike uses, and the one in a directory
    put by other means."""
    return list(dict.fromkeys((f"/{escape_component(name)}", f"/{escape_path(name)}")))
