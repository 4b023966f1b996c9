"""`lookalike status` as people type it while jobs run and wait."""

import json
from pathlib import Path

from pipelines.client.connection import Connection
from pipelines.client.deployment import deploy
from pipelines.client.jobs import Job, Jobs
from pipelines.specifications import reading
from tests.command import Command

GATED = r"""
case "$images" in *bad*) echo "cannot take it" >&2; exit 3;; esac
while [ ! -e {gate} ]; do sleep 0.05; done
"""


def gated(connection: Connection, directory: Path) -> Path:
    """A `preprocess` whose datums are busy until the returned file is there; those called bad fail."""
    gate = directory / "gate"
    document = {
        "pipeline": {"name": "preprocess"},
        "input": {"pfs": {"name": "images", "repo": "images", "branch": "master", "glob": "/*"}},
        "transform": {"cmd": ["sh"], "stdin": GATED.format(gate=gate).splitlines()},
        "datum_set_spec": {"number": 1},
        "datum_tries": 1,
    }
    (directory / "preprocess.json").write_text(json.dumps(document))
    deploy(connection, [reading.read(directory / "preprocess.json")])
    return gate


def queue(connection: Connection) -> list[Job]:
    return Jobs(connection).queue("preprocess")[::-1]


def test_the_running_job_is_shown_besides_the_newest(as_user: Connection, command: Command, tmp_path: Path) -> None:
    gate = gated(as_user, tmp_path)
    client, project = as_user.client, as_user.project
    with client.commit("images", "master", project_name=project) as commit:
        for name in ("/bad", "/good"):
            client.put_file_bytes(commit, name, name.encode())
    with client.commit("images", "master", project_name=project) as newest:
        client.put_file_bytes(newest, "/newer", b"newer")
    while not (
        queue(as_user)[0].failed and any(each.paths for each in Jobs(as_user).with_workers(queue(as_user)[0]).busy)
    ):
        pass
    said = command.says("status")
    rows = [line.split() for line in said.splitlines()]
    row = next(number for number, words in enumerate(rows) if words[:1] == ["preprocess"])
    assert rows[row][1:6] == ["running", "running", "0", "0", "1"]
    assert rows[row + 1][:4] == ["created", "0", "0", "0"]
    assert (
        f"preprocess: commit {newest.id[:12]} waits behind commit {commit.id[:12]} (running, 1 of 2 datums done)"
        in said
    )
    assert "preprocess is at work: /good for " in said
    assert "preprocess failed on /bad: " in said
    gate.touch()
    Jobs(as_user).watch([newest.id], lambda jobs, infos: None)
    assert "waits behind" not in command.says("status")
