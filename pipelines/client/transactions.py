"""Transactions: several calls that take effect together, as one commit set, or not at all."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from python_pachyderm.proto.v2.transaction import transaction_pb2, transaction_pb2_grpc

from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found


class OpenTransaction:
    """A transaction under way. `id` will be that of its commit set."""

    def __init__(self, connection: Connection, stub: Any) -> None:
        self._connection = connection
        self._stub = stub
        self._begun = connection.change(lambda: stub.StartTransaction(transaction_pb2.StartTransactionRequest()))
        self._size = 0
        self.id = str(self._begun.id)

    def add(self, call: Callable[..., Any], request: Any) -> Any:
        """Makes a call, of a stub, a part of the transaction, and returns its reply: the call is checked now, and takes
        effect at the end."""
        reply = self._connection.change(lambda: call(request, metadata=(("pach-transaction", self.id),)), self._noted)
        self._size += 1
        return reply

    def finish(self) -> None:
        """Lets all calls take effect."""
        request = transaction_pb2.FinishTransactionRequest(transaction=self._begun)
        self._connection.change(lambda: self._stub.FinishTransaction(request), self._is_finished)

    def delete(self) -> None:
        """Lets none of them take effect, unless they have already."""
        with suppress_not_found():
            self._stub.DeleteTransaction(transaction_pb2.DeleteTransactionRequest(transaction=self._begun))

    def _noted(self) -> Any | None:
        """The reply to a call that the server has noted beside those added here: a commit, empty for most calls."""
        request = transaction_pb2.InspectTransactionRequest(transaction=self._begun)
        replies = self._stub.InspectTransaction(request).responses
        return replies[self._size].commit if len(replies) > self._size else None

    def _is_finished(self) -> bool | None:
        request = transaction_pb2.InspectTransactionRequest(transaction=self._begun)
        try:
            self._stub.InspectTransaction(request)
        except grpc.RpcError as error:
            return error.code() == grpc.StatusCode.NOT_FOUND or None
        return None


@contextmanager
def transaction(connection: Connection) -> Iterator[OpenTransaction]:
    """A transaction that ends with the `with` statement: all its calls take effect, or none if one of them fails."""
    begun = OpenTransaction(connection, transaction_pb2_grpc.APIStub(connection.client._channel))
    try:
        yield begun
        begun.finish()
    except BaseException:
        begun.delete()
        raise
