"""Blocks on their way into the library: each is uploaded once, however often the commit is planned again."""

from collections.abc import Callable, Mapping, Set

from pipelines.client.filesets import FileSets
from pipelines.client.repository import Put, Repository
from pipelines.library import blocks
from pipelines.library.blocks import Span
from pipelines.library.snapshots import block_path


class BlockUploads:
    """The blocks that one write has uploaded, as file sets of one block each."""

    def __init__(self, repo: Repository, filesets: FileSets) -> None:
        self._repo = repo
        self._filesets = filesets
        self._made: dict[tuple[str, frozenset[tuple[str, Span]]], str] = {}

    def put_all(
        self, leaves: Mapping[str, Set[str]], spans: Mapping[str, Span], done: Callable[[Set[str]], None]
    ) -> tuple[str, ...]:
        """The file sets of the blocks of these leaves, names by prefix; `done` hears of each leaf."""
        made = []
        for leaf, names in sorted(leaves.items()):
            made.append(self.put(leaf, {each: spans[each] for each in names}))
            done(names)
        return tuple(made)

    def put(self, prefix: str, pictures: Mapping[str, Span]) -> str:
        """The file set of the block of these pictures, by true name. Raises OSError if one cannot be read."""
        key = (prefix, frozenset(pictures.items()))
        if key not in self._made:
            self._made[key] = self._filesets.make(self._repo.requests([Put(block_path(prefix), blocks.tar(pictures))]))
        return self._made[key]
