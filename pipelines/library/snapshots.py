"""The library at one commit: its top-level entries, its blocks on their way here and there, and the pictures in them by
true name.

A picture is a top-level file of its own, in a block, or in a directory that was put by other means.
"""

import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import closing
from pathlib import Path

from pipelines.client.file_sets import FileSets, ModifyRequests
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import blocks
from pipelines.library.blocks import ByteRange
from stages.record import block_names, picture_containers
from stages.record.pfs_names import unescape

REPO = "images"


class BlockDownloads:
    """Blocks by their hashes, in a directory of their own: blocks with equal hashes have equal pictures."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[bytes, dict[str, ByteRange]] = {}

    def pictures(self, repo: Repository, name: str, content: bytes) -> dict[str, ByteRange]:
        """The pictures by true name of the block that is called `name` and has the hash `content`."""
        if content not in self._read:
            file = self._file(content)
            with file.open("wb") as target:
                repo.fetch(f"/{name}", target)
            try:
                self._read[content] = blocks.read(file)
            except tarfile.TarError as error:
                raise LookalikeError(f"{name} in {REPO} is not a block of lookalike's: remove it ({error})") from error
        return self._read[content]

    def forget(self, content: bytes | None) -> None:
        """Deletes a block's pictures, which take space."""
        if content is not None and self._read.pop(content, None) is not None:
            self._file(content).unlink()

    def _file(self, content: bytes) -> Path:
        return self._directory / f"{content.hex()}.tar"


class LibrarySnapshot:
    """`images` at a commit; empty for the id ""."""

    def __init__(self, connection: Connection, commit: str, downloads: BlockDownloads) -> None:
        self._repo = Repository(connection, REPO, commit)
        self._downloads = downloads
        self.entries = self._repo.entries() if commit else {}
        """The hashes of top-level files and directories, see Repository.entries."""
        self.blocks = {
            prefix: content
            for name, content in self.entries.items()
            if (prefix := block_names.prefix_of(name)) is not None
        }
        """The hashes of blocks by prefix."""

    def block(self, prefix: str) -> dict[str, ByteRange]:
        """The pictures of a block; none for a new one."""
        if prefix not in self.blocks:
            return {}
        return self._downloads.pictures(self._repo, block_names.file_name(prefix), self.blocks[prefix])

    def forget(self, prefix: str) -> None:
        """Deletes the downloaded pictures of a block."""
        self._downloads.forget(self.blocks.get(prefix))

    def home(self, name: str) -> str | None:
        """The prefix of the block that holds a picture, if one does."""
        prefix = block_names.home(name, self.blocks)
        return prefix if prefix is not None and name in self.block(prefix) else None

    def holds(self, name: str) -> bool:
        """Whether there is a picture of this true name."""
        return self.home(name) is not None or bool(self.files(name))

    def files(self, name: str) -> list[str]:
        """The files outside blocks that a picture of this true name is, at most two."""
        if len(self.entries) == len(self.blocks):  # all entries are blocks
            return []
        return [path for path in picture_containers.paths_of(name) if self._is_file(path)]

    def hash_of(self, path: str) -> bytes | None:
        """The hash of a file outside blocks."""
        return self.entries.get(path[1:]) or self._repo.hashes(path).get(path)

    def names(self) -> set[str]:
        """The true name of every picture. Reads all blocks."""
        found: set[str] = set()
        for entry in self.entries:
            prefix = block_names.prefix_of(entry)
            if prefix is not None:
                found.update(self.block(prefix))
            elif entry.endswith("/"):
                found.update(unescape(path.strip("/")) for path in self._repo.files_in(f"/{entry}"))
            else:
                found.add(unescape(entry))
        return found

    def outside_blocks(self, folder: str) -> Iterator[tuple[str, str, bytes]]:
        """The true name, the path and the hash of every picture below a folder that is in no block."""
        for entry, content in self.entries.items():
            if block_names.prefix_of(entry) is not None:
                continue
            found = self._repo.hashes(f"/{entry}") if entry.endswith("/") else {f"/{entry}": content}
            for path, each in found.items():
                name = unescape(path.strip("/"))
                if name.startswith(f"{folder}/"):
                    yield name, path, each

    def content(self, path: str) -> Iterator[bytes]:
        """The bytes of a file, piece by piece."""
        return self._repo.pieces(path)

    def paths(self) -> Iterator[str]:
        """The path of every file."""
        for entry in self.entries:
            yield from self._repo.files_in(f"/{entry}") if entry.endswith("/") else (f"/{entry}",)

    def by_leaf(self, names: Iterable[str]) -> dict[str, list[str]]:
        """The names by the block, existing or new, to which they belong."""
        leaves: dict[str, list[str]] = {}
        for name in names:
            prefix = block_names.home(name, self.blocks)
            if prefix is None:
                prefix = blocks.free_branch(name, self.blocks)
            leaves.setdefault(prefix, []).append(name)
        return leaves

    def _is_file(self, path: str) -> bool:
        top, _, below = path[1:].partition("/")
        return f"{top}/" in self.entries and self._repo.is_file(path) if below else top in self.entries


def own_path(name: str) -> str:
    """The path of a picture that is a file of its own."""
    return picture_containers.paths_of(name)[0]


def block_path(prefix: str) -> str:
    """The path of a block."""
    return f"/{block_names.file_name(prefix)}"


_Pictures = frozenset[tuple[str, ByteRange]]
"""The pictures of a block, by true name."""


class BlockUploads:
    """The blocks that one write has uploaded, as file sets of one block each: each is uploaded once, however often the
    commit is planned again."""

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
