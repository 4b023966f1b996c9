"""Blocks on their way into the library: each is uploaded once, however often the commit is planned again."""

from collections.abc import Callable, Mapping, Set
from contextlib import closing

from pipelines.client.file_sets import FileSets, ModifyRequests
from pipelines.client.repository import PutFile, Repository
from pipelines.library import blocks
from pipelines.library.blocks import ByteRange
from pipelines.library.snapshots import block_path

_Pictures = frozenset[tuple[str, ByteRange]]
"""The pictures of a block, by true name."""


class BlockUploads:
    """The blocks that one write has uploaded, as file sets of one block each."""

    def __init__(self, repo: Repository, filesets: FileSets) -> None:
        self._repo = repo
        self._filesets = filesets
        self._made: dict[tuple[str, _Pictures], str] = {}

    def put_all(
        self, leaves: Mapping[str, Set[str]], spans: Mapping[str, ByteRange], done: Callable[[Set[str]], None]
    ) -> tuple[str, ...]:
        """The file sets of the blocks of these leaves, names by prefix; `done` hears of each leaf. Raises OSError if a
        picture cannot be read."""
        keys = [(leaf, frozenset((each, spans[each]) for each in names)) for leaf, names in sorted(leaves.items())]
        missing = [key for key in keys if key not in self._made]
        with closing(self._filesets.make_all(self._requests(*key) for key in missing)) as new:
            for key in keys:
                if key not in self._made:
                    self._made[key] = next(new)
                done(leaves[key[0]])
        return tuple(self._made[key] for key in keys)

    def _requests(self, prefix: str, pictures: _Pictures) -> ModifyRequests:
        return self._repo.requests([PutFile(block_path(prefix), blocks.tar(dict(pictures)))])
