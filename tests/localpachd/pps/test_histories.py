"""After any history of changes to the inputs and the pipeline, in steps or in transactions, the output equals that of a
new pipeline on the same inputs."""

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import given, settings, strategies as st

from localpachd.errors import PachError
from localpachd.pfs import branches, commit_removal, commits
from localpachd.pfs.pfs_entities import Branch, Commit, Repo
from localpachd.pfs.transaction import Transaction
from localpachd.pfs.upkeep import fsck
from localpachd.pps import jobs, pipelines
from localpachd.pps.pps_entities import JobState, Pipeline, SpecText
from localpachd.worker.gpu_pool import GpuPool
from tests.example_counts import examples
from tests.localpachd.pps.engine import Engine

SCRIPT = """
for f in "$PFS"/in/*; do
  read -r text < "$f" || true
  test "$text" != bad
  printf %s "$text!" > "$PFS/out/${f##*/}"
done
"""
ONE = {"pfs": {"repo": "texts", "name": "in", "glob": "/*"}}
names = st.sampled_from("abc")
PARTS = ("touch", "rewind", "update", "stop job", "squash", "finish")
steps = st.one_of(
    st.tuples(st.just("put"), names, st.sampled_from(["one", "two", "bad"])),
    st.tuples(st.just("put"), names, st.sampled_from(["one", "two"])),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("rename"), names, names),
    st.tuples(st.just("rewind"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["update", "reprocess", "stop", "start", "restart"])),
    st.tuples(
        st.just("transaction"),
        st.lists(st.sampled_from(PARTS), min_size=2, max_size=4),
    ),
)
TEXTS = Branch(Repo("default", "texts"), "master")


def take(engine: Engine, step: tuple[Any, ...], heads: list[Any]) -> None:
    here = engine.files("texts")
    match step:
        case ("put", name, text):
            engine.put("texts", {f"/{name}": text})
        case ("delete", name):
            engine.put("texts", {f"/{name}": None})
        case ("rename", old, new) if f"/{old}" in here:
            engine.put("texts", {f"/{old}": None, f"/{new}": here[f"/{old}"]})
        case ("rewind", back):
            head = heads[max(0, len(heads) - 1 - back)]
            with suppress(PachError):  # it may have been squashed
                engine.pfs.transact(lambda txn: branches.create(txn, TEXTS, head=head))
        case ("update" | "reprocess" as how,):
            engine.create("shout", ONE, SCRIPT, datum_tries="1", update=True, reprocess=how == "reprocess")
        case ("stop",):
            engine.step(pipelines.stop, Pipeline("default", "shout"))
        case ("start",):
            engine.step(pipelines.start, Pipeline("default", "shout"))
        case ("restart",):
            engine.restart()
        case ("transaction", parts):
            with suppress(PachError):  # a refused transaction is undone as a whole
                engine.pfs.transact(lambda txn: run(engine, txn, parts, heads))
    heads.append(engine.commit("texts").commit)
    with engine.db.read() as conn:
        assert list(fsck.check(conn)) == []


def run(engine: Engine, txn: Transaction, parts: Sequence[str], heads: Sequence[Commit]) -> None:
    """Does the parts of a transaction."""
    for part in parts:
        match part:
            case "touch":
                commits.finish(txn, commits.start(txn, TEXTS))
            case "rewind":
                branches.create(txn, TEXTS, head=heads[0])
            case "update":
                request = {**engine.request("shout", ONE, SCRIPT, datum_tries="1"), "update": True}
                engine.pps.add_pipeline(txn, request, SpecText())
            case "stop job":
                jobs.stop(txn, engine.jobs("shout")[0].job)
            case "squash":
                commit_removal.squash_set(txn, heads[len(heads) // 2].id)
            case "finish":
                output = commits.resolve(txn.conn, Commit(Repo("default", "shout"), branch="master"))
                commits.finish_by_user(txn, output.commit, "spoilt", "", force=True)


@settings(max_examples=examples(30))
@given(st.lists(steps, min_size=2, max_size=7), st.booleans())
def test_the_output_depends_only_on_the_present_input(start: Any, history: list[tuple[Any, ...]], waits: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        engine = start(Path(directory), GpuPool())
        engine.repo("texts")
        engine.put("texts", {"/a": "one", "/z": "always"})
        engine.create("shout", ONE, SCRIPT, datum_tries="1")
        heads = [engine.commit("texts").commit]
        for step in history:
            take(engine, step, heads)
            if waits:
                engine.settle("shout")
        engine.step(pipelines.start, Pipeline("default", "shout"))
        left = {path: text for path, text in engine.files("texts").items() if text != "bad"}
        engine.put("texts", dict.fromkeys(engine.files("texts").keys() - left.keys()) | {"/y": "last"})
        left["/y"] = "last"
        job = engine.settle("shout")
        assert (job.state, job.reason) == (JobState.SUCCESS, "")
        assert engine.files("shout") == {path: f"{text}!" for path, text in left.items()}
        assert set(engine.datums(job.job)) == set(left)
        assert job.counters.total == len(left)
        engine.create("fresh", ONE, SCRIPT)
        assert engine.settle("fresh").state is JobState.SUCCESS
        assert engine.files("fresh") == engine.files("shout")
        engine.close()
