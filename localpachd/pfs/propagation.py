"""The end of every transaction: commits for what lies downstream of the branches that moved, and a sound DAG.

What is put off until here is done in the real server's order: propagation, new jobs, jobs of removed commits, jobs of
finished ones (`src/internal/transactionenv/txncontext/context.go`).
"""

from localpachd.errors import PachError
from localpachd.pfs import commit_sets, commits, graph, lookup
from localpachd.pfs.entities import SPEC
from localpachd.pfs.transaction import Transaction


def complete(txn: Transaction) -> None:
    """Checks the DAG, opens a commit on every branch downstream of a moved one, and tells the observer of every commit
    that the transaction made, removed or finished."""
    _check_dag(txn)
    _propagate(txn)
    opened = commit_sets.upstream_first(txn.conn, txn.opened)
    if opened:
        txn.changed.update(info.commit.repo for info in opened)
        txn.observer.commits_opened(txn, opened)
    if txn.removed:
        txn.changed.update(info.commit.repo for info in txn.removed)
        txn.observer.commits_removed(txn, txn.removed)
    for seq in txn.finished:  # grows while jobs end with their commits
        info = commits.by_seq(txn.conn, seq)
        txn.changed.add(info.commit.repo)
        txn.observer.commit_finished(txn, info)


def _propagate(txn: Transaction) -> None:
    below = {each for branch in txn.moved for each in graph.downstream(txn.conn, branch)}
    provenance = {branch: graph.upstream(txn.conn, branch) for branch in below}
    for branch in sorted(below, key=lambda each: (len(provenance[each]), each)):
        if _is_spout(txn, provenance[branch]):
            continue
        head = _head(txn, branch)
        # The heads upstream are this set's commits where it has any: shallower branches came before.
        heads = [_head(txn, each) for each in graph.direct(txn.conn, branch)]
        if commits.by_seq(txn.conn, head).commit.id == txn.id:
            # Made when the branch was, perhaps before what is upstream moved on. The real server leaves it as it was.
            commits.set_provenance(txn, head, heads)
            continue
        seq = commits.insert(txn, lookup.branch_by_id(txn.conn, branch), "AUTO", head, heads)
        txn.conn.execute("UPDATE branches SET head = ? WHERE id = ?", (seq, branch))


def _head(txn: Transaction, branch: int) -> int:
    seq: int = txn.conn.execute("SELECT head FROM branches WHERE id = ?", (branch,)).fetchone()[0]
    return seq


def _is_spout(txn: Transaction, provenance: list[int]) -> bool:
    return len(provenance) == 1 and lookup.branch_by_id(txn.conn, provenance[0]).repo.type == SPEC


def _check_dag(txn: Transaction) -> None:
    for branch in txn.rewired:
        repos: set[str] = set()
        for each in sorted(graph.component(txn.conn, branch)):
            repo = str(lookup.branch_by_id(txn.conn, each).repo)
            if repo in repos:
                raise PachError(
                    f'validate DAG at end of transaction: multiple branches from the same repo, "{repo}", cannot '
                    "participate in a DAG"
                )
            repos.add(repo)
