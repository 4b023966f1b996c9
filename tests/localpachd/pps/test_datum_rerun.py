"""A recorded datum run again alone."""

import pytest

from localpachd.errors import NotFound, PachError
from localpachd.pps.datum_rerun import RerunResult
from localpachd.worker.tasks import DatumOutcome, LogLine
from tests.localpachd.pps.engine import Engine

ONE = {"pfs": {"repo": "texts", "name": "in", "glob": "/*"}}


@pytest.fixture
def copied(engine: Engine) -> Engine:
    engine.repo("texts")
    engine.put("texts", {"/a": "one"})
    engine.create("copy", ONE, 'echo copying\ncp "$PFS"/in/* "$PFS/out/"')
    engine.settle("copy")
    return engine


def test_a_datum_is_run_again_without_a_trace_in_commits_or_the_log(copied: Engine) -> None:
    job = copied.jobs("copy")[0].job
    lines = copied.lines("copy")
    *said, result = copied.pps.rerun_datum(job, copied.datums(job)["/a"].id).events()
    assert [line.message for line in said if isinstance(line, LogLine) and line.user] == ["copying"]
    assert isinstance(result, RerunResult) and result.result.state is DatumOutcome.PROCESSED
    assert copied.lines("copy") == lines
    assert len(copied.jobs("copy")) == 1


def test_what_was_deleted_before_the_run_begins_is_not_read(copied: Engine) -> None:
    job = copied.jobs("copy")[0].job
    rerun = copied.pps.rerun_datum(job, copied.datums(job)["/a"].id)
    copied.pps.delete_pipeline(job.pipeline)
    with pytest.raises(NotFound):
        list(rerun.events())
    with pytest.raises(PachError):
        copied.pps.rerun_datum(job, "0" * 64)
