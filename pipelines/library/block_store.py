"""The blocks of a library on their way here and there: the lists of their pictures, their bytes, and new ones."""

import tarfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

from pipelines.client.file_sets import FileSets, ModifyRequests
from pipelines.client.repository import PutFile, Repository
from pipelines.errors import LookalikeError
from pipelines.library.content_cache import ContentCache, default_path
from stages.files import blocks
from stages.files.blocks import ByteRange, IngestBlock, RecordBlock
from stages.record import block_names

_READERS = 8


class BlockDownloads:
    """Blocks by their hashes, in a directory of their own: blocks with equal hashes have equal pictures. The lists of
    these are kept on this machine."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._kept = ContentCache(default_path())
        self._lists: dict[bytes, dict[str, str]] = {}
        self._read: dict[bytes, dict[str, ByteRange]] = {}

    def hashes(self, repo: Repository, wanted: Mapping[str, bytes]) -> dict[str, dict[str, str]]:
        """The SHA-256 of the pictures by true name of these blocks, given with their hashes. Only blocks of earlier
        versions are downloaded for that, and each is read once on a machine."""
        missing = {name: content for name, content in wanted.items() if content not in self._lists}
        kept = {content: self._kept.get(content) for content in missing.values()}
        self._lists |= {content: hashes for content, hashes in kept.items() if hashes is not None}
        new = {name: content for name, content in missing.items() if kept[content] is None}
        with ThreadPoolExecutor(_READERS) as readers:
            lists = readers.map(lambda name: block_names.read_list(partial(repo.read, f"/{name}", 0)), new)
            for (name, content), listed in zip(new.items(), lists, strict=True):
                found = self._hashed(repo, name, content) if listed is None else {e.path: e.sha256 for e in listed}
                self._lists[content] = found
                self._kept.put(content, found)
        if missing:
            self._kept.save()
        return {name: self._lists[content] for name, content in wanted.items()}

    def pictures(self, repo: Repository, name: str, content: bytes) -> dict[str, ByteRange]:
        """The bytes of the pictures by true name of the same block."""
        if content not in self._read:
            file = self._file(content)
            with file.open("wb") as target:
                repo.fetch(f"/{name}", target)
            try:
                self._read[content] = blocks.read(file)
            except tarfile.TarError as error:
                raise LookalikeError(
                    f"{name} in {repo.name} is not a block of lookalike's: remove it ({error})"
                ) from error
        return self._read[content]

    def forget(self, content: bytes | None) -> None:
        """Deletes a block's pictures, which take space."""
        if content is not None and self._read.pop(content, None) is not None:
            self._file(content).unlink()

    def _hashed(self, repo: Repository, name: str, content: bytes) -> dict[str, str]:
        there = content in self._read
        found = {path: blocks.measure(path, span).sha256 for path, span in self.pictures(repo, name, content).items()}
        if not there:
            self.forget(content)
        return found

    def _file(self, content: bytes) -> Path:
        return self._directory / f"{content.hex()}.tar"


class BlockUploads:
    """The blocks that one write has uploaded, as file sets of one block each: each is uploaded once, however often the
    commit is planned again."""

    def __init__(self, repo: Repository, filesets: FileSets) -> None:
        self._repo = repo
        self._filesets = filesets
        self._made: dict[str, str] = {}

    def put_all(self, planned: Iterable[IngestBlock | RecordBlock], done: Callable[[int], None]) -> dict[str, str]:
        """The file set of each of these blocks by its name; `done` hears of its number of pictures. Raises OSError
        if one cannot be read."""
        names: list[str] = []
        new: deque[IngestBlock | RecordBlock] = deque()

        def uploads() -> Iterator[ModifyRequests]:
            for block in planned:
                names.append(block.name)
                if block.name not in self._made:
                    new.append(block)
                    yield self._repo.requests([PutFile(f"/{block.name}", block.pieces())])

        with closing(self._filesets.make_all(uploads())) as made:
            for fileset in made:
                block = new.popleft()
                self._made[block.name] = fileset
                done(len(block.pictures))
        return {name: self._made[name] for name in names}
