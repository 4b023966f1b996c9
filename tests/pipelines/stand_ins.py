"""Pipelines of shell scripts, which stand in for lookalike's own, and their deployment."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.client.deployment.deployment import deploy
from pipelines.client.server.connection import Connection
from pipelines.specifications import drafts
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.pipeline_specs import PipelineSpec, ordered
from speclang.merge_patches import merge

RENDER = r"""
out="${LOCALPACHD_PFS:-/pfs}/out/$(basename "$queries")"
mkdir -p "$out"
find "$queries" -type f -exec cat {} + > "$out/neighbors.jsonl"
echo grid > "$out/grid.png"
echo page > "$out/index.html"
"""
"""Makes the sheet of a query, whose answers are its content, in place of the stages from queries to sheets."""


def wait_for(gate: Path) -> str:
    """A line that waits until a file is there."""
    return f'while [ ! -e "{gate}" ]; do sleep 0.05; done\n'


def shell_spec(name: str, repo: str, script: str = "true", glob: str = "/*", **fields: Any) -> dict[str, Any]:
    """The specification of a pipeline that runs a shell script up to the first command that fails, on each match of a
    glob in a repo, whose name the input has; with further or other fields."""
    return {
        "pipeline": {"name": name},
        "input": {"pfs": {"name": repo, "repo": repo, "branch": "master", "glob": glob}},
        "transform": {"image": "shell:1", "cmd": ["sh", "-e"], "stdin": script.splitlines()},
        **fields,
    }


def gpu_spec(name: str, gate: Path) -> dict[str, Any]:
    """A pipeline whose datums, files of the repo `in`, hold a GPU until the gate is there."""
    limits = {"gpu": {"type": "nvidia.com/gpu", "number": 1}}
    return shell_spec(name, "in", wait_for(gate), resource_limits=limits)


def copying_spec(name: str, repo: str) -> dict[str, Any]:
    """A specification that copies a repo, in place of one of lookalike's."""
    found = shell_spec(name, repo, "cp -r /pfs/in/. /pfs/out", resource_requests={"cpu": 1.0, "memory": "1Gi"})
    found["input"] = {"pfs": {"name": "in", "repo": repo, "glob": "/"}}
    found["transform"] |= {"image": "lookalike-cpu:0.1.0", "cmd": ["sh"], "env": {"LOOKALIKE_STAGE": f"{name}-1"}}
    return found


class SpecFiles:
    """Specifications in a directory, which is made."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(exist_ok=True)

    def write(self, document: Mapping[str, Any], **changes: Any) -> Path:
        document = {**document, **changes}
        path = self.directory / f"{document['pipeline']['name']}.json"
        path.write_text(json.dumps(document, indent=1))
        return path

    def change(self, name: str, patch: Mapping[str, Any]) -> None:
        """Writes another version of a specification."""
        self.write(merge(json.loads((self.directory / f"{name}.json").read_text()), patch))

    def draft(self, name: str = "p", **fields: Any) -> SpecDraft:
        """The draft of a pipeline with these fields."""
        transform = {"image": "shell:1", "cmd": ["sh"]}
        return drafts.read(self.write({"pipeline": {"name": name}, "transform": transform, **fields}))


def create_foreign(connection: Connection, document: dict[str, Any]) -> None:
    """Creates somebody else's pipeline, as any client does, beside those of lookalike."""
    request = PipelineSpec("", Path(), document).request()
    request.pipeline.project.name = connection.project
    connection.client.create_pipeline_from_request(request)


def deploy_specs(connection: Connection, *documents: dict[str, Any]) -> None:
    """Deploys pipelines by their specifications as JSON."""
    found = ((each["pipeline"]["name"], each) for each in documents)
    deploy(connection, ordered(PipelineSpec(name, Path(f"{name}.json"), each) for name, each in found))
