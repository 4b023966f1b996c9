"""The server's dump as a file."""

import io
import json
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from python_pachyderm.proto.v2.debug import debug_pb2, debug_pb2_grpc

from pipelines.client.server import debug_dump
from pipelines.client.server.connection import Connection, ServerTarget, connect
from pipelines.errors import LookalikeError
from tests.command import Command

pytestmark = pytest.mark.late_alone


def test_a_dump_is_one_new_file(as_user: Connection, command: Command) -> None:
    done = command.run("debug", "dump", "report.tgz")
    said = "wrote report.tgz: look through it before you send it"
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, said)
    with tarfile.open(command.directory / "report.tgz") as archive:
        assert "database/tables.json" in archive.getnames()
    again = command.run("debug", "dump", "report.tgz")
    assert (again.returncode, "exists already" in again.stderr) == (1, True)
    assert [path.name for path in command.directory.iterdir()] == ["report.tgz"]


SPECS = [{"details": {"transform": {"env": {"DB_PASSWORD": "hunter2-of-old", "K": "4"}}}},
         {"details": {"transform": {"env": {"MY_TOKEN": "hunter2-of-today"}}}}]  # fmt: skip
SECRETS = ("hunter2-", "c2VjcmV0", "key-of-the-caller")
CLUSTER = {
    "pipelines/default/p/spec.json": "".join(json.dumps(each, indent=1) for each in SPECS).encode(),
    "pipelines/default/p/pods/p-1/user/logs.txt": b'{"message": "connects with hunter2-of-old, K is visible"}\n',
    "pachd/pods/pachd-1/describe.txt": b"  MY_TOKEN:  hunter2-of-today\n  PG:  postgres://pach:hunter2-pg@db\n",
    "/pachd/pachd-1/pachd/version.txt": b"2.12.2",
    "pachd/pods/pachd-1/pachd/heap": b"\x1f\x8b\xff a profile",
    "database/row-counts.json": b"[]",
    "database/tables/pfs/commits.json": b'[{"commit_id": "of the data"}]',
    "database/tables/storage/chunk_objects.json": b"[]",
    "database/tables/storage/keys.json": b'[{"name": "default", "data": "c2VjcmV0"}]',
    "database/tables/auth/auth_tokens.json": b'[{"subject": "robot:r", "token_hash": "c2VjcmV0"}]',
    "database/tables/collections/pipelines.json": b'[{"proto": "c2VjcmV0"}]',
    "database/tables/license/clusters.json": b'[{"secret": "c2VjcmV0"}]',
    "database/tables/identity/config.json": b'[{"x": "c2VjcmV0"}]',
    "helm/sh.helm.release.v1.pach.v1/metadata.json": b'{"labels": {"version": "1"}}',
    "helm/sh.helm.release.v1.pach.v1/values.yaml": b"postgresqlPassword: hunter2-helm",
    "helm/sh.helm.release.v1.pach.v1/release.json": b'{"config": "hunter2-helm"}',
    "helm/sh.helm.release.v1.pach.v1/manifest.yaml": b"data: c2VjcmV0",
    "pachd/pods/pachd-1/pachd/logs.txt": b"a call with key-of-the-caller",
}
"""The files of a real server's dump, as src/server/debug/server/server.go and database_dump.go of Pachyderm 2.7.8 and
2.12 write them: every row of every table, and Helm's releases."""


class _ClusterDump(debug_pb2_grpc.DebugServicer):  # type: ignore[misc]  # it has no types
    """A server whose dump has these files."""

    def __init__(self, files: dict[str, bytes]) -> None:
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w:gz") as archive:
            for name, content in files.items():
                member = tarfile.TarInfo()
                member.name, member.size = name, len(content)
                archive.addfile(member, io.BytesIO(content))
        self.content = made.getvalue()

    def GetDumpV2Template(self, request: object, context: object) -> debug_pb2.GetDumpV2TemplateResponse:
        return debug_pb2.GetDumpV2TemplateResponse()

    def DumpV2(self, request: object, context: object) -> Iterator[debug_pb2.DumpChunk]:
        for at in range(0, len(self.content), 100):
            yield debug_pb2.DumpChunk(content=debug_pb2.DumpContent(content=self.content[at : at + 100]))


@pytest.fixture
def cluster() -> Iterator[tuple[_ClusterDump, Connection]]:
    dump = _ClusterDump(CLUSTER)
    with ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads)
        debug_pb2_grpc.add_DebugServicer_to_server(dump, server)
        address = f"grpc://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        yield dump, connect(ServerTarget(address, token="key-of-the-caller"))
        server.stop(None).wait()


def test_a_dump_of_a_cluster_is_saved_without_its_secrets(
    cluster: tuple[_ClusterDump, Connection], tmp_path: Path
) -> None:
    _, connection = cluster
    assert debug_dump.save(connection, tmp_path / "d.tgz", lambda part, done, total: None) == 8
    with tarfile.open(tmp_path / "d.tgz") as archive:
        found = {each.name.lstrip("/"): (archive.extractfile(each) or io.BytesIO()).read() for each in archive}
    whole = b"\n".join(found.values())
    assert not [secret for secret in SECRETS if secret.encode() in whole]
    left_out = found.pop(debug_dump.LEFT_OUT).decode().splitlines()[1:]
    assert {*found, *left_out} == {name.lstrip("/") for name in CLUSTER} and not found.keys() & {*left_out}
    assert {name.split("/")[2] for name in found if name.startswith("database/tables")} == {"pfs", "storage"}
    assert found["pipelines/default/p/pods/p-1/user/logs.txt"].endswith(b'(hidden), K is visible"}\n')
    assert found["pachd/pods/pachd-1/pachd/heap"] == CLUSTER["pachd/pods/pachd-1/pachd/heap"]


def test_a_dump_that_breaks_off_leaves_nothing(cluster: tuple[_ClusterDump, Connection], tmp_path: Path) -> None:
    dump, connection = cluster
    dump.content = dump.content[:-60]
    with pytest.raises(LookalikeError, match="the server's dump is damaged"):
        debug_dump.save(connection, tmp_path / "d.tgz", lambda part, done, total: None)
    assert not [*tmp_path.iterdir()]
