"""Transactions: several calls that take effect together, as one commit set, or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from python_pachyderm.proto.v2.transaction import transaction_pb2, transaction_pb2_grpc

from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction under way. `id` will be that of its commit set. A call with this `metadata` is checked now, and
    takes effect at the end."""

    id: str

    @property
    def metadata(self) -> tuple[tuple[str, str]]:
        return (("pach-transaction", self.id),)


@contextmanager
def transaction(connection: Connection) -> Iterator[OpenTransaction]:
    """A transaction that ends with the `with` statement: all its calls take effect, or none if one of them fails."""
    stub = transaction_pb2_grpc.APIStub(connection.client._channel)
    begun = stub.StartTransaction(transaction_pb2.StartTransactionRequest())
    try:
        yield OpenTransaction(begun.id)
        stub.FinishTransaction(transaction_pb2.FinishTransactionRequest(transaction=begun))
    except BaseException:
        with suppress_not_found():  # it may have taken effect before the reply was interrupted
            stub.DeleteTransaction(transaction_pb2.DeleteTransactionRequest(transaction=begun))
        raise
