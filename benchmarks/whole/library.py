"""Owns a library and its queries on the localpachd to measure: filling it, changing it and checking the sheet after
each change, deleting its history. What a journal says is done is not done again. Knows no goals."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.kit import servers
from benchmarks.kit.engine import Work, longest, settle
from benchmarks.kit.trees import Tree, Usage
from benchmarks.whole import journal, sheets, storage
from benchmarks.whole.journal import Journal
from benchmarks.whole.sheets import Answers
from benchmarks.whole.supply import Supply
from pipelines.client import backbones
from pipelines.client.commit_writer import CommitWriter
from pipelines.client.deployment import deployment
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection, ServerTarget, connect
from pipelines.library import backbone_push, ingest, queries, snapshots
from pipelines.library.datasets import stl10
from pipelines.specifications import pipeline_specs
from pipelines.specifications.pipeline_specs import PipelineSpec
from stages.backbone.backbone_spec import SPEC_FILE, parse_spec
from stages.decode.stl10 import RECORD
from stages.record import masks

_USED = "used for "
_DONE = "done: "
_PUT = "put: "

Puts = Mapping[str, Callable[[], str]]
"""The writes of a change by the repo that each writes to, in one commit."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step:
    """The cost of one change: seconds from before the put until the end of its last job, the seconds of the put alone,
    the work of each pipeline, the number of pictures put or computed again, and what all processes used, of which the
    server's own time is told apart. The seconds are those in which the server ran; `interruptions` are not in them."""

    name: str
    seconds: float
    put: float
    works: tuple[Work, ...]
    pictures: int
    usage: Usage
    interruptions: int = 0

    @property
    def user(self) -> float:
        """The least seconds in which user code ran: those of the longest chain of pipelines. The rest may have run at
        the same time."""
        return longest(
            {each.pipeline: each.user for each in self.works}, {each.name: each.repos for each in pipeline_specs.load()}
        )

    @property
    def engine(self) -> float:
        """The most seconds in which no user code ran."""
        return self.seconds - self.user

    @property
    def engine_share(self) -> float:
        """The server's own part of the processor time of all processes: 0 to 1."""
        return self.usage.own / self.usage.processor if self.usage.processor else 0.0

    @staticmethod
    def parsed(value: Mapping[str, Any]) -> "Step":
        """The step of which `value` has the fields."""
        works = tuple(Work(**each) for each in value["works"])
        return Step(**{**value, "works": works, "usage": Usage(**value["usage"])})


class Library:
    """Pictures and queries on a server of their own, with its state in a directory, beside a journal."""

    server: servers.Server
    connection: Connection
    _tree: Tree

    def __init__(self, root: Path, supply: Supply, specifications: Sequence[PipelineSpec], kept: Journal) -> None:
        self.supply = supply
        self.split = supply.split
        self.journal = kept
        self._root = root
        self._specifications = specifications
        (render,) = (each for each in specifications if each.name == "render")
        self._k = int(render.document["transform"]["env"]["K"])
        self._used: Callable[[], dict[str, Any]] = dict

    @contextmanager
    def running(self) -> Iterator["Library"]:
        """Runs the server, which collects all garbage when it starts. One that a killed run has left is ended first;
        the work that it did meanwhile counts."""
        if servers.end_left(self.journal.get("server", 0), self._root):
            self.journal.lengthen()
        with servers.localpachd(root=self._root) as self.server:
            self.journal.keep("server", self.server.process.pid)
            self.connection = connect(ServerTarget(f"grpc://127.0.0.1:{self.server.port}"))
            with Tree(os.getpid(), self.server.process.pid) as self._tree, self.journal.living(lambda: self._used()):
                yield self

    @property
    def sources(self) -> int:
        """The bytes of the files that were put and not removed: pictures and backbone."""
        return int(self.journal.get("pictures", 0) + self.journal.get("backbone", 0))

    @property
    def answers(self) -> Answers:
        """The current answers."""
        return sheets.read(self.connection, stl10.ENTRY)

    @property
    def pictures(self) -> int:
        """The number of pictures at first, queries included."""
        return len(self.split.library) + len(self.split.queries)

    def fill(self, backbone: Path) -> Step:
        """Deploys the specifications and puts a backbone; then, and only this is measured, puts the library in blocks
        and the queries in blocks as one entry, as `lookalike add stl10` does."""

        def prepare() -> str:
            deployment.deploy(self.connection, self._specifications)
            return self._put_backbone(backbone)

        settle(self.connection, [self.journal.once(f"{_PUT}the backbone", prepare)])
        puts = {
            snapshots.REPO: self._put_library,
            queries.REPO: lambda: queries.put_in_blocks(self.connection, stl10.ENTRY, self.split.queries).commit,
        }
        return self.change("fill", puts, lambda _: None, self.pictures, self.pictures * RECORD)

    def swap(self, backbone: Path) -> Step:
        """Puts another backbone, so that everything is computed again."""
        before = self.journal.once("models before the swap", lambda: sorted(self.answers.models))

        def check(answers: Answers) -> None:
            if answers.models & set(before):
                raise RuntimeError("the sheet still shows answers of the replaced backbone")

        return self.change(
            "swap the backbone", {backbones.REPO: lambda: self._put_backbone(backbone)}, check, self.pictures
        )

    def change(self, name: str, puts: Puts, check: Callable[[Answers], None], pictures: int = 1, more: int = 0) -> Step:
        """Makes the commits, waits for the jobs, and checks the sheet. `more`: the growth in bytes of the files that
        were put. Raises RuntimeError if a job fails or the sheet is wrong.

        An interrupted change goes on: a put that has made its commit is not repeated. Its time is that of all parts.
        """
        done = self.journal.get(_DONE + name)
        if done is not None:
            return Step.parsed(done)
        print(f" {name} ...", file=sys.stderr, flush=True)
        with self._metered(name) as used:
            begun = self.journal.once(f"begun: {name}", time.time)
            commits = [self._put(name, repo, put) for repo, put in puts.items()]
            put_by = self.journal.once(f"put by: {name}", time.time)
            settled = settle(
                self.connection, commits, lambda first, last: journal.alive(self.journal.lives, first, last)
            )
            usage = used()
        answers = self.answers
        answers.check(len(self.split.queries), self._k)
        check(answers)
        lives = self.journal.lives
        between = (begun, settled.ended)
        step = Step(
            name,
            journal.alive(lives, *between),
            journal.alive(lives, begun, put_by),
            settled.works,
            pictures,
            usage,
            journal.interruptions(lives, *between),
        )
        self.journal.keep("pictures", self.journal.get("pictures", 0) + more)
        self.journal.keep(_DONE + name, asdict(step))
        return step

    def _put_library(self) -> str:
        """Puts the library in blocks, and deletes its file, whose place the packs need."""
        commit = ingest.add(self.connection, self.split.library, most_single=0).commit
        self.supply.library.unlink()
        return commit

    def _put(self, name: str, repo: str, put: Callable[[], str]) -> str:
        """The commit of a put, which is made unless a run that was killed has made it, noted or not."""
        key, commits = f"{name}, {repo}", CommitWriter(self.connection, repo)
        before = self.journal.once(f"head before: {key}", lambda: commits.newest() or "none")
        newest = commits.newest() or "none"
        return self.journal.once(f"{_PUT}{key}", put if newest == before else lambda: newest)

    @contextmanager
    def _metered(self, name: str) -> Iterator[Callable[[], Usage]]:
        """Measures what all processes use for a change, also before an interruption."""
        earlier = Usage(**self.journal.get(_USED + name, {}))
        self._tree.forget()

        def used() -> Usage:
            return earlier.and_then(self._tree.usage())

        self._used = lambda: {_USED + name: asdict(used())}
        try:
            yield used
        finally:
            self._used = dict

    def forget_history(self) -> None:
        """Keeps only the newest state of everything. Raises RuntimeError if that makes pipelines compute anything."""
        sources = [snapshots.REPO, masks.REPO, queries.REPO, backbones.REPO]
        new = self.journal.once("history forgotten", lambda: storage.empty_commits(self.connection, sources))
        storage.squash_before(self.connection, sources, new)
        if any(work.processed for work in settle(self.connection, [new]).works):
            raise RuntimeError("commits without any change made pipelines compute something")
        self.answers.check(len(self.split.queries), self._k)

    def _put_backbone(self, directory: Path) -> str:
        spec = parse_spec((directory / SPEC_FILE).read_bytes())
        self.journal.keep("backbone", sum(path.stat().st_size for path in directory.iterdir()))
        return backbone_push.put(Repository(self.connection, backbones.REPO), spec, directory).commit
