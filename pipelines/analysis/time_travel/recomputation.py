"""The library of an earlier commit computed again, from its files to its index, where today's code cannot read the
output of the stages of then. Files are fetched in batches, and deleted once they are computed."""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from rich import filesize

from pipelines.analysis.stage_runs import StageDatum, StageInput, run_pipeline
from pipelines.analysis.time_travel import past_library
from pipelines.analysis.time_travel.past_library import LIBRARY
from pipelines.analysis.time_travel.stage_workbench import StageWorkbench
from pipelines.client.commit_tree import CommitTree, batches
from pipelines.client.jobs.datums import JobDatums
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.stored_file import StoredFile
from pipelines.cluster import graph_text
from pipelines.errors import LookalikeError
from pipelines.library.snapshots import FETCHED
from stages.datum.text_format import counted
from stages.files import thumbnail_files, vector_files
from stages.record import masks

_BATCH = 512 << 20
"""Most bytes that are fetched before they are computed."""

_READS = {
    "preprocess": ("images", "images", "/*"),
    "features": ("pictures", "preprocess", "/library/*"),
    "partition": ("features", "features", "/library/*"),
    "index": ("features", "partition", "/library/*"),
}
"""The input of each pipeline of the library: its name, its repo, and the glob of its datums."""

_BESIDE = {
    "partition": {
        thumbnail_files.DIRECTORY: ("preprocess", thumbnail_files.DIRECTORY),
        masks.REPO: (masks.REPO, masks.DIRECTORY),
    },
    "index": {each: ("partition", each) for each in (vector_files.DIRECTORY, thumbnail_files.DIRECTORY)},
}
"""The further inputs of a pipeline's datums: of each its repo, and the directory above those with the datums' names."""

_ROOM = 1.2
"""The disk that a stage's output takes, for each byte of its pixels."""


@dataclass(frozen=True, slots=True)
class RecomputedLibrary(StageWorkbench):
    """A library of an earlier time, below the scratch directory."""

    def announced(self, pipelines: Sequence[str], image_size: int) -> str:
        """A line about the work. Raises LookalikeError if the library is empty or does not fit on the disk."""
        entries = self._entries(pipelines[0])
        size = sum(each.size for each in entries)
        if not entries:
            raise self.past.empty()
        if pipelines[0] == "preprocess" and past_library.source(self.connection, FETCHED, self.past.id) is not None:
            raise LookalikeError(
                f"the library of commit {self.past.id[:12]} has pictures of a bucket, which are not prepared again by "
                "the code of today: ask a commit since the last `lookalike upgrade`"
            )
        pictures = sum(self._counts())
        needed = int(max(pictures * image_size * image_size * 3 * _ROOM, size))
        if needed > self.store.free:
            raise LookalikeError(
                f"computing {counted(pictures, 'picture', 'pictures')} again needs {filesize.decimal(needed)} of disk "
                f"for a while, and {filesize.decimal(self.store.free)} are free: name another disk with XDG_CACHE_HOME"
            )
        of = counted(pictures, "picture", "pictures") if pictures else counted(len(entries), "datum", "datums")
        seconds = sum(map(self._seconds, pipelines))
        took = f"; the pipelines took {graph_text.duration(seconds)} of computing for it" if seconds else ""
        return (
            f"computing {', '.join(pipelines)} of {of} again with the code of today, from {filesize.decimal(size)} of "
            f"{_READS[pipelines[0]][1]}{took}"
        )

    def index(self, pipelines: Sequence[str], models: Path) -> Path:
        """Runs these pipelines, which are the last ones of LIBRARY; returns the directory of the index."""
        backbone = {"models": StageInput(models, "", self.past.id)}
        for pipeline in pipelines:
            inputs = _Inputs(self, pipeline, pipelines)
            out = self.scratch / pipeline
            variables = self.past.environments[pipeline]
            entries = self._entries(pipeline) if pipeline == pipelines[0] else self._local(_READS[pipeline][1])
            with self.steps.counting(pipeline, len(entries)) as report:
                for group in batches(entries, _BATCH):
                    given = list(map(inputs.of, group))
                    more = backbone if pipeline == "features" else {}
                    run_pipeline(pipeline, [StageDatum({**more, **each}, out) for each in given], variables, report)
                    for each in chain.from_iterable(each.values() for each in given):
                        _delete(each.path)
            out.mkdir(exist_ok=True)
        return self.scratch / "index"

    def _entries(self, pipeline: str) -> list[StoredFile]:
        """The datums of a pipeline at the commit, each with the size of all its inputs."""
        _, repo, glob = _READS[pipeline]
        beside: Counter[str] = Counter()
        for other, above in _BESIDE.get(pipeline, {}).values():
            for each in self._found(other, f"/{above}/*"):
                beside[_name(each)] += each.size
        return [replace(each, size=each.size + beside[_name(each)]) for each in self._found(repo, glob)]

    def _found(self, repo: str, glob: str) -> list[StoredFile]:
        tree = past_library.source(self.connection, repo, self.past.id)
        return [] if tree is None else tree.entries(glob)

    def _local(self, pipeline: str) -> list[StoredFile]:
        """The datums for the next pipeline in the output of this one."""
        place = self.scratch / pipeline
        return [
            StoredFile(f"library/{each.name}", sum(_sizes(each)), "", True) for each in sorted(place.glob("library/*"))
        ]

    def _seconds(self, pipeline: str) -> float:
        """The time that a pipeline's workers took for the datums of its output of then, as far as it is known."""
        tree = CommitTree.at(self.connection, pipeline, self.past.id)
        job = None if tree is None else self.connection.retry(ProjectJobs(self.connection).of, pipeline, tree.commit)
        if job is None:
            return 0.0
        datums = self.connection.retry(lambda: list(JobDatums(self.connection, job)))
        return sum(each.seconds or 0.0 for each in datums)

    def _counts(self) -> Iterator[int]:
        """The numbers of pictures of each segment of the index of then, if it can be read."""
        tree = CommitTree.at(self.connection, LIBRARY[-1], self.past.id)
        return iter(()) if tree is None else tree.numbers("/*/index.json", "count")


class _Inputs:
    """The inputs of one pipeline's datums, in the output of the pipelines that are computed here or, of others,
    fetched."""

    def __init__(self, bench: StageWorkbench, pipeline: str, computed: Sequence[str]) -> None:
        self._name, self._repo, _ = _READS[pipeline]
        self._beside = _BESIDE.get(pipeline, {})
        self._commit, self._scratch = bench.past.id, bench.scratch
        fetched = {self._repo, *(repo for repo, _ in self._beside.values())} - {*computed}
        self._trees = {each: past_library.source(bench.connection, each, self._commit) for each in fetched}

    def of(self, entry: StoredFile) -> dict[str, StageInput]:
        """The inputs of a datum by name. Of those that are missing, the stage says what to do."""
        given = {self._name: self._given(self._repo, entry)}
        for name, (repo, above) in self._beside.items():
            path = f"{above}/{_name(entry)}"
            tree = self._trees.get(repo)
            for each in [StoredFile(path, 0, "", True)] if tree is None else tree.entries(f"/{path}"):
                given[name] = self._given(repo, each)
        return {name: each for name, each in given.items() if each.path.exists()}

    def _given(self, repo: str, entry: StoredFile) -> StageInput:
        tree, place = self._trees.get(repo), self._scratch / repo / entry.name
        if tree is not None:
            place = self._scratch / "fetched" / repo / entry.name
            tree.fetch(entry, place)
        return StageInput(place, entry.name, self._commit)


def _name(entry: StoredFile) -> str:
    return entry.name.rpartition("/")[2]


def _sizes(directory: Path) -> Iterator[int]:
    return (each.stat().st_size for each in directory.rglob("*") if each.is_file())


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
