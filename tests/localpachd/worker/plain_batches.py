"""NextDatum without gRPC, whose import takes most of the time of a process that does nothing else: a server for tests
of what is done with the calls, and the client of its processes. `test_loopback_servers` has the real one."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from typing import Any

from localpachd.worker.tasks import Task

_CLIENT = """
import json, os, pathlib, socket, sys, time
pfs = pathlib.Path(os.environ.get("LOCALPACHD_PFS", "/pfs"))
def next_datum(error=""):
    port = int(os.environ["PPS_WORKER_GRPC_PORT"])
    with socket.create_connection(("127.0.0.1", port)) as call, call.makefile("rw") as stream:
        print(json.dumps(error), file=stream, flush=True)
        return dict(entry.split("=", 1) for entry in json.loads(stream.readline()))
"""


def batched(body: str, **more: Any) -> Task:
    """A task of one attempt that runs a Python program with a function `next_datum`."""
    return Task(("python3", "-c", _CLIENT + body), batching=True, **{"tries": 1, **more})


class PlainBatches:
    """Implements `tasks.BatchServer`: a connection for each call, with a line of JSON each way."""

    def __init__(self) -> None:
        self._open: dict[int, socket.socket] = {}

    def open(self, handler: Callable[[str], list[str] | None]) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
        self._open[port] = listener
        threading.Thread(target=_accept, args=(listener, handler), daemon=True).start()
        return port

    def close(self, port: int) -> None:
        listener = self._open.pop(port)
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _accept(listener: socket.socket, handler: Callable[[str], list[str] | None]) -> None:
    with contextlib.suppress(OSError):  # closed
        while True:
            threading.Thread(target=_answer, args=(listener.accept()[0], handler), daemon=True).start()


def _answer(call: socket.socket, handler: Callable[[str], list[str] | None]) -> None:
    with contextlib.suppress(OSError, ValueError), call, call.makefile("rw") as stream:  # its process has ended
        print(json.dumps(handler(json.loads(stream.readline())) or []), file=stream, flush=True)
