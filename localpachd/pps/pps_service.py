"""The service of the pps room: what runs, and each request that is more than one step of the room's functions. Knows no
gRPC."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from localpachd.errors import NotFound, PachError, prefixed
from localpachd.pfs import commits
from localpachd.pfs.pfs_entities import Commit, CommitInfo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.pps import datums, job_rows, pipelines
from localpachd.pps.cron import CronScheduler
from localpachd.pps.datum_records import DatumRecord
from localpachd.pps.datum_rerun import DatumRerun
from localpachd.pps.datums import Datum
from localpachd.pps.job_reader import JobReader
from localpachd.pps.pps_entities import Job, Pipeline, PipelineInfo, SpecText
from localpachd.pps.scheduling import job_base
from localpachd.pps.scheduling.command_runs import SpoutSidecars
from localpachd.pps.scheduling.scheduler import Scheduler
from localpachd.pps.server_log import ServerLog
from localpachd.pps.specs import secret_checks, spec
from localpachd.pps.specs.inputs import PfsInput
from localpachd.pps.specs.validation import egress_url
from localpachd.sqlite import snapshot
from localpachd.storage import object_urls
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.local_runner import LocalRunner
from localpachd.worker.secret_store import SecretStore


class PpsService:
    """The pipelines of one server. They run from `start` to `stop`.

    `server_port` is the loopback port on which workers' processes reach this server, 0 for none. `now` (ns since the
    epoch) is the clock of cron inputs. `sidecars` connect spouts to this server. `gpus` knows the holder of each GPU.
    """

    def __init__(
        self,
        pfs: PfsService,
        runner: LocalRunner,
        gpus: GpuPool,
        server_port: int,
        secrets: SecretStore,
        sidecars: SpoutSidecars,
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        self._pfs = pfs
        self._secrets = secrets
        self._db = pfs.db
        self._runner = runner
        self._server_port = server_port
        self.gpus = gpus
        self._scheduler = Scheduler(pfs, runner, gpus, server_port, sidecars)
        self.cron = CronScheduler(pfs, now)
        self.jobs = JobReader(pfs, self._scheduler)
        self.server_log = ServerLog(pfs.changes)

    def start(self) -> None:
        """Starts the jobs and spouts that the database says should be running."""
        self._scheduler.start()
        self.cron.start()

    def stop(self) -> None:
        """Stops everything but leaves the state of jobs as it is: `start` on the same database continues with them."""
        self.cron.stop()
        self._scheduler.stop()

    def add_pipeline(self, txn: Transaction, request: Mapping[str, Any], written: SpecText) -> None:
        """Creates or updates a pipeline as a CreatePipelineRequest (protojson, snake_case names) asks for."""
        secret_checks.check(request, self._secrets)
        egress = egress_url(request)
        if egress:
            object_urls.check_reach(egress, self._pfs.reach)
        pipelines.create(txn, request, written)

    def delete_pipeline(
        self, pipeline: Pipeline, force: bool = False, keep_repo: bool = False, must_exist: bool = False
    ) -> None:
        """Deletes a pipeline and, unless `keep_repo`, its output. An unknown one is ignored, or NotFound with
        `must_exist`."""

        def step(txn: Transaction) -> None:
            with prefixed(f"error stopping pipeline {pipeline}", NotFound):
                pipelines.stop(txn, pipeline, must_exist)
            pipelines.delete(txn, pipeline, force, keep_repo)

        self._pfs.transact(step, frees=True)

    def delete_pipelines(
        self, projects: Collection[str] | None = None, force: bool = False, keep_repo: bool = False
    ) -> list[Pipeline]:
        """Deletes the pipelines of these projects (None: all projects) and returns them."""

        def step(txn: Transaction) -> list[Pipeline]:
            found = [info.pipeline for info in pipelines.listed(txn.conn)]
            doomed = [each for each in found if projects is None or each.project in projects]
            for pipeline in pipelines.downstream_first(txn.conn, doomed):
                pipelines.delete(txn, pipeline, force, keep_repo)
            return doomed

        return self._pfs.transact(step, frees=True)

    def inspect_pipeline(self, pipeline: Pipeline) -> PipelineInfo:
        """A pipeline; its name may hold ancestry (`edges^`)."""
        with self._db.read() as conn:
            return pipelines.inspect(conn, pipeline)

    def list_pipelines(
        self, pipeline: Pipeline | None = None, history: int = 0, projects: Collection[str] = (), commit_set: str = ""
    ) -> list[PipelineInfo]:
        """Pipelines, newest stored version first; see `pipelines.listed`."""
        with prefixed("could not list pipeline info", NotFound), self._db.read() as conn:
            return pipelines.listed(conn, pipeline, history, projects, commit_set)

    def list_datums(self, job: Job, after: str = "") -> Iterator[DatumRecord]:
        """The datums that a job has recorded so far, sorted by id, starting past `after`. Streams."""
        with self._pfs.chunks.uses.one(), self._db.connection() as conn:
            with snapshot(conn):
                job_rows.inspect(conn, job)
                files = job_base.files(conn, job)
            yield from job_base.listed(files, self._pfs.chunks, after)

    def list_input_datums(self, raw: Mapping[str, Any], check: Callable[[], None] = lambda: None) -> Iterator[Datum]:
        """The datums, by id, that a pipeline with this input (protojson, snake_case names) would have now. `check` is
        called often and may raise to stop the work."""
        tree = spec.input_of(raw, time.time_ns())

        def expanded() -> list[Datum]:
            with self._db.read() as conn:

                def head(leaf: PfsInput) -> CommitInfo:
                    try:
                        return commits.resolve(conn, Commit(job_base.repo_of(leaf), branch=leaf.branch))
                    except NotFound as error:  # Pachyderm asks itself through a client, which passes on the text alone
                        raise PachError(str(error)) from error

                return sorted(datums.expand(tree, job_base.finder(conn, head), check), key=lambda each: each.id)

        yield from self._pfs.patiently(expanded)

    def inspect_datum(self, job: Job, identity: str) -> tuple[DatumRecord, Commit]:
        """One datum of a job, and the meta commit that holds its files; PachError for an unknown id."""
        with self._db.read() as conn:
            branch = job_rows.inspect(conn, job).output_commit.branch
            record = job_base.record(conn, self._pfs.chunks, job, identity)
        return record, Commit(job.pipeline.meta_repo, job.id, branch)

    def rerun_datum(self, job: Job, identity: str) -> DatumRerun:
        """One datum of a job, ready to run again alone; PachError for an unknown id."""
        return DatumRerun(self._pfs, self._runner, self._server_port, job, identity)

    def restart_datum(self, job: Job, data_filters: Sequence[str]) -> None:
        """Ends the present attempt of the job's running datums whose inputs match every filter (path or hash).

        Raises PachError if none do, or if the job is not running.
        """
        self.jobs.inspect(job)
        run = self._scheduler.run_of(job)
        if run is None or not run.restart_datums(data_filters):
            wanted = " ".join(data_filters)
            raise PachError(f"datum matching filter [{wanted}] could not be found for job ID {job.id}")
