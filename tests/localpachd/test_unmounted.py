"""Workers on a machine that lets nobody mount anything, as most containers: a directory stands in for `/pfs`."""

import shutil
from pathlib import Path

from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import ServerTarget, connect
from tests.pipelines.stand_ins import deploy_specs, shell_spec
from tests.servers import StartPachd


def test_links_to_inputs_are_kept_as_elsewhere(start_pachd: StartPachd, tmp_path: Path) -> None:
    """Also though the directory lies in the server's root, whose other files belong to the server."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("cat", "ln", "sh"):
        (tools / name).symlink_to(str(shutil.which(name)))
    within = (str(shutil.which("env")), f"PATH={tools}")
    connection = connect(ServerTarget(start_pachd(tmp_path / "root", within=within).address))
    ways = {"whole": {}, "lazy": {"lazy": True}, "empty": {"empty_files": True}}
    script = 'cd "$LOCALPACHD_PFS/out"; ln -s "$files" linked; ln -s ../files below; ln -s "$LOCALPACHD_PFS/../.." all'
    for name, how in ways.items():
        spec = shell_spec(name, "files", script.partition('; ln -s "$LOCALPACHD')[0])
        spec["input"]["pfs"] |= how
        deploy_specs(connection, spec)
    deploy_specs(connection, shell_spec("outside", "files", script, datum_tries=1))
    commit = Repository(connection, "files").write([PutFile("/a", b"content")])
    ended = {job.pipeline: job.state for job in ProjectJobs(connection).watch([commit], lambda jobs, infos: None)}
    assert ended == {**dict.fromkeys(ways, "success"), "outside": "failure"}
    for name in ways:
        assert Repository(connection, name).contents() == {"linked": b"content", "below/a": b"content"}
