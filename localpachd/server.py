"""The composition root: builds every part of the server on one root directory, starts and stops them."""

import logging
import os
import secrets as random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial

import grpc

from localpachd import root_format
from localpachd.api import server_addresses
from localpachd.api.api_services import register
from localpachd.api.calls.grpc_limits import OPTIONS
from localpachd.api.doors.call_metrics import CallMetrics
from localpachd.api.doors.crashes import CrashInterceptor
from localpachd.api.doors.later_replies import LaterReplies
from localpachd.api.doors.parked_calls import ParkedCalls
from localpachd.api.doors.status import StatusInterceptor
from localpachd.api.doors.stream_limit import StreamLimit
from localpachd.api.doors.tokens import TokenInterceptor
from localpachd.api.pachyderm_version import COMPATIBLE, V2_7
from localpachd.api.pfs.chunk_links import ChunkLinks
from localpachd.api.pps.loopback_servers import GrpcBatchServer, GrpcSidecars
from localpachd.api.server.log_levels import CallLog, LogLevels
from localpachd.api.server_addresses import LOOPBACK
from localpachd.chores import ChoreThread
from localpachd.database import Database
from localpachd.diagnosis.server_facts import ServerFacts
from localpachd.disk import Disk, DiskReserve
from localpachd.errors import FailedPrecondition, Unavailable
from localpachd.metrics.metrics_endpoint import ServerMetrics
from localpachd.metrics.state_collector import StateSources
from localpachd.pace import Pace
from localpachd.pfs.files import temporary_filesets
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.upkeep import retention
from localpachd.pfs.upkeep.commit_finisher import CommitFinisher
from localpachd.pfs.upkeep.retention import CommitAges, merge_hidden
from localpachd.pps import jobs
from localpachd.pps.log_rows import forget
from localpachd.pps.pps_service import PpsService
from localpachd.root_access import RootLock, explain_failures, restrict_to_owner
from localpachd.server_options import ServerOptions
from localpachd.storage import garbage_collector
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.url_reach import UrlReach
from localpachd.worker import gpu_pool
from localpachd.worker.docker import container_engine
from localpachd.worker.docker.container_engine import EngineError
from localpachd.worker.docker.container_workplaces import DockerBackend
from localpachd.worker.environment import EnvironmentProblem
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.local_runner import LocalRunner
from localpachd.worker.machine import invocation
from localpachd.worker.machine.machine_view import programs_in, view
from localpachd.worker.machine.machine_workplaces import MachineBackend, ProcessSurroundings
from localpachd.worker.secret_store import SecretStore
from localpachd.worker.workplace import WorkerStores, WorkplaceBackend

_CALLS_AT_ONCE = 512
_STREAMS_AT_ONCE = 384
"""Of these calls, those that stay for as long as their clients like."""
_IDLE = 600.0
_IDLE_WHEN_CROWDED = 10.0
"""Seconds in which the client of a stream has to take something of it."""
_BETWEEN_CHORES = 3600.0
_BETWEEN_LOOKS = 5.0
_BETWEEN_RELIEFS = 2.0
_SQUASHED_AT_START = 200
"""Commit sets; a start does not take minutes for the others, which the chores squash."""
_GRACE = 1.0
"""Seconds that calls in progress have to end when the server stops."""


class Server:
    """A server on a root directory. It listens once it is built and answers once `start` is called.

    Raises FailedPrecondition if another server uses the root, Unavailable if the port is taken or a required container
    engine does not answer, ValueError for an invalid number of GPUs, NoSpace or FailedPrecondition if the root cannot
    be used. FailedPrecondition also for an address that strangers could reach, and a token or certificate that cannot
    be used.
    """

    def __init__(self, options: ServerOptions) -> None:
        server_addresses.check(options.host, options.protection)
        self._token = server_addresses.token(options.protection.token_file)
        self._metrics = _metrics(options)
        self._root = options.root
        self._counted = options.metrics_port is not None
        self._measured = self._counted or bool(options.quota)
        with explain_failures(options.root):
            self._lock = RootLock(options.root)
        try:
            with explain_failures(options.root):
                self._build(options)
        except BaseException:
            self._metrics.stop()
            self._lock.release()
            raise

    def _build(self, options: ServerOptions) -> None:
        restrict_to_owner(options.root)
        pool = GpuPool(gpu_pool.detect(options.gpus), options.strict_gpus)
        # Workers' processes have a token of their own, so that the clients' one is in no environment.
        workers_token = random.token_hex(32) if self._token else ""
        guards = [TokenInterceptor((self._token, workers_token))] if self._token else []
        counting = [CallMetrics(self._metrics.calls)] if self._counted else []
        faithful = [CrashInterceptor()] if options.faithful else []
        version = COMPATIBLE[options.compatible]
        later = [LaterReplies()] if version > V2_7 else []
        self._parking = ParkedCalls(_IDLE, _IDLE_WHEN_CROWDED, version)
        self._calls = ThreadPoolExecutor(_CALLS_AT_ONCE, thread_name_prefix="call")
        streams = StreamLimit(_STREAMS_AT_ONCE, _IDLE)
        self._grpc = grpc.server(
            self._calls,
            interceptors=[*counting, *guards, CallLog(), StatusInterceptor(version), streams, *later, *faithful],
            options=OPTIONS,
            # Requests may be compressed; replies are not, since most of their bytes are pictures.
            compression=grpc.Compression.NoCompression,
        )
        at = server_addresses.listen(self._grpc, options.host, options.port, options.protection)
        self.port, self.address = at.port, at.address
        self._reserve = DiskReserve(options.root / root_format.RESERVE)
        disk = Disk(options.root, self._reserve)
        root_format.prepare(options.root)
        self._db = Database(options.root / root_format.DATABASE, disk)
        root_format.check_database(options.root, self._db)
        self._chunks = ChunkStore(options.root / root_format.CHUNKS, disk, options.quota, lambda: self._db.usage().use)
        self._links = ChunkLinks(self._chunks, options.host == LOOPBACK)
        own = (options.root, options.protection.token_file, options.protection.key, options.metrics_token_file)
        reach = UrlReach(options.file_urls, options.url_networks, tuple(each for each in own if each is not None))
        self._pfs = PfsService(self._db, self._chunks, jobs, pace=Pace(options.faithful), reach=reach)
        self._finisher = CommitFinisher(self._pfs)
        secrets = SecretStore(options.root / "secrets")
        facts = ServerFacts(options.root, asdict(options))
        self._levels = LogLevels()
        backend = _backend(
            options, WorkerStores(self._db, self._chunks, secrets, token=workers_token), self._pfs.changes.notify
        )
        self._runner = LocalRunner(options.root / "scratch", pool, GrpcBatchServer(), backend, disk)
        secrets.observe(self._runner.look)

        def serve(server: grpc.Server, pfs: PfsService) -> None:
            # Spouts get sidecars once the pps room has started, and a sidecar serves that room.
            specs = options.lenient_specs
            register(server, pfs, self._pps, secrets, facts, self._levels, self._parking, specs, version, self._links)

        sidecars = GrpcSidecars(self._pfs, serve, guards, version)
        self._sources = StateSources(
            options.root,
            self._db,
            self._chunks,
            pool,
            self._parking.waiting,
            lambda: self._runner.workers,
            lambda: self._runner.warm,
            options.retention,
            options.quota,
        )
        self._pps = PpsService(self._pfs, self._runner, pool, at.workers_port, secrets, sidecars)
        sweeper = garbage_collector.GarbageCollector(self._db, self._chunks)
        self._ages = CommitAges(self._db)
        self._squash_old = partial(retention.squash_old, self._pfs, options.retention)
        chores = ChoreThread(
            {
                "forget old lines of logs": lambda: disk.freeing(
                    lambda: forget(self._db, options.log_days, options.log_lines)
                ),
                "forget expired file sets": lambda: self._pfs.transact(temporary_filesets.forget_expired, frees=True),
                "count the days": self._ages.look,
                "squash old commits": self._squash_old,
                "sweep": sweeper.sweep,
                "mark the database": lambda: root_format.mark_database(options.root, self._db),
            },
            _BETWEEN_CHORES,
        )
        looks = ChoreThread(
            {
                "end streams that nobody reads": streams.end_idle,
                "end waiting calls that nobody reads": self._parking.end_idle,
            },
            _BETWEEN_LOOKS,
        )
        relief = ChoreThread(
            {"make room": sweeper.relieve, "keep room for deletions": self._reserve.restore}, _BETWEEN_RELIEFS
        )
        self._chores = (chores, looks, relief)
        serve(self._grpc, self._pfs)
        # Where another user's processes have no /pfs of their own, they reach their files through the root.
        passable = options.runner == "process" and os.geteuid() == 0 and bool(backend.shortcomings())
        restrict_to_owner(options.root, "scratch" if passable else "")

    @property
    def metrics_address(self) -> str:
        """The URL of the metrics, "" without."""
        return self._metrics.address

    def start(self) -> None:
        """Cleans up after the last run, continues its unfinished jobs, and starts to answer. Raises NoSpace or
        FailedPrecondition if the root cannot be used."""
        with explain_failures(self._root):
            self._pfs.transact(temporary_filesets.forget_expired)
            self._ages.look()
            self._squash_old(most=_SQUASHED_AT_START)
            merge_hidden(self._db)
            garbage_collector.sweep(self._db, self._chunks)
            if self._measured:
                self._chunks.measure()
            root_format.mark_database(self._root, self._db)
            self._reserve.restore()
        logging.getLogger("localpachd").addHandler(self._pps.server_log)
        self._finisher.start()
        self._pps.start()
        for each in self._chores:
            each.start()
        self._grpc.start()
        self._metrics.start(self._sources)

    def check(self) -> None:
        """Raises what stands in the way of reading the database."""
        with self._db.read() as conn:
            conn.execute("SELECT 1 FROM facts LIMIT 1").fetchone()

    def stop(self) -> None:
        """Ends calls and processes; running jobs continue at the next start. Raises NoSpace or FailedPrecondition if
        the root cannot be used any more."""
        self._metrics.stop()
        self._grpc.stop(_GRACE).wait()
        for each in self._chores:
            each.stop()
        self._pps.stop()
        self._finisher.stop()
        self._levels.close()
        logging.getLogger("localpachd").removeHandler(self._pps.server_log)
        self._runner.close()
        self._parking.close()
        self._links.stop()
        self._calls.shutdown(wait=True)
        self._chunks.close()
        try:
            with explain_failures(self._root):
                root_format.mark_database(self._root, self._db)
        finally:
            self._db.close()
            self._lock.release()

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _metrics(options: ServerOptions) -> ServerMetrics:
    """The metrics, which listen if they are wanted. Raises FailedPrecondition and Unavailable, as `Server` does."""
    metrics = ServerMetrics()
    if options.metrics_port is not None:
        given = options.protection
        own = replace(given, token_file=options.metrics_token_file or given.token_file)
        server_addresses.check(options.metrics_host, own)
        token = server_addresses.token(own.token_file)
        metrics.open(options.metrics_host, options.metrics_port, token, server_addresses.tls_context(own))
    return metrics


def _surroundings(options: ServerOptions) -> ProcessSurroundings:
    """What processes of this machine get of it. Raises FailedPrecondition for a user that it does not have."""
    root = options.root.resolve()
    # Someone may have made the root of a directory with programs.
    own = [each for each in root.iterdir() if not programs_in(each)] if programs_in(root) else [root]
    protection = options.protection
    files = (protection.token_file, protection.key, options.metrics_token_file)
    own += [each for each in files if each is not None]
    try:
        invocation.user(options.run_as)
    except EnvironmentProblem as problem:
        raise FailedPrecondition(f"--run-as {options.run_as}: {problem}") from problem
    return ProcessSurroundings(view(own, options.worker_sees), frozenset(options.pass_env), options.run_as)


def _backend(options: ServerOptions, stores: WorkerStores, changed: Callable[[], None]) -> WorkplaceBackend:
    """The backend that runs workers. Raises Unavailable if it needs a container engine and none answers."""
    if options.runner == "process":
        return MachineBackend(stores, options.root / "scratch", surroundings=_surroundings(options))
    try:
        return DockerBackend(stores, container_engine.find(), options.root, changed)
    except EngineError as error:
        raise Unavailable(f"--runner docker: {error}") from error
