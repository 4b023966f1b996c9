"""Putting pictures into `images` and queries into `queries`: which top-level entries they become, in one commit."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines import blocks, pictures
from pipelines.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.pictures import Source
from pipelines.repository import Change, Put, Remove, Repository
from stages.names import NAMES_FILE, escape_component, escape_path

SINGLE_FILES = 1000
"""How many files are put as top-level files of their own at most; more go in as blocks."""

Report = Callable[[int], None]
"""Hears how many more files have been put."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a write put or removed: how many files, and the commit it made."""

    files: int
    commit: str


def _silent(_: int) -> None:
    return None


class Library:
    """The `images` repo as lookalike fills it: single top-level files and blocks."""

    def __init__(self, connection: Connection) -> None:
        self._repo = Repository(connection, "images")
        self._entries = {info.file.path.strip("/") for info in self._repo.list()}
        prefixes = map(blocks.prefix_of, self._entries)
        self._blocks = sorted(prefix for prefix in prefixes if prefix is not None)
        self._read: tuple[str, dict[str, bytes]] | None = None

    def add(self, sources: Sequence[Source], report: Report = _silent) -> Written:
        """Puts files under their true names, replacing those of the same name; up to `SINGLE_FILES` become one
        top-level file each, unless they are in a block already; more go into blocks."""
        if not sources:
            raise LookalikeError("there is no file in what was named: nothing was put")
        grouped: dict[str, list[Source]] = {}
        singles: list[Source] = []
        in_blocks = len(sources) > SINGLE_FILES
        # In the order of the blocks, so that each is read once.
        for source in sorted(sources, key=lambda each: blocks.bits_of(each.name)):
            prefix = blocks.home(source.name, self._blocks)
            if prefix is not None and (in_blocks or source.name in self._names(prefix)):
                grouped.setdefault(prefix, []).append(source)
            else:
                singles.append(source)
        if in_blocks:
            grouped |= self._new_leaves(singles)
        changes: Iterator[Change] = self._block_changes(grouped, report)
        if in_blocks:
            changes = _chain(changes, self._forget_singles(sources))
        else:
            changes = _chain(changes, _single_changes(singles, report))
        return Written(len(sources), self._repo.write(changes))

    def remove(self, names: Iterable[str]) -> Written:
        """Removes the pictures with these true names. Raises LookalikeError, and removes none, if one is not there."""
        changes: list[Change] = []
        doomed: dict[str, set[str]] = {}
        missing = []
        count = 0
        for name in dict.fromkeys(names):
            count += 1
            entry = self._repo.inspect("/" + escape_component(name))
            prefix = blocks.home(name, self._blocks)
            if entry is not None:
                changes.append(Remove(entry.file.path))
            elif prefix is not None and name in self._names(prefix):
                doomed.setdefault(prefix, set()).add(name)
            else:
                missing.append(name)
        if missing:
            raise LookalikeError(f"not in the library: {', '.join(missing)}; nothing was removed")
        for prefix, gone in doomed.items():
            kept = {name: data for name, data in self._contents(prefix).items() if name not in gone}
            changes.append(_block_put(prefix, kept) if kept else Remove("/" + blocks.file_name(prefix)))
        return Written(count, self._repo.write(changes))

    def _names(self, prefix: str) -> set[str]:
        return set(self._contents(prefix))

    def _contents(self, prefix: str) -> dict[str, bytes]:
        """A block's pictures; at most `blocks.LIMIT` of them, so one block at a time fits in memory."""
        if self._read is None or self._read[0] != prefix:
            block = io.BytesIO(self._repo.read("/" + blocks.file_name(prefix)))
            self._read = prefix, dict(blocks.read(block))
        return self._read[1]

    def _new_leaves(self, sources: Sequence[Source]) -> dict[str, list[Source]]:
        """Blocks for files that belong in none so far: the branches of the tree that hold no block yet."""
        leaves: dict[str, list[Source]] = {}
        for source in sources:
            bits = blocks.bits_of(source.name)
            depth = 0
            while any(prefix.startswith(bits[:depth]) for prefix in self._blocks):
                depth += 1
            leaves.setdefault(bits[:depth], []).append(source)
        return leaves

    def _block_changes(self, grouped: dict[str, list[Source]], report: Report) -> Iterator[Change]:
        for prefix in sorted(grouped):
            there = prefix in self._blocks
            old = self._contents(prefix) if there else {}
            new = {source.name: source for source in grouped[prefix]}
            leaves = blocks.divide(old.keys() | new.keys(), prefix)
            if there and prefix not in leaves:
                yield Remove("/" + blocks.file_name(prefix))
            for leaf in sorted(leaves):
                held = {name: new[name].path.read_bytes() if name in new else old[name] for name in leaves[leaf]}
                yield _block_put(leaf, held)
                report(sum(name in new for name in held))

    def _forget_singles(self, sources: Sequence[Source]) -> Iterator[Change]:
        """A picture that goes into a block must not stay in the library as a single file too."""
        for source in sources:
            entry = escape_component(source.name)
            if entry.partition("/")[0] in self._entries:
                yield Remove("/" + entry)


def _chain(*parts: Iterable[Change]) -> Iterator[Change]:
    for part in parts:
        yield from part


def _single_changes(sources: Sequence[Source], report: Report) -> Iterator[Change]:
    for source in sources:
        yield Put("/" + escape_component(source.name), source.path)
        report(1)


def _block_put(prefix: str, held: dict[str, bytes]) -> Put:
    archive = io.BytesIO()
    blocks.write(held, held, archive)
    return Put("/" + blocks.file_name(prefix), archive.getvalue())


def put_queries(
    connection: Connection, arguments: Sequence[Path], report: Report = _silent
) -> tuple[list[str], Written]:
    """Puts each path as one query entry, a directory with all its files and a list of their names, replacing entries
    of the same name. Returns the entries' PFS names: the first component
    where a name is too long for one."""
    entries: dict[str, list[Change]] = {}
    files = 0
    for argument in arguments:
        sources = pictures.find([argument])
        if not sources:
            raise LookalikeError(f"{argument} holds no file: there is nothing to search for")
        true_name = argument.resolve().name if argument.is_dir() else argument.name
        path = escape_component(true_name)
        entry = path.partition("/")[0]
        if entry in entries:
            raise LookalikeError(f"two of the queries are called {true_name}, or begin alike: rename one of them")
        entries[entry] = _entry_changes(path, argument.is_dir(), sources)
        files += len(sources)

    def done(change: Change) -> None:
        report(isinstance(change.content, Path) if isinstance(change, Put) else 0)

    changes = [change for part in entries.values() for change in part]
    return list(entries), Written(files, Repository(connection, "queries").write(changes, done))


def _entry_changes(path: str, directory: bool, sources: Sequence[Source]) -> list[Change]:
    # What was there under this name may have been a file or a directory.
    entry = path.partition("/")[0]
    changes: list[Change] = [Remove(f"/{entry}"), Remove(f"/{entry}/")]
    if not directory:
        return [*changes, Put(f"/{path}", sources[0].path)]
    inner = [source.name.partition("/")[2] for source in sources]
    for name, source in zip(inner, sources, strict=True):
        changes.append(Put(f"/{path}/{escape_path(name)}", source.path))
    # Pachyderm's hash of a directory does not see names: without this list a renamed file would go unnoticed.
    listing = "".join(escape_path(name) + "\n" for name in inner)
    return [*changes, Put(f"/{path}/{NAMES_FILE}", listing.encode())]
