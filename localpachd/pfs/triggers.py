"""Triggers: branches whose head follows another branch of their repo after enough changes there, or on a schedule.

The conditions are Pachyderm's (`src/server/pfs/server/trigger.go`, `master.go`). Does not wait: called when commits
finish, and by the clock.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from localpachd.errors import PachError, prefixed
from localpachd.pfs import commits, cron_schedules, lookup, names
from localpachd.pfs.cron_schedules import CronSchedule
from localpachd.pfs.pfs_entities import Branch, CommitInfo, Repo
from localpachd.pfs.transaction import Transaction

_SIZE = re.compile(r"(\d+(?:\.\d+)*) ?([kKmMgGtTpP])?[iI]?[bB]?")
_POWERS = "kmgtp"

_TIMED = """SELECT b.id, b.trigger_spec, COALESCE(t.at, c.started) AS last FROM branches b
    JOIN commits c ON c.seq = b.head LEFT JOIN trigger_ticks t ON t.branch = b.id WHERE b.trigger_spec IS NOT NULL"""


@dataclass(frozen=True, slots=True)
class _Row:
    id: int
    name: str
    head: int
    trigger: Mapping[str, Any] | None


def checked(conn: sqlite3.Connection, branch: Branch, trigger: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A trigger (protojson, snake_case names) for a branch, with its numbers as numbers; None for none.

    Raises PachError with Pachyderm's text if it is not valid."""
    if not trigger:
        return None
    found = {**trigger, "commits": int(trigger.get("commits", 0))}
    if not found.get("branch"):
        raise PachError("triggers must specify a branch to trigger on")
    names.check(found["branch"])
    _check_spec(found.get("rate_limit_spec", ""), "invalid trigger rate limit spec")
    if found.get("size"):
        _bytes(found["size"])
    if found["commits"] < 0:
        raise PachError("can't trigger on a negative number of commits")
    _check_spec(found.get("cron_spec", ""), "invalid trigger cron spec")
    _check_loop(conn, branch, found["branch"])
    return {key: value for key, value in found.items() if value}


def fire(txn: Transaction, seq: int) -> None:
    """Moves the branches whose conditions hold after a commit finished, each after the branch that it follows.

    Branches downstream of them get their commits when the transaction ends."""
    rows = _beside(txn.conn, "SELECT repo FROM commits WHERE seq = ?", seq)
    if not any(row.trigger for row in rows.values()):
        return
    info = commits.by_seq(txn.conn, seq)
    if info.error:
        return
    heads: dict[str, CommitInfo | None] = {info.commit.branch: info}

    def head_of(name: str) -> CommitInfo | None:
        """The commit that this branch has just moved to, if it has moved."""
        row = rows.get(name)
        if name in heads or row is None:
            return heads.get(name)
        heads[name] = None
        if row.trigger is None or row.trigger.get("cron_spec"):
            return None
        new = head_of(row.trigger["branch"])
        if new is not None and _holds(txn.conn, row.trigger, commits.by_seq(txn.conn, row.head), new):
            _move(txn, row.id, new.seq)
            heads[name] = new
        return heads[name]

    for name in rows:
        head_of(name)


def next_tick(conn: sqlite3.Connection) -> tuple[int, int] | None:
    """The row of the branch that a cron trigger moves next, and the time (ns); None if there are no cron triggers."""
    ticks = [(when, branch) for branch, last, schedule in _schedules(conn) if (when := schedule.next(last)) is not None]
    return min(ticks)[::-1] if ticks else None


def future_triggers(conn: sqlite3.Connection, now: int) -> list[int]:
    """The rows of the branches whose cron trigger last fired, or whose head was made, at a time that is far in the
    future at `now` (ns): the clock was ahead then, and they would fire no more until it is there again."""
    return [branch for branch, last, schedule in _schedules(conn) if schedule.is_ahead(last, now)]


def _schedules(conn: sqlite3.Connection) -> Iterator[tuple[int, int, CronSchedule]]:
    """The row of each branch with a cron trigger, when that last fired or its head was made (ns), and its schedule."""
    for row in conn.execute(_TIMED):
        if spec := json.loads(row["trigger_spec"]).get("cron_spec"):
            yield row["id"], row["last"], cron_schedules.parse(spec)


def mark_fired(txn: Transaction, now: int) -> None:
    """Lets those branches count as fired `now`."""
    for branch in future_triggers(txn.conn, now):
        txn.conn.execute("INSERT OR REPLACE INTO trigger_ticks (branch, at) VALUES (?, ?)", (branch, now))


def tick(txn: Transaction, branch: int, now: int) -> None:
    """Moves a branch that is due (`now`, ns) to the head of the branch that it follows. Missed ticks count as one: the
    original makes up for each of them, all with the same head."""
    txn.conn.execute("INSERT OR REPLACE INTO trigger_ticks (branch, at) VALUES (?, ?)", (branch, now))
    reference = lookup.branch_by_id(txn.conn, branch)
    txn.changed.add(reference)
    rows = _of_repo(txn.conn, reference.repo)
    trigger = rows[reference.name].trigger
    followed = rows.get(trigger["branch"]) if trigger else None
    if followed is not None:
        _move(txn, branch, followed.head)


def _move(txn: Transaction, branch: int, head: int) -> None:
    txn.conn.execute("UPDATE branches SET head = ? WHERE id = ?", (head, branch))
    txn.moved.append(branch)


def _of_repo(conn: sqlite3.Connection, repo: Repo) -> dict[str, _Row]:
    return _beside(conn, "SELECT ?", lookup.repo_id(conn, repo))


def _beside(conn: sqlite3.Connection, repo: str, value: int) -> dict[str, _Row]:
    """The branches, by name and oldest first, of the repo whose row is the SQL expression `repo` of `value`."""
    found = conn.execute(
        f"SELECT id, name, head, trigger_spec FROM branches WHERE repo = ({repo}) ORDER BY id", (value,)
    )
    return {
        name: _Row(row, name, head, json.loads(spec) if spec else None) for row, name, head, spec in found.fetchall()
    }


def _holds(conn: sqlite3.Connection, trigger: Mapping[str, Any], old: CommitInfo, new: CommitInfo) -> bool:
    """Whether a branch at `old` should move to `new`: any of the conditions set holds, or with `all` each of them."""
    conditions: list[Callable[[], bool]] = []
    if trigger.get("size"):
        conditions.append(lambda: (new.size or 0) - (old.size or 0) >= _bytes(trigger["size"]))
    if trigger.get("rate_limit_spec"):
        conditions.append(lambda: _is_past(trigger["rate_limit_spec"], old.finishing, new.finishing))
    if trigger.get("commits"):
        conditions.append(lambda: _counts(conn, trigger["commits"], old, new))
    judge = all if trigger.get("all") else any
    return judge(condition() for condition in conditions)


def _is_past(spec: str, last: int | None, now: int | None) -> bool:
    if last is not None and now is not None and last > now:
        return True  # the clock was ahead: nobody knows how long ago that was
    due = cron_schedules.parse(spec).next(last or 0)
    return due is not None and now is not None and due < now


def _counts(conn: sqlite3.Connection, wanted: int, old: CommitInfo, new: CommitInfo) -> bool:
    """Whether there are `wanted` commits after `old` up to `new`."""
    at = new
    for _ in range(wanted - 1):
        if at.parent is None or at.parent.id == old.commit.id:
            return False
        at = commits.resolve(conn, at.parent)
    return True


def _check_spec(spec: str, what: str) -> None:
    if spec:
        with prefixed(what, plain=True):
            cron_schedules.parse(spec)


def _check_loop(conn: sqlite3.Connection, branch: Branch, followed: str) -> None:
    rows = _of_repo(conn, branch.repo)
    seen: set[str] = set()
    while followed not in seen:
        if followed == branch.name:
            raise PachError("triggers cannot form a loop")
        seen.add(followed)
        row = rows.get(followed)
        if row is None or row.trigger is None:
            return
        followed = row.trigger["branch"]


def _bytes(text: str) -> int:
    """The bytes of a size such as "1.5GB", in powers of a thousand."""
    match = _SIZE.fullmatch(text)
    if match is None or match[1].count(".") > 1:
        raise PachError(f"invalid trigger size: invalid size: '{text}'")
    power = _POWERS.index(match[2].lower()) + 1 if match[2] else 0
    return int(float(match[1]) * 1000**power)
