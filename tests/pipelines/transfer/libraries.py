"""Small libraries for the tests of moving: commits, and a pipeline without a backbone."""

from pipelines.client.repository import DeleteFile, FileEdit, PutFile, Repository
from pipelines.client.server.connection import Connection
from tests.pipelines.stand_ins import deploy_specs, shell_spec

COPY = r"""
pfs="${LOCALPACHD_PFS:-/pfs}"
for file in "$images"; do tr a-z A-Z < "$file" > "$pfs/out/$(basename "$file")"; done
echo "$MOOD" > "$pfs/out/mood-$(basename "$images")"
"""


def shouting(connection: Connection, mood: str = "calm") -> None:
    """Deploys a pipeline that writes every picture in capitals, and its mood."""
    document = shell_spec("shout", "images", COPY)
    document["transform"]["env"] = {"MOOD": mood}
    deploy_specs(connection, document)


def put(connection: Connection, repo: str, **files: str | None) -> str:
    """Makes one commit: files by name; None removes one."""
    changes: list[FileEdit] = [
        DeleteFile(f"/{name}") if content is None else PutFile(f"/{name}", content.encode())
        for name, content in files.items()
    ]
    return Repository(connection, repo).write(changes)
