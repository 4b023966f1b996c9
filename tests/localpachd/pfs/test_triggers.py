"""Triggers: when a branch follows another one of its repo, and triggers that are not valid."""

from collections.abc import Mapping
from typing import Any

import pytest

from localpachd.errors import PachError
from localpachd.pfs import branches, commits, repos, triggers
from localpachd.pfs.files import file_modification
from localpachd.pfs.pfs_entities import Branch, Commit, CommitInfo, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.storage.filesets import DEFAULT_TAG

SECOND = 1_000_000_000


def put(pfs: PfsService, repo: Repo, size: int, path: str = "/f", branch: str = "master") -> CommitInfo:
    content = pfs.chunks.store([b"x" * size])
    file_modification.modify(
        pfs, Commit(repo, branch=branch), [file_modification.FileAddition(path, DEFAULT_TAG, content)]
    )
    return head(pfs, repo, branch)


def head(pfs: PfsService, repo: Repo, branch: str) -> CommitInfo:
    with pfs.db.read() as conn:
        return commits.resolve(conn, Commit(repo, branch=branch))


def follow(pfs: PfsService, repo: Repo, name: str, **trigger: Any) -> None:
    spec: Mapping[str, Any] = {"branch": "master", **trigger}
    pfs.transact(lambda txn: branches.create(txn, Branch(repo, name), trigger=spec))


def test_a_branch_moves_after_enough_bytes(pfs: PfsService, a: Repo) -> None:
    follow(pfs, a, "big", size="1K")
    first = head(pfs, a, "big")
    put(pfs, a, 600)
    assert head(pfs, a, "big") == first
    second = put(pfs, a, 600)
    assert head(pfs, a, "big").commit.id == second.commit.id
    put(pfs, a, 999)
    assert head(pfs, a, "big").commit.id == second.commit.id


def test_a_branch_moves_with_every_nth_commit(pfs: PfsService, a: Repo) -> None:
    put(pfs, a, 1)
    pfs.transact(lambda txn: branches.create(txn, Branch(a, "third"), Commit(a, branch="master"),
                                             trigger={"branch": "master", "commits": "3"}))  # fmt: skip
    moved = []
    for _ in range(7):
        made = put(pfs, a, 1)
        moved.append(head(pfs, a, "third").commit.id == made.commit.id)
    assert moved == [False, False, True, False, False, True, False]


def test_conditions_are_alternatives_unless_all_must_hold(pfs: PfsService, a: Repo) -> None:
    follow(pfs, a, "any", size="1M", commits=1)
    follow(pfs, a, "every", size="1M", commits=1, all=True)
    before = head(pfs, a, "every")
    made = put(pfs, a, 10)
    assert head(pfs, a, "any").commit.id == made.commit.id
    assert head(pfs, a, "every") == before
    large = put(pfs, a, 1_000_000)
    assert head(pfs, a, "every").commit.id == large.commit.id


def test_a_rate_limit_lets_one_commit_through_in_its_time(pfs: PfsService, a: Repo) -> None:
    follow(pfs, a, "slow", rate_limit_spec="@every 1000h")
    first = head(pfs, a, "slow")
    put(pfs, a, 1)
    assert head(pfs, a, "slow") == first
    with_past = Branch(a, "slow")
    past = first.started - 2000 * 3600 * SECOND
    pfs.db.write(lambda conn: conn.execute("UPDATE commits SET finishing = ? WHERE seq = ?", (past, first.seq)))
    made = put(pfs, a, 1)
    assert head(pfs, a, with_past.name).commit.id == made.commit.id


def test_triggers_make_chains(pfs: PfsService, a: Repo) -> None:
    follow(pfs, a, "staging", commits=1)
    follow(pfs, a, "live", branch="staging", commits=1)
    made = put(pfs, a, 1)
    assert head(pfs, a, "staging").commit.id == head(pfs, a, "live").commit.id == made.commit.id


def test_branches_downstream_follow_under_an_id_of_their_own(pfs: PfsService, a: Repo) -> None:
    out = Repo("default", "out")
    pfs.transact(lambda txn: repos.create(txn, out))
    follow(pfs, a, "staging", commits=1)
    pfs.transact(lambda txn: branches.create(txn, Branch(out, "master"), provenance=[Branch(a, "staging")]))
    made = put(pfs, a, 1)
    below = head(pfs, out, "master")
    assert [each.id for each in below.provenance] == [made.commit.id]
    assert below.commit.id != made.commit.id


def test_a_failed_commit_triggers_nothing(pfs: PfsService, a: Repo) -> None:
    follow(pfs, a, "staging", commits=1)
    before = head(pfs, a, "staging")
    commit = pfs.transact(lambda txn: commits.start(txn, Branch(a, "master")))
    pfs.transact(lambda txn: commits.finish(txn, commit, error="no good"))
    assert head(pfs, a, "staging") == before


def test_a_timer_moves_its_branch_when_due_and_once_for_all_missed_ticks(pfs: PfsService, a: Repo) -> None:
    follow(pfs, a, "nightly", cron_spec="@daily")
    made = put(pfs, a, 1)
    assert head(pfs, a, "nightly").commit.id != made.commit.id
    with pfs.db.read() as conn:
        tick = triggers.next_tick(conn)
    assert tick is not None
    branch, due = tick
    later = due + 10 * 24 * 3600 * SECOND
    pfs.transact(lambda txn: triggers.tick(txn, branch, later))
    assert head(pfs, a, "nightly").commit.id == made.commit.id
    with pfs.db.read() as conn:
        assert triggers.next_tick(conn) == (branch, later + 24 * 3600 * SECOND)


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        ({"branch": ""}, "triggers must specify a branch to trigger on"),
        ({"branch": "master", "rate_limit_spec": "often"}, "invalid trigger rate limit spec"),
        ({"branch": "master", "size": "large"}, "invalid trigger size: invalid size: 'large'"),
        ({"branch": "master", "commits": "-1"}, "can't trigger on a negative number of commits"),
        ({"branch": "master", "cron_spec": "* *"}, "invalid trigger cron spec"),
        ({"branch": "x"}, "triggers cannot form a loop"),
    ],
)
def test_refusals(pfs: PfsService, a: Repo, trigger: Mapping[str, Any], text: str) -> None:
    with pytest.raises(PachError, match=text):
        pfs.transact(lambda txn: branches.create(txn, Branch(a, "x"), trigger=trigger))


def test_a_loop_through_other_branches_is_refused(pfs: PfsService, a: Repo) -> None:
    follow(pfs, a, "one", branch="two", commits=1)
    with pytest.raises(PachError, match="triggers cannot form a loop"):
        follow(pfs, a, "two", branch="one", commits=1)
