"""Reading again only what changed gives the same views as reading everything."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import given, settings, strategies as st

from localpachd.database import Database
from localpachd.errors import PachError
from localpachd.pfs import branches, commit_removal, commits, repos
from localpachd.pfs.changes import EVERYTHING, TopicChanges
from localpachd.pfs.files import file_modification
from localpachd.pfs.files.file_modification import FileRemoval
from localpachd.pfs.pfs_entities import Branch, Commit, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.pps import jobs, pipelines
from localpachd.pps.pps_entities import Job, JobState, Pipeline, PipelineState, SpecText
from localpachd.pps.scheduling.pipeline_views import PipelineViews
from localpachd.pps.scheduling.plan import PipelineView
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import DEFAULT_TAG
from localpachd.worker.gpu_pool import GpuPool
from tests.example_counts import examples

REPOS = ("a", "b")
PIPELINES = ("p", "q", "r")
SOURCES = st.sampled_from((*REPOS, *PIPELINES))


class World:
    """Repos and pipelines without a scheduler, and steps that change them as users, jobs and the scheduler do."""

    def __init__(self, root: Path) -> None:
        self.db = Database(root / "db.sqlite")
        self.chunks = ChunkStore(root / "chunks")
        self.pfs = PfsService(self.db, self.chunks, jobs)
        for name in REPOS:
            self.pfs.transact(partial(repos.create, repo=Repo("default", name)))

    def take(self, txn: Transaction, step: tuple[Any, ...]) -> None:
        match step:
            case ("pipeline", *fields):
                pipelines.create(txn, request(*fields), SpecText())
            case ("start" | "stop" | "delete" as verb, name):
                getattr(pipelines, verb)(txn, Pipeline("default", name))
            case ("state", name, state):
                pipelines.set_state(txn, Pipeline("default", name), 1, state, "why", False)
            case ("open", repo):
                commits.start(txn, Branch(Repo("default", repo), "master"))
            case ("finish", repo, error):
                commits.finish_by_user(txn, Commit(Repo("default", repo), branch="master"), error, "", True)
            case ("put", repo):
                target = Commit(Repo("default", repo), branch="master")
                file_modification.apply(txn, self.chunks, target, [FileRemoval("/x", DEFAULT_TAG)])
            case ("drop" | "squash" as verb, place):
                ids = [row[0] for row in txn.conn.execute("SELECT DISTINCT id FROM commits ORDER BY seq DESC")]
                getattr(commit_removal, f"{verb}_set")(txn, ids[place % len(ids)])
            case ("repo", repo):
                repos.delete(txn, Repo("default", repo), force=True)
                repos.create(txn, Repo("default", repo))
            case ("branch", repo, force):
                branches.delete(txn, Branch(Repo("default", repo), "master"), force)
            case ("job", place, act):
                found = list(txn.conn.execute("SELECT project, pipeline, id FROM jobs ORDER BY seq DESC"))
                for project, name, id_ in found[place : place + 1]:
                    act(txn, Job(Pipeline(project, name), id_))


def request(name: str, sources: list[str], kind: str, update: bool) -> dict[str, Any]:
    leaves = [{"pfs": {"repo": each, "name": f"in{place}", "glob": "/"}} for place, each in enumerate(sources)]
    kinds: dict[str, dict[str, Any]] = {
        "transform": {"input": {"cross": leaves}},
        "service": {"input": {"cross": leaves}, "service": {"internal_port": 80, "external_port": 30080}},
        "spout": {"spout": {}},
    }
    return {"pipeline": {"name": name}, "transform": {"cmd": ["true"]}, "update": update, **kinds[kind]}


def failed(txn: Transaction, job: Job) -> None:
    jobs.fail(txn, job, JobState.FAILURE, "datum failed")


ACTS = (jobs.pick_up, jobs.begin, jobs.succeed, failed, jobs.conclude, jobs.stop, jobs.delete)
STEP = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(REPOS)),
    st.tuples(st.just("job"), st.integers(0, 3), st.sampled_from(ACTS)),
    st.tuples(st.just("job"), st.integers(0, 3), st.sampled_from(ACTS)),
    st.tuples(
        st.just("pipeline"),
        st.sampled_from(PIPELINES),
        st.lists(SOURCES, min_size=1, max_size=2, unique=True),
        st.sampled_from(["transform", "transform", "service", "spout"]),
        st.booleans(),
    ),
    st.tuples(st.sampled_from(["start", "stop", "delete"]), st.sampled_from(PIPELINES)),
    st.tuples(st.just("state"), st.sampled_from(PIPELINES), st.sampled_from(PipelineState)),
    st.tuples(st.just("open"), st.sampled_from(REPOS)),
    st.tuples(st.just("finish"), SOURCES, st.sampled_from(["", "spoilt"])),
    st.tuples(st.sampled_from(["drop", "squash"]), st.integers(0, 3)),
    st.tuples(st.just("branch"), SOURCES, st.booleans()),
    st.tuples(st.just("repo"), st.sampled_from(REPOS)),
)
BEGINNING: list[list[tuple[Any, ...]]] = [
    [("pipeline", "p", ["a"], "transform", False)],
    [("pipeline", "q", ["p", "b"], "transform", False)],
]


def seen(views: PipelineViews) -> tuple[PipelineView, ...]:
    return views.views(GpuPool(), {})


@settings(max_examples=examples(150))
@given(st.lists(st.lists(STEP, min_size=1, max_size=3), min_size=3, max_size=15), st.lists(st.booleans(), min_size=20))
def test_refreshed_views_equal_new_ones(history: list[list[tuple[Any, ...]]], looks: list[bool]) -> None:
    with opened() as world, world.pfs.changes.feed() as feed:
        followed = PipelineViews()
        followed.refresh(world.db, EVERYTHING)
        for number, steps in enumerate(BEGINNING + history):

            def step(txn: Transaction, steps: list[tuple[Any, ...]] = steps) -> None:
                for each in steps:
                    world.take(txn, each)

            with suppress(PachError):  # a refused transaction is undone as a whole
                world.pfs.transact(step)
            if number >= len(looks) or looks[number]:
                # The topics must suffice without `everything`, which a step without a topic sets.
                followed.refresh(world.db, TopicChanges(feed.wait(0).topics))
                fresh = PipelineViews()
                fresh.refresh(world.db, EVERYTHING)
                assert seen(followed) == seen(fresh)


def test_a_change_that_concerns_no_pipeline_reads_nothing() -> None:
    with opened() as world, world.pfs.changes.feed() as feed:
        for steps in BEGINNING:
            world.pfs.transact(partial(world.take, step=steps[0]))
        world.pfs.transact(lambda txn: repos.create(txn, Repo("default", "other")))
        followed = PipelineViews()
        followed.refresh(world.db, EVERYTHING)
        before = seen(followed)
        feed.wait(0)
        world.pfs.transact(lambda txn: world.take(txn, ("put", "other")))
        with unreadable(world.db):
            followed.refresh(world.db, feed.wait(0))
        assert seen(followed) == before


@contextmanager
def opened() -> Iterator[World]:
    with tempfile.TemporaryDirectory() as directory:
        world = World(Path(directory))
        try:
            yield world
        finally:
            world.chunks.close()
            world.db.close()


@contextmanager
def unreadable(db: Database) -> Iterator[None]:
    """Makes every read of the database fail."""
    kept: Callable[[], Any] = db.read

    def refuse() -> Any:
        raise AssertionError("the database is read")

    db.read = refuse  # type: ignore[method-assign]
    try:
        yield
    finally:
        db.read = kept  # type: ignore[method-assign]
