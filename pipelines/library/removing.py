"""The content of a commit that removes pictures from the library, on top of any other commit."""

from collections.abc import Callable, Iterable
from pathlib import Path

from pipelines.client.connection import Connection
from pipelines.client.filesets import FileSets
from pipelines.client.repository import Edit, Remove, Repository
from pipelines.library import blocks
from pipelines.library.blocks import Span
from pipelines.library.snapshots import REPO, Downloads, Snapshot, block_path
from pipelines.library.uploads import BlockUploads

Choice = Callable[[Snapshot], Iterable[str]]
"""Names the pictures of a library to remove, by true name. Raises LookalikeError to remove none."""


class Removing:
    """Pictures being removed. `names` are those that the last content removes."""

    def __init__(self, connection: Connection, filesets: FileSets, scratch: Path, choose: Choice) -> None:
        self.names: list[str] = []
        self._connection = connection
        self._repo = Repository(connection, REPO)
        self._filesets = filesets
        self._downloads = Downloads(scratch)
        self._uploads = BlockUploads(self._repo, filesets)
        self._choose = choose

    def content(self, parent: str) -> str:
        """The file set that removes the pictures on top of a commit; blocks that have become small are joined."""
        library = Snapshot(self._connection, parent, self._downloads)
        self.names = list(dict.fromkeys(self._choose(library)))
        paths: list[str] = []
        shrunk: dict[str, set[str]] = {}
        for name in self.names:
            paths += library.files(name)
            home = library.home(name)
            if home is not None:
                shrunk.setdefault(home, set(library.block(home))).discard(name)
        leaves, gone = blocks.join(shrunk, library.blocks.keys() - shrunk.keys(), library.block)
        spans: dict[str, Span] = {}
        for prefix in shrunk.keys() | gone:
            spans |= library.block(prefix)
        made = [self._uploads.put(leaf, {each: spans[each] for each in leaves[leaf]}) for leaf in sorted(leaves)]
        paths += map(block_path, sorted(gone))
        edits: list[Edit] = [Remove(path) for path in paths]
        return self._filesets.compose([*made, *([self._filesets.make(self._repo.requests(edits))] if edits else [])])


def everything(connection: Connection, filesets: FileSets, parent: str) -> str:
    """The file set that removes every entry of the library on top of a commit."""
    library = Snapshot(connection, parent, Downloads(Path()))
    return filesets.make(Repository(connection, REPO).requests(map(Remove, library.paths())))
