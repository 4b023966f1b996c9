"""The server's own dump for a report of a bug, saved as a file."""

from collections.abc import Callable
from pathlib import Path

from python_pachyderm.proto.v2.debug import debug_pb2, debug_pb2_grpc

from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError


def save(connection: Connection, to: Path, progress: Callable[[str, int, int], None]) -> None:
    """Writes everything that the server offers for a report into a new .tgz file. `progress` is called with a part of
    the dump, its steps that are done, and their number. Raises LookalikeError if the file exists."""
    stub = debug_pb2_grpc.DebugStub(connection.client._channel)
    request = stub.GetDumpV2Template(debug_pb2.GetDumpV2TemplateRequest()).request
    draft = to.with_name(f".{to.name}.part")
    if to.exists():
        raise LookalikeError(f"{to} exists already: name another file, or remove it")
    try:
        with draft.open("wb") as file:
            for chunk in stub.DumpV2(request):
                if chunk.HasField("progress"):
                    progress(chunk.progress.task, chunk.progress.progress, chunk.progress.total)
                file.write(chunk.content.content)
        draft.rename(to)
    finally:
        draft.unlink(missing_ok=True)
