"""Small libraries for the tests of moving: commits, and a pipeline without a backbone."""

import json
from pathlib import Path

from pipelines.client.deployment.deployment import deploy
from pipelines.client.repository import DeleteFile, FileEdit, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.specifications import pipeline_specs

COPY = r"""
pfs="${LOCALPACHD_PFS:-/pfs}"
for file in "$images"; do tr a-z A-Z < "$file" > "$pfs/out/$(basename "$file")"; done
echo "$MOOD" > "$pfs/out/mood-$(basename "$images")"
"""


def shouting(connection: Connection, directory: Path, mood: str = "calm") -> None:
    """Deploys a pipeline that writes every picture in capitals, and its mood."""
    document = {
        "pipeline": {"name": "shout"},
        "input": {"pfs": {"name": "images", "repo": "images", "branch": "master", "glob": "/*"}},
        "transform": {"image": "shell:1", "cmd": ["sh", "-e"], "stdin": COPY.splitlines(), "env": {"MOOD": mood}},
    }
    path = directory / "shout.json"
    path.write_text(json.dumps(document))
    deploy(connection, [pipeline_specs.read(path)])


def put(connection: Connection, repo: str, **files: str | None) -> str:
    """Makes one commit: files by name; None removes one."""
    changes: list[FileEdit] = [
        DeleteFile(f"/{name}") if content is None else PutFile(f"/{name}", content.encode())
        for name, content in files.items()
    ]
    return Repository(connection, repo).write(changes)
