"""The server's own dump for a report of a bug, saved as a file without the secrets of the server and its users."""

import io
import json
import re
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from python_pachyderm.proto.v2.debug import debug_pb2, debug_pb2_grpc

from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from speclang.redaction import SecretRedaction, secret_values

LEFT_OUT = "left-out.txt"
"""The file of a saved dump that names those that were left out."""

_SECRET = re.compile(
    # Of pachd's tables (src/server/debug/server/database_dump.go) only those of data may go: others hold the hashes of
    # tokens, the configuration of logins, the licence, and specifications in a form in which nothing can be hidden.
    r"/?database/tables/(?!pfs/|storage/(?!keys\.))"
    # A Helm release has the values of its installation, passwords among them.
    r"|/?helm/.*(?<!/metadata\.json)$"
)
_ANYTHING = re.compile(r"\S")
_SPECIFICATIONS = ("/spec.json", "/cluster-defaults.json")


def save(connection: Connection, to: Path, progress: Callable[[str, int, int], None]) -> int:
    """Writes everything that the server offers for a report into a new .tgz file, without files that hold secrets, and
    with secret values hidden in all texts; returns the number of files that were left out. `progress` is called with a
    part of the dump, its steps that are done, and their number. Raises LookalikeError if the file exists
    or the dump is damaged."""
    stub = debug_pb2_grpc.DebugStub(connection.client._channel)
    request = stub.GetDumpV2Template(debug_pb2.GetDumpV2TemplateRequest()).request
    draft = to.with_name(f".{to.name}.part")
    if to.exists():
        raise LookalikeError(f"{to} exists already: name another file, or remove it")
    token = (connection.client.auth_token or "").encode()
    try:
        with tempfile.TemporaryFile(dir=to.parent) as whole:  # nobody else can read it
            for chunk in stub.DumpV2(request):
                if chunk.HasField("progress"):
                    progress(chunk.progress.task, chunk.progress.progress, chunk.progress.total)
                whole.write(chunk.content.content)
            left_out = _copy(whole, draft, SecretRedaction([token, *_secrets(whole)]))
        draft.rename(to)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise LookalikeError(f"the server's dump is damaged, so nothing was kept of it: {error}") from error
    finally:
        draft.unlink(missing_ok=True)
    return left_out


def _files(dump: IO[bytes]) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    dump.seek(0)
    with tarfile.open(fileobj=dump, mode="r:gz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                yield member, content.read()


def _secrets(dump: IO[bytes]) -> Iterator[bytes]:
    """The secret values in specifications, such as variables that are called PASSWORD."""
    for member, content in _files(dump):
        if member.name.endswith(_SPECIFICATIONS):
            for document in _documents(content.decode(errors="replace")):
                yield from (value.encode() for value in secret_values(document))


def _documents(text: str) -> Iterator[object]:
    """The JSON values of a text, one after the other."""
    decoder, at = json.JSONDecoder(), 0
    while found := _ANYTHING.search(text, at):
        try:
            document, at = decoder.raw_decode(text, found.start())
        except ValueError:  # the end was cut off
            return
        yield document


def _copy(dump: IO[bytes], to: Path, hide: SecretRedaction) -> int:
    left_out: list[str] = []
    with tarfile.open(to, "w:gz") as archive:
        for member, content in _files(dump):
            if _SECRET.match(member.name):
                left_out.append(member.name)
                continue
            _add(archive, member, _hidden(content, hide))
        if left_out:
            lines = "".join(f"{name}\n" for name in ("These files may hold secrets and were left out:", *left_out))
            _add(archive, tarfile.TarInfo(LEFT_OUT), lines.encode())
    return len(left_out)


def _hidden(content: bytes, hide: SecretRedaction) -> bytes:
    try:
        return hide(content.decode()).encode()
    except UnicodeDecodeError:  # a profile or a program
        return content


def _add(archive: tarfile.TarFile, member: tarfile.TarInfo, content: bytes) -> None:
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
