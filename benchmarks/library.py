"""Owns a library and its queries on the localpachd to measure: filling it, changing it and checking the sheet after
each change, deleting its history. Knows no goals."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import original, servers, sheets, storage
from benchmarks.engine import Work, longest, settle
from benchmarks.trees import Tree
from pipelines.client import backbones, deployment
from pipelines.client.connection import Connection, Target, connect
from pipelines.client.repository import Repository
from pipelines.library import dataset, models, queries, snapshots, stl10
from pipelines.library.stl10 import Split
from pipelines.specifications import reading
from stages.backbonespec import SPEC_FILE, parse_spec
from stages.stl10 import RECORD


@dataclass(frozen=True, slots=True)
class Step:
    """The cost of one change: seconds from before the put until the end of its last job, the seconds of the put alone,
    the work of each pipeline, the number of pictures put or computed again, and the peak memory of the server and its
    workers in MiB."""

    name: str
    seconds: float
    put: float
    works: tuple[Work, ...]
    pictures: int
    peak: float

    @property
    def user(self) -> float:
        """The least seconds in which user code ran: those of the longest chain of pipelines. The rest may have run at
        the same time."""
        return longest(
            {each.pipeline: each.user for each in self.works}, {each.name: each.repos for each in reading.load()}
        )

    @property
    def engine(self) -> float:
        """The most seconds in which no user code ran."""
        return self.seconds - self.user


class Library:
    """Pictures and queries in STL-10's format on a server of their own, with its state in a directory."""

    server: servers.Server
    connection: Connection
    _tree: Tree

    def __init__(self, root: Path, split: Split) -> None:
        self.split = split
        self._root = root
        self._commits: list[str] = []
        self._pictures = self._backbone = 0  # bytes
        (render,) = (each for each in reading.load() if each.name == "render")
        self._k = int(render.document["transform"]["env"]["K"])

    @contextmanager
    def running(self) -> Iterator["Library"]:
        """Runs the server, which collects all garbage when it starts."""
        with servers.localpachd(root=self._root) as self.server, Tree(self.server.process.pid) as self._tree:
            self.connection = connect(Target(f"grpc://127.0.0.1:{self.server.port}"))
            yield self

    @property
    def sources(self) -> int:
        """The bytes of the files that were put and not removed: pictures and backbone."""
        return self._pictures + self._backbone

    @property
    def answers(self) -> sheets.Answers:
        """The current answers."""
        return sheets.read(self.connection, stl10.ENTRY)

    def fill(self, backbone: Path, labels: bytes) -> Step:
        """Deploys the specifications and puts a backbone; then, and only this is measured, puts everything that
        `lookalike add stl10` puts."""
        deployment.deploy(self.connection, original.specifications())
        self._commits.append(self._put_backbone(backbone))
        settle(self.connection, self._commits)
        pictures = len(self.split.library) + len(self.split.queries)
        add = lambda: dataset.add(self.connection, self.split, labels)  # noqa: E731
        return self.change("fill", add, pictures, pictures * RECORD)

    def swap(self, backbone: Path) -> Step:
        """Puts another backbone, so that everything is computed again."""
        before = self.answers.models
        pictures = len(self.split.library) + len(self.split.queries)
        done = self.change("swap the backbone", lambda: [self._put_backbone(backbone)], pictures)
        if before & self.answers.models:
            raise RuntimeError("the sheet still shows answers of the replaced backbone")
        return done

    def change(self, name: str, put: Callable[[], Iterable[str]], pictures: int = 1, more: int = 0) -> Step:
        """Puts pictures, waits for the jobs, and checks the sheet. `put` returns the commits it has made; `more` is the
        growth in bytes of the files that were put. Raises RuntimeError if a job fails or the sheet is wrong."""
        print(f" {name} ...", file=sys.stderr, flush=True)
        self._tree.forget_peak()
        begun = time.time()
        commits = list(put())
        put_by = time.time()
        self._commits += commits
        self._pictures += more
        settled = settle(self.connection, commits)
        peak = self._tree.peak
        self.answers.check(len(self.split.queries), self._k)
        return Step(name, settled.ended - begun, put_by - begun, settled.works, pictures, peak)

    def forget_history(self) -> None:
        """Keeps only the newest state of everything. Raises RuntimeError if that makes pipelines compute anything."""
        sources = [snapshots.REPO, queries.REPO, backbones.REPO, dataset.LABELS]
        new = storage.forget_history(self.connection, sources, self._commits)
        self._commits = [new]
        if any(work.processed for work in settle(self.connection, [new]).works):
            raise RuntimeError("commits without any change made pipelines compute something")
        self.answers.check(len(self.split.queries), self._k)

    def _put_backbone(self, directory: Path) -> str:
        spec = parse_spec((directory / SPEC_FILE).read_bytes())
        self._backbone = sum(path.stat().st_size for path in directory.iterdir())
        return models.put(Repository(self.connection, backbones.REPO), spec, directory).commit
