"""Whatever happens to the inputs and the pipeline, the output is what a fresh pipeline would make of the inputs."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from localpachd.pfs import branches
from localpachd.pfs.values import Branch, Repo
from localpachd.pps.values import JobState, Pipeline
from localpachd.worker.gpus import GpuPool

SCRIPT = """
for f in "$PFS"/in/*; do
  test "$(cat "$f")" != bad
  tr a-z A-Z < "$f" > "$PFS/out/$(basename "$f")"
done
"""
ONE = {"pfs": {"repo": "texts", "name": "in", "glob": "/*"}}
names = st.sampled_from("abc")
steps = st.one_of(
    st.tuples(st.just("put"), names, st.sampled_from(["one", "two", "bad"])),
    st.tuples(st.just("put"), names, st.sampled_from(["one", "two"])),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("rename"), names, names),
    st.tuples(st.just("rewind"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["update", "reprocess", "stop", "start", "restart"])),
)


def take(engine: Any, step: tuple[Any, ...], heads: list[Any]) -> None:
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
            branch = Branch(Repo("default", "texts"), "master")
            engine.pfs.transact(lambda txn: branches.create(txn, branch, head=head))
        case ("update" | "reprocess" as how,):
            engine.create("shout", ONE, SCRIPT, datum_tries="1", update=True, reprocess=how == "reprocess")
        case ("stop",):
            engine.pps.stop_pipeline(Pipeline("default", "shout"))
        case ("start",):
            engine.pps.start_pipeline(Pipeline("default", "shout"))
        case ("restart",):
            engine.restart()
    heads.append(engine.commit("texts").commit)


@settings(max_examples=30, deadline=None)
@given(st.lists(steps, min_size=2, max_size=7), st.booleans())
def test_the_output_depends_on_the_present_input_alone(start: Any, history: list[tuple[Any, ...]], waits: bool) -> None:
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
        engine.pps.start_pipeline(Pipeline("default", "shout"))
        left = {path: text for path, text in engine.files("texts").items() if text != "bad"}
        engine.put("texts", dict.fromkeys(engine.files("texts").keys() - left.keys()) | {"/y": "last"})
        left["/y"] = "last"
        job = engine.settle("shout")
        assert (job.state, job.reason) == (JobState.SUCCESS, "")
        assert engine.files("shout") == {path: text.upper() for path, text in left.items()}
        assert set(engine.datums(job.job)) == set(left)
        assert job.counters.total == len(left)
        engine.create("fresh", ONE, SCRIPT)
        assert engine.settle("fresh").state is JobState.SUCCESS
        assert engine.files("fresh") == engine.files("shout")
        engine.close()
