"""Owns a library and its queries on a localpachd that is measured: filling it, changing it with a look at the sheet
after each change, forgetting its history. Knows no goal."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import servers, sheets, storage
from benchmarks.engine import Work, longest, settle
from benchmarks.trees import Tree
from pipelines.client import deployment
from pipelines.client.connection import Connection, Target, connect
from pipelines.client.repository import Repository
from pipelines.library import dataset, ingest, models, queries, stl10
from pipelines.library.stl10 import Split
from pipelines.specifications import reading
from stages.backbonespec import SPEC_FILE, parse_spec
from stages.stl10 import RECORD


@dataclass(frozen=True, slots=True)
class Step:
    """What one change cost: seconds from before the put until the last of its jobs had ended, how many of these the put
    took, the work of each pipeline, how many pictures were put or computed again, and the most memory that the server
    and its workers held meanwhile, in MiB."""

    name: str
    seconds: float
    put: float
    works: tuple[Work, ...]
    pictures: int
    peak: float

    @property
    def user(self) -> float:
        """Seconds in which user code ran, at least: those of the longest chain of pipelines. What is not in the chain
        may have run beside it."""
        return longest(
            {each.pipeline: each.user for each in self.works}, {each.name: each.repos for each in reading.load()}
        )

    @property
    def engine(self) -> float:
        """Seconds in which none ran, at most."""
        return self.seconds - self.user


class Library:
    """Pictures and queries of STL-10's format on a server of their own, whose state is in a directory."""

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
        """Starts the server, which collects all garbage at its start, and ends it."""
        with servers.localpachd(root=self._root) as self.server, Tree(self.server.process.pid) as self._tree:
            self.connection = connect(Target(f"grpc://127.0.0.1:{self.server.port}"))
            yield self

    @property
    def sources(self) -> int:
        """Bytes of the files that were put and are still there: pictures and backbone."""
        return self._pictures + self._backbone

    @property
    def answers(self) -> sheets.Answers:
        """The answers as they are now."""
        return sheets.read(self.connection, stl10.ENTRY)

    def fill(self, backbone: Path, labels: bytes) -> Step:
        """Deploys the specifications, puts a backbone, and then, which is what is measured, all that
        `lookalike add stl10` puts."""
        deployment.deploy(self.connection, reading.load())
        self._commits.append(self._put_backbone(backbone))
        settle(self.connection, self._commits)
        pictures = len(self.split.library) + len(self.split.queries)
        add = lambda: dataset.add(self.connection, self.split, labels)  # noqa: E731
        return self.change("fill", add, pictures, pictures * RECORD)

    def swap(self, backbone: Path) -> Step:
        """Puts another backbone, of which everything is computed again."""
        before = self.answers.models
        pictures = len(self.split.library) + len(self.split.queries)
        done = self.change("swap the backbone", lambda: [self._put_backbone(backbone)], pictures)
        if before & self.answers.models:
            raise RuntimeError("the sheet is still of the backbone that was replaced")
        return done

    def change(self, name: str, put: Callable[[], Iterable[str]], pictures: int = 1, more: int = 0) -> Step:
        """Puts so many pictures, waits for what becomes of it, and looks at the sheet. `put` gives the commits that it
        has made, `more` is by how many bytes the files that were put have grown. Raises RuntimeError where a job fails
        or the sheet is not as it must be."""
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
        """Leaves nothing but the newest state of everything. Raises RuntimeError if pipelines computed something for
        that."""
        sources = [ingest.REPO, queries.REPO, models.REPO, dataset.LABELS]
        new = storage.forget_history(self.connection, sources, self._commits)
        self._commits = [new]
        if any(work.processed for work in settle(self.connection, [new]).works):
            raise RuntimeError("commits without any change made pipelines compute something")
        self.answers.check(len(self.split.queries), self._k)

    def _put_backbone(self, directory: Path) -> str:
        spec = parse_spec((directory / SPEC_FILE).read_bytes())
        self._backbone = sum(path.stat().st_size for path in directory.iterdir())
        return models.put(Repository(self.connection, models.REPO), spec, directory).commit
