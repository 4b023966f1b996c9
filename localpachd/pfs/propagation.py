"""The end of every transaction: commits downstream of the branches that moved, and a check of the DAG.

The order is the real server's: propagation, new jobs, jobs of removed commits, jobs of finished ones
(`src/internal/transactionenv/txncontext/context.go`).
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from localpachd.errors import PachError
from localpachd.pfs import commit_sets, commits, lookup, provenance_graph
from localpachd.pfs.pfs_entities import SPEC, Branch, Commit, Repo
from localpachd.pfs.transaction import Transaction


def complete(txn: Transaction) -> None:
    """Checks the DAG, opens a commit on every branch downstream of a moved one, and tells the observer which commits
    the transaction opened, removed and finished."""
    _check_dag(txn)
    _propagate(txn)
    if txn.opened:
        opened = commit_sets.upstream_first(txn.conn, txn.opened)
        txn.changed.update(info.commit.repo for info in opened)
        txn.observer.commits_opened(txn, opened)
    if txn.removed:
        txn.changed.update(info.commit.repo for info in txn.removed)
        txn.observer.commits_removed(txn, txn.removed)
    for seq in txn.finished:  # grows while jobs end with their commits
        info = commits.by_seq(txn.conn, seq)
        txn.changed.add(info.commit.repo)
        txn.observer.commit_finished(txn, info)


@dataclass(slots=True)
class _Tip:
    """A branch, its head, and the commit set and the branch that the head was made in and on."""

    branch: Branch
    head: int
    set: str
    made_on: str


def _propagate(txn: Transaction) -> None:
    if not txn.moved:
        return
    provenance = provenance_graph.ProvenanceGraph(txn.conn, txn.moved)
    below = provenance.downstream(*txn.moved)
    if not below:
        return
    upstream = {row: provenance.upstream(row) for row in below}
    tips = _tips(txn, below.union(*upstream.values()))
    for row in sorted(below, key=lambda each: (len(upstream[each]), each)):
        if _is_spout(tips, upstream[row]):
            continue
        tip = tips[row]
        # Shallower branches come first, so heads upstream are already those of this commit set.
        heads = [tips[each].head for each in provenance.direct(row)]
        if tip.set == txn.id:
            # Made with the branch, perhaps before heads upstream moved. Like the real server, make no second commit.
            if tip.made_on != tip.branch.name:
                raise commits.taken(Commit(tip.branch.repo, txn.id))
            commits.set_provenance(txn, tip.head, heads)
            continue
        tip.head = commits.insert(txn, tip.branch, "AUTO", tip.head, heads)
        txn.conn.execute("UPDATE branches SET head = ? WHERE id = ?", (tip.head, row))


def _tips(txn: Transaction, rows: Collection[int]) -> dict[int, _Tip]:
    found = txn.conn.execute(
        "SELECT b.id, r.project, r.name, r.type, b.name, b.head, c.id AS made, c.branch AS made_on FROM branches b "
        "JOIN repos r ON r.id = b.repo JOIN commits c ON c.seq = b.head WHERE b.id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rows)),),
    )
    return {row["id"]: _Tip(Branch(Repo(*row[1:4]), row[4]), row["head"], row["made"], row["made_on"]) for row in found}


def _is_spout(tips: Mapping[int, _Tip], upstream: Collection[int]) -> bool:
    return len(upstream) == 1 and all(tips[each].branch.repo.type == SPEC for each in upstream)


def _check_dag(txn: Transaction) -> None:
    checked: set[int] = set()
    for branch in txn.rewired:
        if branch in checked:
            continue
        connected = provenance_graph.connected(txn.conn, branch)
        checked |= connected
        repo = lookup.repeated_repo(txn.conn, connected)
        if repo is not None:
            raise PachError(
                f'validate DAG at end of transaction: multiple branches from the same repo, "{repo}", cannot '
                "participate in a DAG"
            )
