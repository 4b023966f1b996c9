"""Trivial user code: a batched program that copies each datum's one file to the output."""

import os
from pathlib import Path

import grpc
from python_pachyderm.proto.v2.worker.worker_pb2 import NextDatumRequest
from python_pachyderm.proto.v2.worker.worker_pb2_grpc import WorkerStub


def main() -> None:
    """Asks for datums until there are none left."""
    root = Path(os.environ.get("LOCALPACHD_PFS", "/pfs"))
    with grpc.insecure_channel(f"127.0.0.1:{os.environ['PPS_WORKER_GRPC_PORT']}") as channel:
        stub = WorkerStub(channel)
        while True:
            try:
                reply = stub.NextDatum(NextDatumRequest(), wait_for_ready=True)
            except grpc.RpcError:
                return
            source = Path(dict(each.split("=", 1) for each in reply.env)["in"])
            (root / "out" / source.name).write_bytes(source.read_bytes())


if __name__ == "__main__":
    main()
