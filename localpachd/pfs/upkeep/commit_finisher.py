"""The finisher: finishes the commits that are closed, each some time later. Durable, since a closed commit is a row."""

from contextlib import suppress

from localpachd.pfs import commits
from localpachd.pfs.changes import EVERYTHING, TopicChanges
from localpachd.pfs.contents import UnfinishedBase
from localpachd.pfs.pfs_entities import CommitInfo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.pfs.upkeep.change_loop import ChangeLoop

_PAUSE = 1.0  # seconds before the next round after one that failed


class CommitFinisher:
    """Finishes closed commits at the pace of `pfs`."""

    def __init__(self, pfs: PfsService) -> None:
        self._pfs = pfs
        self._delays = pfs.pace.delays()
        self._loop = ChangeLoop("finisher", pfs.changes, self._round, _PAUSE)

    def start(self) -> None:
        """Finishes commits from now on or, if the pace leaves none closed, those that an earlier server did."""
        if self._pfs.pace.late:
            self._loop.start()
        else:
            self._round(EVERYTHING)

    def stop(self) -> None:
        """Leaves the rest to the next start."""
        self._loop.stop()

    def _round(self, _: TopicChanges) -> float | None:
        """Finishes the commits whose delay is over. Returns the seconds until that of another one is."""
        with self._pfs.db.read() as conn:
            closed = {info.seq: info for info in commits.finishing(conn)}
        due, wait = self._delays.over(closed)
        for seq in due:
            self._finish(closed[seq])
        return wait

    def _finish(self, closed: CommitInfo) -> None:
        def step(txn: Transaction) -> None:
            info = commits.find(txn.conn, closed.commit.repo, closed.commit.id)
            if info is not None and info.closed:  # not deleted meanwhile
                commits.complete(txn, info)

        with suppress(UnfinishedBase):  # the end of that commit is a change, too, and starts another round
            self._pfs.transact(step)
