"""The recorder of one job: stores results and log lines as layers of its commits, counters and log rows, one
transaction for each batch. Knows neither threads nor processes."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from localpachd.pfs import commits, contents
from localpachd.pfs.pfs_entities import Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.pps import jobs, log_rows
from localpachd.pps.datum_records import DatumRecord
from localpachd.pps.pps_entities import DatumCounters, Job, LogMessage
from localpachd.pps.scheduling import datum_tasks
from localpachd.pps.scheduling.datum_selection import NumberedDatum
from localpachd.storage.filesets import FileSetRef
from localpachd.worker.tasks import DatumOutcome, DatumResult, DatumStats


class JobOver(Exception):
    """The job was ended elsewhere: nothing more of it is recorded."""


@dataclass(frozen=True, slots=True)
class FinishedDatum:
    """A datum with its result."""

    numbered: NumberedDatum
    result: DatumResult


class JobRecorder:
    """Records one job, once its datums are known."""

    def __init__(
        self,
        pfs: PfsService,
        job: Job,
        files: Mapping[Repo, FileSetRef],
        worker_env: Mapping[str, str],
        done: Collection[DatumRecord],
    ) -> None:
        self._pfs = pfs
        self._job = job
        self._files = files
        self._worker_env = worker_env
        self._stats = sum((each.stats for each in done), DatumStats())
        self._outcomes = Counter(each.outcome for each in done)
        self._skipped = self._total = 0

    def expect(self, skipped: int, total: int) -> None:
        """Stores the number of datums. Raises JobOver, as every call does, if the job was ended."""
        self._skipped, self._total = skipped, total
        self._pfs.transact(self._count)

    def remove(self, tags: Sequence[str]) -> None:
        """Removes the files of these datums from the job's commits."""

        def step(txn: Transaction) -> None:
            self._count(txn)
            for commit in (self._job.output, self._job.meta):
                contents.delete_tags(txn, commits.resolve(txn.conn, commit), tags)

        if tags:
            self._pfs.transact(step)

    def record(self, finished: Sequence[FinishedDatum], lines: Sequence[LogMessage] = ()) -> None:
        """Stores a batch of results and log lines in one transaction."""
        for each in finished:
            self._stats += each.result.stats
            self._outcomes[each.result.state] += 1
        output = [entry for each in finished for entry in datum_tasks.output_entries(each.result)]
        meta = self._meta_entries(finished)
        self._pfs.chunks.flush()

        def step(txn: Transaction) -> None:
            self._count(txn)
            log_rows.add(txn, lines)
            for commit, entries in ((self._job.output, output), (self._job.meta, meta)):
                if entries:
                    contents.add_layer(txn, commits.resolve(txn.conn, commit), entries)

        self._pfs.transact(step)

    def _meta_entries(self, finished: Sequence[FinishedDatum]) -> list[datum_tasks.CommitEntry]:
        with self._pfs.db.read() as conn:
            return [
                entry
                for each in finished
                for entry in datum_tasks.meta_entries(
                    conn,
                    self._pfs.chunks,
                    datum_tasks.record_of(each.numbered, each.result, self._job),
                    each.result,
                    self._files,
                    {**self._worker_env, **datum_tasks.environment(each.numbered, self._job)},
                )
            ]

    def _count(self, txn: Transaction) -> None:
        counters = DatumCounters(
            processed=self._outcomes[DatumOutcome.PROCESSED],
            skipped=self._skipped,
            total=self._total,
            failed=self._outcomes[DatumOutcome.FAILED],
            recovered=self._outcomes[DatumOutcome.RECOVERED],
        )
        if not jobs.count(txn, self._job, counters, self._stats):
            raise JobOver
