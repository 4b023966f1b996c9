"""The `transaction_v2.API` service: batches of StopJob, which `pachctl stop job ID` sends; none is ever kept open."""

from typing import Any

from localpachd.api import pps_messages as messages
from localpachd.api.schema import Empty, transaction_pb2
from localpachd.api.times import timestamp
from localpachd.errors import Unimplemented
from localpachd.pfs.service import Pfs
from localpachd.pfs.transaction import Transaction
from localpachd.pps import jobs


class TransactionServicer:
    """Runs batches at once, as one atomic step; keeps no transactions open."""

    def __init__(self, pfs: Pfs) -> None:
        self._pfs = pfs

    def BatchTransaction(self, request: Any, context: Any) -> Any:
        stops = [_only_stop(each) for each in request.requests]

        def step(txn: Transaction) -> Any:
            for stop in stops:
                jobs.stop(txn, messages.to_job(stop.job), stop.reason)
            return transaction_pb2.TransactionInfo(
                transaction=transaction_pb2.Transaction(id=txn.id),
                requests=request.requests,
                responses=[transaction_pb2.TransactionResponse() for _ in stops],
                started=timestamp(txn.now),
            )

        return self._pfs.transact(step)

    def ListTransaction(self, request: Any, context: Any) -> Any:
        return transaction_pb2.TransactionInfos()

    def DeleteAll(self, request: Any, context: Any) -> Any:
        # There is never one to delete; `pachctl delete all` ends with this call.
        return Empty()


def _only_stop(request: Any) -> Any:
    """The StopJob of a request of the batch; raises Unimplemented for one that asks for anything else."""
    for field, value in request.ListFields():
        if field.name != "stop_job":
            raise Unimplemented(f"localpachd does not serve {field.name} in a batch of requests yet")
        return value
    raise Unimplemented("localpachd does not serve empty requests in a batch")
