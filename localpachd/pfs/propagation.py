"""The end of every transaction: commits for what lies downstream of the branches that moved, and a sound DAG."""

from localpachd.errors import PachError
from localpachd.pfs import commit_sets, commits, graph, lookup
from localpachd.pfs.transaction import Transaction
from localpachd.pfs.values import SPEC


def complete(txn: Transaction) -> None:
    """Checks the DAG, opens a commit on every branch downstream of a moved one, and tells the observer of every commit
    the transaction made."""
    _check_dag(txn)
    _propagate(txn)
    opened = commit_sets.upstream_first(txn.conn, txn.opened)
    if opened:
        txn.observer.commits_opened(txn, opened)


def _propagate(txn: Transaction) -> None:
    below = {each for branch in txn.moved for each in graph.downstream(txn.conn, branch)}
    provenance = {branch: graph.upstream(txn.conn, branch) for branch in below}
    for branch in sorted(below, key=lambda each: (len(provenance[each]), each)):
        if _is_spout(txn, provenance[branch]):
            continue
        head = txn.conn.execute("SELECT head FROM branches WHERE id = ?", (branch,)).fetchone()[0]
        if commits.by_seq(txn.conn, head).commit.id == txn.id:
            continue
        # The heads upstream are this set's commits where it has any: shallower branches came before.
        heads = [
            txn.conn.execute("SELECT head FROM branches WHERE id = ?", (each,)).fetchone()[0]
            for each in graph.direct(txn.conn, branch)
        ]
        seq = commits.insert(txn, lookup.branch_by_id(txn.conn, branch), "AUTO", head, heads)
        txn.conn.execute("UPDATE branches SET head = ? WHERE id = ?", (seq, branch))


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
