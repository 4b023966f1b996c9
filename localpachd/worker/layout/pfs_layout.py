"""The contents of `/pfs`: the inputs of one datum put in place, `out`, `.env`, and their removal.

As in Pachyderm, each name in `/pfs` is a link into `/pfs/.scratch/<datum id>`. Knows no processes.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from uuid import uuid4

from localpachd import durable_files, ids
from localpachd.database import Database
from localpachd.errors import NoSpace, PachError
from localpachd.storage import paths
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import FileContent, FileSet, TaggedFile
from localpachd.worker.layout import linux_files, open_files
from localpachd.worker.layout.lazy_pipes import LazyPipes
from localpachd.worker.layout.pipe_budget import PipeBudget
from localpachd.worker.layout.tree_removal import remove
from localpachd.worker.tasks import DatumWork, InputFile

SCRATCH = ".scratch"
OUT = "out"
ENV = ".env"


class PlacementError(Exception):
    """A datum's inputs cannot be put in place; the text is the reason."""


@dataclass(frozen=True, slots=True)
class DatumPlacement:
    """A datum in place.

    `tree` is its directory on this machine's disk, `shown` the same as user code sees it, `inputs` the inputs' names.
    `references` are the contents of the lazy and empty files by their path below `tree`; a link to such a file stands
    for them. `downloaded` counts the bytes put in place, without those that lazy files may give later.
    """

    tree: Path
    shown: str
    inputs: frozenset[str]
    references: dict[str, FileContent]
    downloaded: int


class PfsLayout:
    """The directory that one worker's processes see as `/pfs`.

    `pfs` is its path on this machine, `shown` its path for processes, `owner` the (uid, gid) that owns all files in it.
    """

    def __init__(
        self, pfs: Path, shown: str, db: Database, chunks: ChunkStore, owner: tuple[int, int] | None = None
    ) -> None:
        self.pfs = pfs
        self.shown = shown
        self._db = db
        self._chunks = chunks
        self._owner = owner
        self._lasting: list[str] = []
        pfs.mkdir(parents=True, exist_ok=True)
        self._own(pfs)
        self._make_lasting()

    def directory(self, name: str) -> str:
        """Makes a directory that all datums share; returns its path as processes see it."""
        self._lasting.append(name)
        self._make_lasting()
        return f"{self.shown}/{SCRATCH}/{name}"

    def shared(self, path: str) -> bool:
        """Whether a path, as processes see it, lies in a directory made by `directory` and so belongs to no datum."""
        return any(path.startswith(f"{self.shown}/{SCRATCH}/{name}/") for name in self._lasting)

    def lazy_pipes(self, budget: PipeBudget, note: Callable[[str], None], misused: Callable[[str], None]) -> LazyPipes:
        """The pipes for lazy inputs of datums that are placed here; to be closed. The arguments are theirs."""
        return LazyPipes(budget, self.pfs.with_name("pipes"), note, misused)

    def place(
        self, work: DatumWork, env: Mapping[str, str], pipes: LazyPipes, check: Callable[[], None]
    ) -> DatumPlacement:
        """Puts a datum's inputs in place, with an empty `out`, and `env` in `.env`: the variables of the pipeline and
        of the datum, but not the machine's own, which would do harm in shells that read the file.

        `check` is called often and may raise to stop it. Raises PlacementError, and NoSpace if the disk is full.
        """
        tree = self.pfs / SCRATCH / work.id
        placing = _Placement(tree, f"{self.shown}/{SCRATCH}/{work.id}", self._chunks, pipes, check)
        try:
            with self._chunks.disk.writing():
                self.clear(work.id)
                self._make_apart(tree)
                (tree / OUT).mkdir()
                (tree / ENV).write_bytes(
                    "".join(f"{name}={value}\n" for name, value in env.items()).encode(errors="surrogateescape")
                )
                for each in work.inputs:
                    with self._db.read() as conn:
                        placing.put(each, FileSet(conn, each.files))
                if self._owner is not None:
                    self._own(tree, *tree.rglob("*"))
                for name in dict.fromkeys((ENV, *(each.name for each in work.inputs), OUT)):
                    (self.pfs / name).symlink_to(f"{placing.shown}/{name}")
        except NoSpace:
            raise
        except (OSError, PachError) as failure:
            raise PlacementError(f"cannot put the inputs in place: {failure}") from failure
        pipes.start()
        names = frozenset(each.name for each in work.inputs)
        return DatumPlacement(tree, placing.shown, names, placing.references, placing.downloaded)

    def replaced_out(self, placed: DatumPlacement) -> bool:
        """Whether user code has replaced `/pfs/out`."""
        out = self.pfs / OUT
        if out.is_symlink():
            return str(out.readlink()) != f"{placed.shown}/{OUT}"
        return out.exists()

    def clear(self, datum: str) -> None:
        """Removes a datum and everything else that user code has put into `/pfs`."""
        with os.scandir(self.pfs) as entries:
            for entry in entries:
                if entry.name != SCRATCH:
                    remove(Path(entry.path))
        # User code can have done anything to the scratch directory too.
        self._make_lasting()
        remove(self.pfs / SCRATCH / datum)

    def set_aside(self, placed: DatumPlacement) -> Path | None:
        """Moves a datum's directory to where processes do not look, and returns it; to be removed. None if a process
        still has something of it open, and could change it there, or if it cannot be moved."""
        if open_files.has_open(placed.tree.name, open_files.YoungerProcesses()):
            return None
        aside = self.pfs.with_name("aside")
        try:
            aside.mkdir(mode=0o700, exist_ok=True)
            return placed.tree.rename(aside / uuid4().hex)
        except OSError:
            return None

    def _make_apart(self, tree: Path) -> None:
        """Makes a datum's directory, on the disk away from those of all datums before it (see
        `linux_files.spread_directories`): under a name of its own, since a datum comes again in each job."""
        fresh = tree.with_name(uuid4().hex)
        fresh.mkdir()
        fresh.rename(tree)

    def _make_lasting(self) -> None:
        for made in (self.pfs / SCRATCH, *(self.pfs / SCRATCH / name for name in self._lasting)):
            if not made.is_dir():
                made.mkdir()
                self._own(made)
                if made.name == SCRATCH:
                    linux_files.spread_directories(made)

    def _own(self, *made: Path) -> None:
        if self._owner is not None:
            for path in made:
                os.chown(path, *self._owner, follow_symlinks=False)


class _Placement:
    """One datum being put in place."""

    def __init__(self, tree: Path, shown: str, chunks: ChunkStore, pipes: LazyPipes, check: Callable[[], None]) -> None:
        self.shown = shown
        self.references: dict[str, FileContent] = {}
        self.downloaded = 0
        self._tree = str(tree)
        self._chunks = chunks
        self._pipes = pipes
        self._check = check

    def put(self, each: InputFile, files: FileSet) -> None:
        """Puts one input in place. Of thousands of files each takes 40 µs; as `Path`s they would take 60."""
        made = set[str]()
        if each.path.endswith("/"):
            Path(self._tree, each.name, each.path.strip("/")).mkdir(parents=True, exist_ok=True)
        for file in _files(each, files):
            self._check()
            below = f"{each.name}{file.path}"
            place = f"{self._tree}/{below}"
            directory = place.rpartition("/")[0]
            if directory not in made:
                Path(directory).mkdir(parents=True, exist_ok=True)
                made.add(directory)
            if each.empty_files:
                os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o666))
                self.references[below] = file.content
            elif each.lazy and self._pipe(place, below, file.content):
                self.references[below] = file.content
            else:
                self._write(place, below, file.content)

    def _pipe(self, place: str, below: str, content: FileContent) -> bool:
        if below in self.references:  # a group can hold one file twice
            return True
        return self._pipes.add(place, f"/pfs/{below}", lambda: self._chunks.read(content, name=f"/pfs/{below}"))

    def _write(self, place: str, below: str, content: FileContent) -> None:
        with open(place, "wb", buffering=0) as target:  # noqa: PTH123 (this runs for each of thousands of files)
            for part in _without_holes(content, target):
                for piece in self._chunks.read(part, name=f"/pfs/{below}"):
                    self._check()
                    durable_files.write_all(target.fileno(), piece)
        self.downloaded += content.size


def _without_holes(content: FileContent, target: FileIO) -> Iterator[FileContent]:
    """The chunks of a file that is being written which have to be written, each when the file is at its place."""
    if len(content.chunks) < 2 or ids.hole_hash() not in content.chunks:
        yield content
        return
    for number, chunk in enumerate(content.chunks):
        if chunk != ids.hole_hash():
            at = target.seek(number * ids.CHUNK_SIZE)
            yield FileContent(min(ids.CHUNK_SIZE, content.size - at), (chunk,))
    target.truncate(content.size)


def _files(each: InputFile, files: FileSet) -> Iterator[TaggedFile]:
    if each.path.endswith("/"):
        return files.under(each.path)
    found = files.get(paths.bare(each.path))
    if not found:
        raise PlacementError(f"cannot put the inputs in place: {each.name}:{each.path} is not in its commit")
    return iter(found)
