"""The clock's part: ticks of cron inputs, and triggers that go by time, each done when it is due. Decides no schedule.

What has been done is read from the repos themselves (the newest tick of a cron repo is a file's name), so a clock
that is started again goes on where the last one stood.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from localpachd.errors import PachError
from localpachd.pfs import commits, contents, modify, schedules, triggers
from localpachd.pfs.entities import Commit, CommitInfo, Repo
from localpachd.pfs.service import Pfs
from localpachd.pfs.staging import Addition, Change, Removal
from localpachd.pps import inputs, job_base, jobs
from localpachd.pps.entities import PipelineState
from localpachd.pps.inputs import CronInput
from localpachd.storage.filesets import DEFAULT_TAG, Content

_SECOND = 1_000_000_000
# A machine that slept finds out at the latest after so many seconds that time has gone by.
_LONGEST_WAIT = 60.0
_PAUSE = 5.0
_TICKING = (PipelineState.RUNNING, PipelineState.STANDBY, PipelineState.CRASHING)

_log = logging.getLogger(__name__)


class CronScheduler:
    """A thread that does what is due. `now` gives nanoseconds since the epoch; whoever sets another clock than the
    machine's rings the bell of changes when it moves."""

    def __init__(self, pfs: Pfs, now: Callable[[], int] = time.time_ns) -> None:
        self._pfs = pfs
        self._now = now
        self._stopping = False
        self._newest: dict[Repo, tuple[int, int]] = {}
        self._told: set[str] = set()
        self._thread = threading.Thread(target=self._loop, name="cron")

    def start(self) -> None:
        """Begins to watch the clock."""
        self._thread.start()

    def stop(self) -> None:
        """Stops watching and waits for what is being done."""
        self._stopping = True
        self._pfs.changes.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def run_now(self, cron: CronInput) -> None:
        """One tick out of turn."""
        tick(self._pfs, cron, self._now())

    def _loop(self) -> None:
        while not self._stopping:
            seen = self._pfs.changes.count
            try:
                due = self._do_due()
                wait = _LONGEST_WAIT if due is None else (due - self._now()) / _SECOND
            except Exception:  # the clock must go on, whatever one tick meets
                _log.exception("the clock is looked at again in %.0f s", _PAUSE)
                wait = _PAUSE
            if not self._stopping:
                self._pfs.changes.wait_past(seen, min(max(wait, 0.0), _LONGEST_WAIT))

    def _do_due(self) -> int | None:
        """Does one of each thing that is due. Returns when to look again (ns), None if nothing is waited for."""
        with self._pfs.db.read() as conn:
            ticks = list(self._next_ticks(conn))
            timer = triggers.next_tick(conn)
        now = self._now()
        for cron, when in ticks:
            if when <= now:  # those that were missed come one by one, each a commit
                tick(self._pfs, cron, when)
        if timer is not None and timer[1] <= now:
            branch = timer[0]
            self._pfs.transact(lambda txn: triggers.tick(txn, branch, now))
        moments = [when for _, when in ticks] + ([timer[1]] if timer else [])
        return min(moments, default=None)

    def _next_ticks(self, conn: sqlite3.Connection) -> Iterator[tuple[CronInput, int]]:
        """Every cron input of a pipeline that is not stopped, with its next tick (ns)."""
        for cron in _watched(conn):
            try:
                when = schedules.parse(cron.spec).next(self._last(conn, cron))
            except (PachError, ValueError) as error:
                self._complain(f"no ticks for {cron.project}/{cron.repo}: {error}")
                continue
            if when is not None:
                yield cron, when

    def _last(self, conn: sqlite3.Connection, cron: CronInput) -> int:
        """The newest tick or the schedule's start, whichever is later (ns)."""
        start = _moment(cron.start)
        repo = job_base.repo_of(cron)
        head = commits.resolve(conn, _head(cron))
        known = self._newest.get(repo)
        if known is None or known[0] != head.seq or head.finished is None:
            known = self._newest[repo] = head.seq, _newest(conn, head)
        return max(start, known[1])

    def _complain(self, text: str) -> None:
        """Says what is wrong, once: the next look finds it again."""
        if text not in self._told:
            self._told.add(text)
            _log.warning("%s", text)


def crons(tree: inputs.Input | None) -> tuple[CronInput, ...]:
    """The cron inputs of a pipeline's input."""
    return tuple(leaf for leaf in inputs.leaves(tree) if isinstance(leaf, CronInput))


def tick(pfs: Pfs, cron: CronInput, when: int) -> None:
    """Commits the file of one tick; with `overwrite` it takes the place of those before it."""
    moment = datetime.fromtimestamp(when // _SECOND, UTC)
    changes: list[Change] = [Removal("/", DEFAULT_TAG)] if cron.overwrite else []
    changes.append(Addition(f"/{moment:%Y-%m-%dT%H:%M:%SZ}", DEFAULT_TAG, Content(0, ())))
    modify.modify(pfs, _head(cron), changes)


def _watched(conn: sqlite3.Connection) -> Iterator[CronInput]:
    marks = ", ".join("?" * len(_TICKING))
    rows = conn.execute(
        "SELECT spec FROM pipelines p WHERE stopped = 0 AND instr(spec, '\"cron\"') "
        f"AND state IN ({marks}) AND version = "
        "(SELECT MAX(version) FROM pipelines WHERE project = p.project AND name = p.name)",
        _TICKING,
    )
    for row in rows.fetchall():
        yield from crons(jobs.parsed(row["spec"]).input)


def _newest(conn: sqlite3.Connection, head: CommitInfo) -> int:
    """The time of the newest tick in a cron repo (ns), 0 without any: the names of the files are in order of time."""
    newest = ""
    for file in contents.fileset(conn, head).walk():
        newest = file.path
    return _moment(newest.rpartition("/")[2]) if newest else 0


def _moment(text: str) -> int:
    """The whole second of a time in RFC 3339, in nanoseconds since the epoch."""
    return int(datetime.fromisoformat(text).timestamp()) * _SECOND


def _head(cron: CronInput) -> Commit:
    return Commit(job_base.repo_of(cron), branch=cron.as_pfs().branch)
