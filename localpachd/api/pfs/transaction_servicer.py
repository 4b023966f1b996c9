"""The `transaction_v2.API` service, and the entry point of every call that can be part of a transaction.

A transaction is a list of requests. Each added request is run dry together with the requests before it, which gives its
answer; finishing the transaction runs them all, in one atomic step.
"""

from collections.abc import Iterable

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.messages import pfs_messages
from localpachd.api.messages.times import timestamp
from localpachd.api.messages.transaction_requests import RequestResult, TransactionRequests
from localpachd.api.schema.schema import pfs_pb2, transaction_pb2
from localpachd.errors import PachError
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import (
    Transaction,
    add_open,
    list_open,
    read_open,
    remove_all_open,
    remove_open,
    write_open,
)

_HEADER = "pach-transaction"


class TransactionalCalls:
    """Runs the calls that can be part of a transaction: at once, or by adding them to the transaction that the client's
    header names. (All other calls ignore the header, as in Pachyderm.)"""

    def __init__(self, pfs: PfsService, requests: TransactionRequests) -> None:
        self._pfs = pfs
        self._requests = requests

    def __call__(self, context: CallContext, asked: transaction_pb2.TransactionRequest) -> RequestResult:
        """Runs one request and returns its answer (see `TransactionRequests.run`). Of a request that is added to a
        transaction, only the commit of a StartCommit is known now."""
        named = [str(value) for key, value in context.invocation_metadata() if key == _HEADER]
        if not named:
            return self._pfs.transact(lambda txn: self._requests.run(txn, asked), frees=_frees([asked]))
        if len(named) > 1:
            raise PachError("multiple active transactions found in context")
        pfs_messages.complete(asked)
        return self._pfs.transact(lambda txn: self._append(txn, named[0], asked))

    def _append(self, txn: Transaction, id_: str, asked: transaction_pb2.TransactionRequest) -> RequestResult:
        info = _read(txn, id_)
        info.requests.append(asked)
        made = self._pfs.dry_run(txn, lambda dry: self._requests.run_all(dry, info.requests), id_)
        _answer(info, made)
        # Pachyderm runs and stores a request in two steps, and repeats both if this number has changed in between.
        info.version += 1
        write_open(txn, id_, info.SerializeToString())
        return made[-1] if asked.HasField("start_commit") else None


class TransactionServicer:
    """Stores transactions, and runs each as one atomic step."""

    def __init__(self, pfs: PfsService, requests: TransactionRequests) -> None:
        self._pfs = pfs
        self._requests = requests

    def StartTransaction(self, request: transaction_pb2.StartTransactionRequest) -> transaction_pb2.Transaction:
        def step(txn: Transaction) -> transaction_pb2.Transaction:
            info = _new(txn)
            add_open(txn, txn.id, info.SerializeToString())
            return info.transaction

        return self._pfs.transact(step)

    def InspectTransaction(self, request: transaction_pb2.InspectTransactionRequest) -> transaction_pb2.TransactionInfo:
        with self._pfs.db.read() as conn:
            return _info(read_open(conn, request.transaction.id))

    def ListTransaction(self, request: transaction_pb2.ListTransactionRequest) -> transaction_pb2.TransactionInfos:
        with self._pfs.db.read() as conn:
            return transaction_pb2.TransactionInfos(transaction_info=map(_info, list_open(conn)))

    def DeleteTransaction(self, request: transaction_pb2.DeleteTransactionRequest) -> None:
        self._pfs.transact(lambda txn: remove_open(txn, request.transaction.id), frees=True)

    def FinishTransaction(self, request: transaction_pb2.FinishTransactionRequest) -> transaction_pb2.TransactionInfo:
        id_ = request.transaction.id

        def step(txn: Transaction) -> transaction_pb2.TransactionInfo:
            info = _read(txn, id_)
            _answer(info, self._requests.run_all(txn, info.requests))
            remove_open(txn, id_)
            return info

        return self._pfs.transact(step, id_)

    def BatchTransaction(self, request: transaction_pb2.BatchTransactionRequest) -> transaction_pb2.TransactionInfo:
        def step(txn: Transaction) -> transaction_pb2.TransactionInfo:
            info = _new(txn)
            info.requests.extend(request.requests)
            _answer(info, self._requests.run_all(txn, info.requests))
            return info

        return self._pfs.transact(step, frees=_frees(request.requests))

    def DeleteAll(self, request: transaction_pb2.DeleteAllRequest) -> None:
        self._pfs.transact(remove_all_open, frees=True)


def _frees(requests: Iterable[transaction_pb2.TransactionRequest]) -> bool:
    """Whether requests do nothing but free room."""
    return all(
        each.HasField("delete_repo") or each.HasField("delete_branch") or each.HasField("squash_commit_set")
        for each in requests
    )


def _new(txn: Transaction) -> transaction_pb2.TransactionInfo:
    """A transaction without requests; its id is that of the step that creates it."""
    return transaction_pb2.TransactionInfo(
        transaction=transaction_pb2.Transaction(id=txn.id), started=timestamp(txn.now)
    )


def _info(content: bytes) -> transaction_pb2.TransactionInfo:
    return transaction_pb2.TransactionInfo.FromString(content)


def _read(txn: Transaction, id_: str) -> transaction_pb2.TransactionInfo:
    return _info(read_open(txn.conn, id_))


def _answer(info: transaction_pb2.TransactionInfo, made: Iterable[RequestResult]) -> None:
    """Puts the responses of all requests into their transaction; only StartCommit's has content."""
    del info.responses[:]
    for each in made:
        started = each if isinstance(each, pfs_pb2.Commit) else None
        info.responses.append(transaction_pb2.TransactionResponse(commit=started))
