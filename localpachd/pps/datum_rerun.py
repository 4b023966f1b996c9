"""A recorded datum run again, alone and once, as its job ran it. Commits and the log stay as they are: inputs and
output go into a file set for the caller."""

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

from localpachd.errors import PachError
from localpachd.pfs.files import temporary_filesets
from localpachd.pfs.files.temporary_filesets import FileSetLayers
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.pps import datum_records, job_rows, pipeline_rows
from localpachd.pps.datums import Datum
from localpachd.pps.pps_entities import Job
from localpachd.pps.scheduling import datum_tasks, job_base
from localpachd.pps.scheduling.datum_selection import NumberedDatum
from localpachd.storage.filesets import write_layer
from localpachd.worker.environment import task_variables
from localpachd.worker.local_runner import LocalRunner
from localpachd.worker.tasks import CancelToken, DatumResult, LogLine, WorkerPod


@dataclass(frozen=True, slots=True)
class RerunResult:
    """The result of the run. `files` is the id of a file set that holds, below `directory`, the files that a meta
    commit would hold, and those of lazy inputs."""

    result: DatumResult
    files: str
    directory: str


class DatumRerun:
    """One run of one datum, started by reading `events`.

    Raises NotFound for an unknown job, PachError if the job has not recorded the datum or its inputs were deleted.
    """

    def __init__(self, pfs: PfsService, runner: LocalRunner, server_port: int, job: Job, identity: str) -> None:
        self._pfs = pfs
        self._runner = runner
        self._token = CancelToken()
        self._server_port = server_port
        self._job = job
        self._identity = identity
        self._read()

    def _read(self) -> None:
        job, identity = self._job, self._identity
        with self._pfs.db.read() as conn:
            info = job_rows.inspect(conn, job)
            found = job_base.record(conn, self._pfs.chunks, job, identity)
            heads = job_base.inputs(conn, job)
            marker = pipeline_rows.spec_commit(conn, job.pipeline, info.version)
            self._files = job_base.layers(conn, heads.values())
        gone = sorted({each.name for each in found.inputs if datum_tasks.repo_of(each) not in heads})
        if gone:
            raise PachError(f"datum {identity} cannot be run again: the commits of {', '.join(gone)} are gone")
        # A datum that this job skipped was recorded with the commits of an earlier job.
        read = tuple(replace(each, commit=heads[datum_tasks.repo_of(each)].commit.id) for each in found.inputs)
        self._datum = NumberedDatum(found.index, Datum(identity, read), found.hash)
        pod = WorkerPod(job.pipeline.project, job.pipeline.name, marker, server_port=self._server_port)
        self._task = replace(info.spec.task, pod=pod, tries=1, warm=None)  # alone, so in a process of its own

    def cancel(self) -> None:
        """Stops the run: `events` ends without a result."""
        self._token.cancel()

    def events(self) -> Iterator[LogLine | RerunResult]:
        """Each log line and then, unless the run was cancelled, the result. Raises errors of the machine, and what the
        constructor raises, if the job or its inputs were deleted since."""
        with self._pfs.chunks.uses.one():
            self._read()  # again: from here on, the content of the inputs is not swept
            yield from self._events()

    def _events(self) -> Iterator[LogLine | RerunResult]:
        events: queue.SimpleQueue[LogLine | DatumResult | Exception | None] = queue.SimpleQueue()
        thread = threading.Thread(target=self._run, args=(events,), name=f"datum {self._datum.datum.id}")
        thread.start()
        try:
            while isinstance(event := events.get(), LogLine):
                yield event
        finally:
            self.cancel()
            thread.join()
        if isinstance(event, Exception):
            raise event
        if event is not None:
            yield RerunResult(event, self._keep(event), datum_records.pfs_path(event.id))

    def _run(self, events: "queue.SimpleQueue[LogLine | DatumResult | Exception | None]") -> None:
        results: list[DatumResult] = []
        try:
            datum = datum_tasks.datum_work(self._datum, self._job, self._files)
            self._runner.run_set(self._task, [datum], results.append, events.put, self._token)
        except Exception as trouble:  # raised by `events`, whatever it is
            events.put(trouble)
        else:
            events.put(results[0] if results else None)

    def _keep(self, result: DatumResult) -> str:
        """Makes the file set and returns its id."""
        record = datum_tasks.record_of(self._datum, result, self._job)
        variables = {**task_variables(self._task), **datum_tasks.environment(self._datum, self._job)}
        with self._pfs.db.read() as conn:
            entries = list(datum_tasks.meta_entries(conn, self._pfs.chunks, record, result, self._files, variables))
            for each in record.inputs:
                if each.lazy:
                    entries += datum_tasks.input_entries(conn, record, each, self._files)
        self._pfs.chunks.flush()

        def step(txn: Transaction) -> str:
            return temporary_filesets.keep(txn, FileSetLayers((write_layer(txn.conn, entries),)))

        return self._pfs.transact(step)
