"""The cron scheduler: ticks of cron inputs, and timed triggers of branches, each when it is due. Decides no schedule.

It keeps no state of its own: the newest tick is the name of a file in the cron repo. A scheduler that is started again
continues from there. Ticks of a clock that was ahead, and has been set back, do not hold up those that are due now.
"""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial

from localpachd.errors import PachError
from localpachd.pfs import commits, contents, cron_schedules, triggers
from localpachd.pfs.changes import TopicChanges
from localpachd.pfs.cron_schedules import CronSchedule
from localpachd.pfs.files import file_modification
from localpachd.pfs.files.file_modification import FileAddition, FileChange, FileRemoval
from localpachd.pfs.pfs_entities import Branch, Commit, CommitInfo, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.pfs.upkeep.change_loop import ChangeLoop
from localpachd.pps import pipelines
from localpachd.pps.pps_entities import Pipeline, PipelineState
from localpachd.pps.scheduling import job_base
from localpachd.pps.specs import inputs, spec
from localpachd.pps.specs.inputs import CronInput
from localpachd.storage.filesets import DEFAULT_TAG, FileContent

_SECOND = 1_000_000_000
# Seconds after which the clock is read again: the machine may have slept.
_LONGEST_WAIT = 60.0
_PAUSE = 5.0
_TICKING = (PipelineState.RUNNING, PipelineState.STANDBY, PipelineState.CRASHING)

_log = logging.getLogger(__name__)


class CronScheduler:
    """A thread that ticks when ticks are due. `now` gives nanoseconds since the epoch. If that is not the machine's
    clock, call `ChangeNotifier.wake` when it moves."""

    def __init__(self, pfs: PfsService, now: Callable[[], int] = time.time_ns) -> None:
        self._pfs = pfs
        self._now = now
        self._newest: dict[Repo, tuple[int, int]] = {}
        self._told: set[str] = set()
        self._due: int | None = None
        self._seen = 0
        self._repos: frozenset[Repo] = frozenset()
        self._loop = ChangeLoop("cron", pfs.changes, self._round, _PAUSE)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def run_now(self, pipeline: Pipeline) -> None:
        """Ticks every cron input of a pipeline now; PachError where it has none, NotFound for an unknown one."""
        with self._pfs.db.read() as conn:
            found = crons(pipelines.inspect(conn, pipeline).spec.input)
        if not found:
            raise PachError("pipeline doesn't have a cron input")
        for cron in found:
            file_modification.modify(self._pfs, _head(cron), _tick(cron, self._now()))

    def _round(self, changed: TopicChanges) -> float | None:
        """Does what is due; returns the seconds until more is due, None if nothing will be."""
        now = self._now()
        set_back, self._seen = now < self._seen, now
        if self._concerned(changed) or set_back or (self._due is not None and self._due <= now):
            self._due = self._do_due()
        if self._due is None:
            return None
        return min(max((self._due - self._now()) / _SECOND, 0.0), _LONGEST_WAIT)

    def _concerned(self, changed: TopicChanges) -> bool:
        """Whether other ticks or triggers may be due than were read last, or at other times. A branch may have got a
        trigger; a new head of a branch only delays its trigger."""
        return (
            changed.everything
            or not self._repos.isdisjoint(changed.topics)
            or any(isinstance(topic, Pipeline | Branch) for topic in changed.topics)
        )

    def _do_due(self) -> int | None:
        """Does at most one tick of each cron input, and the first trigger, if due. Returns the earliest time (ns) at
        which any of those was or is due, None if none will be."""
        with self._pfs.db.read() as conn:
            watched = list(_watched(conn))
            self._repos = frozenset(job_base.repo_of(cron) for cron in watched)
            now = self._now()
            ticks = list(self._next_ticks(conn, watched, now))
            ahead = triggers.future_triggers(conn, now)
            timer = triggers.next_tick(conn)
        if ahead:
            _log.warning("the clock was ahead: timed triggers that fired then start anew")
            timer = self._pfs.transact(partial(_set_back, now=now))
        for cron, when in ticks:
            if when <= now:  # missed ticks come one by one, each a commit
                self._pfs.patiently(partial(self._pfs.transact, partial(self._do_tick, cron=cron, when=when)))
        if timer is not None and timer[1] <= now:
            self._pfs.transact(partial(_do_timer, now=now))
        moments = [when for _, when in ticks] + ([timer[1]] if timer else [])
        return min(moments, default=None)

    def _do_tick(self, txn: Transaction, cron: CronInput, when: int) -> None:
        """Commits a tick if it is still the next one: the pipeline may have been stopped since the snapshot."""
        if cron in _watched(txn.conn) and (cron, when) in self._next_ticks(txn.conn, [cron], self._now()):
            file_modification.apply(txn, self._pfs.chunks, _head(cron), _tick(cron, when))

    def _next_ticks(
        self, conn: sqlite3.Connection, watched: Iterable[CronInput], now: int
    ) -> Iterator[tuple[CronInput, int]]:
        """Cron inputs with the next tick (ns) of each, without those that have none."""
        for cron in watched:
            try:
                schedule = cron_schedules.parse(cron.spec)
                when = schedule.next(self._last(conn, cron, schedule, now))
            except (PachError, ValueError) as error:
                self._complain(f"no ticks for {cron.project}/{cron.repo}: {error}")
                continue
            if when is not None:
                yield cron, when

    def _last(self, conn: sqlite3.Connection, cron: CronInput, schedule: CronSchedule, now: int) -> int:
        """The newest tick or the schedule's start, whichever is later (ns). Of ticks that a clock was ahead of the
        present one made, those up to now count, or now if there are none."""
        start = _moment(cron.start)
        repo = job_base.repo_of(cron)
        head = commits.resolve(conn, _head(cron))
        known = self._newest.get(repo)
        if known is None or known[0] != head.seq or head.finished is None:
            known = self._newest[repo] = head.seq, _newest(conn, head)
        if schedule.is_ahead(known[1], now):
            self._complain(
                f"{cron.project}/{cron.repo} has ticks of a clock that was ahead, the last at {_shown(known[1])}: its "
                "ticks continue from now"
            )
            known = self._newest[repo] = head.seq, _newest(conn, head, now) or now
        return max(start, known[1])

    def _complain(self, text: str) -> None:
        """Logs a message, once: each round finds the same fault."""
        if text not in self._told:
            self._told.add(text)
            _log.warning("%s", text)


def crons(tree: inputs.Input | None) -> tuple[CronInput, ...]:
    """The cron inputs of a pipeline's input."""
    return tuple(leaf for leaf in inputs.leaves(tree) if isinstance(leaf, CronInput))


def _tick(cron: CronInput, when: int) -> list[FileChange]:
    """The file of one tick (ns since the epoch); with `overwrite` it takes the place of those before it."""
    changes: list[FileChange] = [FileRemoval("/", DEFAULT_TAG)] if cron.overwrite else []
    return [*changes, FileAddition(f"/{_shown(when)}", DEFAULT_TAG, FileContent(0, ()))]


def _shown(when: int) -> str:
    return f"{datetime.fromtimestamp(when // _SECOND, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _set_back(txn: Transaction, now: int) -> tuple[int, int] | None:
    """Lets timed triggers that fired while the clock was ahead start anew, and returns the next one that is due."""
    triggers.mark_fired(txn, now)
    return triggers.next_tick(txn.conn)


def _do_timer(txn: Transaction, now: int) -> None:
    """Moves the branch whose timed trigger is due, if one still is."""
    timer = triggers.next_tick(txn.conn)
    if timer is not None and timer[1] <= now:
        triggers.tick(txn, timer[0], now)


def _watched(conn: sqlite3.Connection) -> Iterator[CronInput]:
    """Every cron input of a pipeline that is not stopped."""
    marks = ", ".join("?" * len(_TICKING))
    rows = conn.execute(
        "SELECT spec FROM pipelines p WHERE stopped = 0 AND instr(spec, '\"cron\"') "
        f"AND state IN ({marks}) AND version = "
        "(SELECT MAX(version) FROM pipelines WHERE project = p.project AND name = p.name)",
        _TICKING,
    )
    for row in rows.fetchall():
        yield from crons(spec.from_json(row["spec"]).input)


def _newest(conn: sqlite3.Connection, head: CommitInfo, until: int | None = None) -> int:
    """The time of the newest tick in a cron repo (ns) up to `until`, 0 without any. File names are in the order of
    time."""
    newest = ""
    for file in contents.fileset(conn, head).walk():
        if until is not None and _moment(file.path.rpartition("/")[2]) > until:
            break
        newest = file.path
    return _moment(newest.rpartition("/")[2]) if newest else 0


def _moment(text: str) -> int:
    """The whole second of a time in RFC 3339, in nanoseconds since the epoch."""
    return int(datetime.fromisoformat(text).timestamp()) * _SECOND


def _head(cron: CronInput) -> Commit:
    return Commit(job_base.repo_of(cron), branch=cron.as_pfs().branch)
