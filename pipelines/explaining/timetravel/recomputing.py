"""The library of an earlier commit computed again, from its files to its index, where today's code cannot read the
output of the stages of then. Files are fetched in batches, and deleted once they are computed."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich import filesize

from pipelines.client.connection import Connection
from pipelines.client.datums import Datums
from pipelines.client.jobs import Jobs
from pipelines.client.outages import outlasting
from pipelines.client.trees import Entry, Tree, batches
from pipelines.cluster import graph_words
from pipelines.errors import LookalikeError
from pipelines.explaining.stageruns import Given, Work
from pipelines.explaining.timetravel import past as pasts
from pipelines.explaining.timetravel.past import LIBRARY, Past
from stages import thumbnailfiles
from stages.filecache import FileCache
from stages.wording import counted

_BATCH = 512 << 20
"""Most bytes that are fetched before they are computed."""

_READS = {"preprocess": ("images", "images", "/*"), "features": ("pictures", "preprocess", "/library/*"),
          "index": ("features", "features", "/library/*")}  # fmt: skip
"""The input of each pipeline of the library: its name, its repo, and the glob of its datums."""

_ROOM = 1.2
"""The disk that a stage's output takes, for each byte of its pixels."""

Show = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Shows the progress of a step with that name and total; gives a function to call with each increment."""


@dataclass(frozen=True, slots=True)
class Library:
    """A library of an earlier time, below a scratch directory."""

    connection: Connection
    past: Past
    store: FileCache
    scratch: Path
    counting: Show

    def announced(self, pipelines: Sequence[str], image_size: int) -> str:
        """A line about the work. Raises LookalikeError if the library is empty or does not fit on the disk."""
        entries = self._entries(pipelines[0])
        size = sum(each.size for each in entries)
        if not entries:
            raise self.past.empty()
        pictures = sum(self._counts())
        needed = int(max(pictures * image_size * image_size * 3 * _ROOM, size))
        if needed > self.store.free:
            raise LookalikeError(
                f"computing {counted(pictures, 'picture', 'pictures')} again needs {filesize.decimal(needed)} of disk "
                f"for a while, and {filesize.decimal(self.store.free)} are free: name another disk with XDG_CACHE_HOME"
            )
        of = counted(pictures, "picture", "pictures") if pictures else counted(len(entries), "datum", "datums")
        seconds = sum(map(self._seconds, pipelines))
        took = f"; the pipelines took {graph_words.duration(seconds)} of computing for it" if seconds else ""
        return (
            f"computing {', '.join(pipelines)} of {of} again with the code of today, from {filesize.decimal(size)} of "
            f"{_READS[pipelines[0]][1]}{took}"
        )

    def index(self, pipelines: Sequence[str], models: Path) -> Path:
        """Runs these pipelines, which are the last ones of LIBRARY; returns the directory of the index."""
        for pipeline in pipelines:
            name, repo, _ = _READS[pipeline]
            out = self.scratch / pipeline
            entries = self._entries(pipeline) if pipeline == pipelines[0] else self._local(repo)
            with self.counting(pipeline, len(entries)) as report:
                for group in batches(entries, _BATCH):
                    place = self.scratch / repo if pipeline != pipelines[0] else self._fetched(pipeline, group)
                    works = [Work(self._inputs(pipeline, name, place, each, models), out) for each in group]
                    self.past.run(pipeline, works, report)
                    for each in group:
                        _delete(place / each.path)
                        if pipeline == "index":
                            _delete(place / _thumbnails(each))
            out.mkdir(exist_ok=True)
        return self.scratch / "index"

    def _inputs(self, pipeline: str, name: str, place: Path, entry: Entry, models: Path) -> dict[str, Given]:
        given = {name: Given(place / entry.path, entry.path, self.past.id)}
        if pipeline == "features":
            return {"models": Given(models, "", self.past.id), **given}
        if pipeline == "index":
            shown = _thumbnails(entry)
            return {**given, "thumbnails": Given(place / shown, shown, self.past.id)}
        return given

    def _entries(self, pipeline: str) -> list[Entry]:
        """The datums of a pipeline at the commit."""
        _, repo, glob = _READS[pipeline]
        tree = pasts.source(self.connection, repo, self.past.id)
        return [] if tree is None else tree.entries(glob)

    def _fetched(self, pipeline: str, group: Sequence[Entry]) -> Path:
        tree = pasts.source(self.connection, _READS[pipeline][1], self.past.id)
        assert tree is not None  # it has these entries
        place = self.scratch / "fetched"
        for each in group:
            tree.fetch(each, place / each.path)
            if pipeline == "index":
                for shown in tree.entries(f"/{_thumbnails(each)}"):
                    tree.fetch(shown, place / shown.path)
        return place

    def _local(self, pipeline: str) -> list[Entry]:
        """The datums for the next pipeline in the output of this one."""
        place = self.scratch / pipeline
        return [Entry(f"library/{each.name}", sum(_sizes(each)), "", True) for each in sorted(place.glob("library/*"))]

    def _seconds(self, pipeline: str) -> float:
        """The time that a pipeline's workers took for the datums of its output of then, as far as it is known."""
        tree = Tree.at(self.connection, pipeline, self.past.id)
        job = (
            None
            if tree is None
            else outlasting(self.connection, partial(Jobs(self.connection).of, pipeline, tree.commit))
        )
        if job is None:
            return 0.0
        datums = outlasting(self.connection, lambda: list(Datums(self.connection, job)))
        return sum(each.seconds or 0.0 for each in datums)

    def _counts(self) -> Iterator[int]:
        """The numbers of pictures of each segment of the index of then, if it can be read."""
        tree = Tree.at(self.connection, LIBRARY[-1], self.past.id)
        return iter(()) if tree is None else tree.numbers("/*/index.json", "count")


def _thumbnails(segment: Entry) -> str:
    """The directory with the thumbnails of a segment of features, a datum of the index."""
    return f"{thumbnailfiles.DIRECTORY}/{segment.path.rpartition('/')[2]}"


def _sizes(directory: Path) -> Iterator[int]:
    return (each.stat().st_size for each in directory.rglob("*") if each.is_file())


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
