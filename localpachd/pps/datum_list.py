"""Datums as users list them: of a job, from its meta commit; of an input, at the heads of its branches."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from localpachd.errors import NotFound, PachError
from localpachd.pfs import commits
from localpachd.pfs.pfs_entities import Commit, CommitInfo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps import datum_records, datums, job_rows
from localpachd.pps.datum_records import DatumRecord
from localpachd.pps.datums import CancelCheck, Datum
from localpachd.pps.pps_entities import DatumInfo, Job
from localpachd.pps.scheduling import job_base
from localpachd.pps.specs import spec
from localpachd.pps.specs.inputs import PfsInput
from localpachd.sqlite import snapshot


def of_job(pfs: PfsService, job: Job, after: str = "") -> Iterator[DatumInfo]:
    """A job's datums, sorted by id, starting past `after`. Streams."""
    with pfs.chunks.uses.one(), pfs.db.connection() as conn:
        with snapshot(conn):
            job_rows.inspect(conn, job)
            files = job_base.files(conn, job)
        for record in job_base.listed(files, pfs.chunks, after):
            yield _info(record, job)


def datum_of_job(pfs: PfsService, job: Job, identity: str) -> DatumInfo:
    """One of a job's datums, with the directory of the meta commit that holds its files."""
    with pfs.db.read() as conn:
        branch = job_rows.inspect(conn, job).output_commit.branch
        record = job_base.record(conn, pfs.chunks, job, identity)
    return _info(record, job, Commit(job.pipeline.meta_repo, job.id, branch))


def of_input(pfs: PfsService, raw: Mapping[str, Any], check: CancelCheck = lambda: None) -> Iterator[DatumInfo]:
    """The datums, sorted by id, of an input (protojson, snake_case names) at the heads of its branches. `check` is
    called often and may raise to stop the work."""
    tree = spec.input_of(raw, time.time_ns())

    def expanded() -> list[Datum]:
        with pfs.db.read() as conn:

            def head(leaf: PfsInput) -> CommitInfo:
                try:
                    return commits.resolve(conn, Commit(job_base.repo_of(leaf), branch=leaf.branch))
                except NotFound as error:  # Pachyderm asks itself through a client, which passes on the text alone
                    raise PachError(str(error)) from error

            return sorted(datums.expand(tree, job_base.finder(conn, head), check), key=lambda each: each.id)

    for each in pfs.patiently(expanded):
        yield DatumInfo(id=each.id, job=None, outcome=None, data=each.inputs)


def _info(record: DatumRecord, asked: Job, pfs_commit: Commit | None = None) -> DatumInfo:
    return DatumInfo(
        id=record.id,
        job=record.job,
        outcome=record.outcome,
        data=record.inputs,
        hash=record.hash,
        reason=record.reason,
        stats=record.stats,
        pfs_commit=pfs_commit,
        pfs_state=datum_records.pfs_path(record.id) if pfs_commit is not None else "",
        skipped=record.job != asked,
    )
