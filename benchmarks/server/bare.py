"""Servers that only answer, for the lower bounds: the cost of gRPC and the messages alone.

python -m benchmarks.server.bare put              ModifyFile: reads every message undecoded and drops it
python -m benchmarks.server.bare list FILE        ListFile: encodes and sends the messages of a file that `keep` wrote
python -m benchmarks.server.bare sent FILE        ListFile: sends the same messages, already encoded
python -m benchmarks.server.bare lines FILE       GetLogs: sends messages of such a file, already encoded
python -m benchmarks.server.bare next N DIR       NextDatum: the same datum N times, in a directory in place of /pfs
"""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.worker import worker_pb2

_LENGTH = 4


def keep(path: Path, messages: Sequence[bytes]) -> None:
    """Writes encoded messages for `list`, `sent` and `lines`."""
    with path.open("wb") as file:
        for message in messages:
            file.write(len(message).to_bytes(_LENGTH, "big") + message)


def _kept(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while head := file.read(_LENGTH):
            yield file.read(int.from_bytes(head, "big"))


def _put() -> tuple[str, str, Any]:
    def forget(requests: Iterator[bytes], context: Any) -> bytes:
        for _ in requests:
            pass
        return b""

    return "pfs_v2.API", "ModifyFile", grpc.stream_unary_rpc_method_handler(forget)


def _list(file: str) -> tuple[str, str, Any]:
    message = pfs_pb2.FileInfo()
    varying = []
    for data in _kept(Path(file)):
        message.ParseFromString(data)
        varying.append((message.file.path, message.size_bytes, message.hash))

    def answer(request: bytes, context: Any) -> Iterator[Any]:
        for path, size, digest in varying:
            message.file.path, message.size_bytes, message.hash = path, size, digest
            yield message

    encode: Callable[[Any], bytes] = pfs_pb2.FileInfo.SerializeToString
    return "pfs_v2.API", "ListFile", grpc.unary_stream_rpc_method_handler(answer, response_serializer=encode)


def _sent(file: str) -> tuple[str, str, Any]:
    return "pfs_v2.API", "ListFile", _sending(file)


def _lines(file: str) -> tuple[str, str, Any]:
    return "pps_v2.API", "GetLogs", _sending(file)


def _sending(file: str) -> Any:
    messages = list(_kept(Path(file)))

    def answer(request: bytes, context: Any) -> Iterator[bytes]:
        yield from messages

    return grpc.unary_stream_rpc_method_handler(answer)


def _next(count: str, directory: str) -> tuple[str, str, Any]:
    (datum,) = (Path(directory) / "in").iterdir()
    reply = worker_pb2.NextDatumResponse(env=[f"in={datum}", "in_COMMIT=0", "PACH_DATUM_ID=0"])
    left = int(count)

    def answer(request: Any, context: Any) -> Any:
        nonlocal left
        if left == 0:
            context.abort(grpc.StatusCode.UNAVAILABLE, "no more datums")
        left -= 1
        return reply

    decode, encode = worker_pb2.NextDatumRequest.FromString, worker_pb2.NextDatumResponse.SerializeToString
    return "pachyderm.worker.Worker", "NextDatum", grpc.unary_unary_rpc_method_handler(answer, decode, encode)


_SERVICES: dict[str, Callable[..., tuple[str, str, Any]]] = {
    "put": _put, "list": _list, "sent": _sent, "lines": _lines, "next": _next
}  # fmt: skip


def main(kind: str, *arguments: str) -> None:
    """Serves one call on a free port, which it prints, until it is killed."""
    service, method, handler = _SERVICES[kind](*arguments)
    server = grpc.server(ThreadPoolExecutor(max_workers=4), options=(("grpc.max_receive_message_length", 20 << 20),))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"bare {kind}: listening on grpc://127.0.0.1:{port}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
