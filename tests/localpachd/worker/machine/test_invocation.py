"""Commands that run as another user, a server that is not root, and the variables of user code."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from localpachd.worker.environment import EnvironmentProblem
from localpachd.worker.machine import invocation
from localpachd.worker.tasks import Task
from tests.example_counts import examples
from tests.localpachd.nobody_user import NOBODY, obstacle
from tests.localpachd.worker.bench import Bench

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run commands as another user")


@as_root
def test_a_command_runs_as_transform_user(mounted_at_home: Bench) -> None:
    task = Task(
        ("sh", "-c", "id -un; cat $in; rm $in; echo x > /pfs/out/f; touch /pfs/mine; touch $TMPDIR/t here; pwd"),
        user="nobody",
        tries=1,
    )
    result = mounted_at_home.one(task, mounted_at_home.input("in", "/f", {"/f": b"given\n"}))
    assert (result.state, result.reason) == ("PROCESSED", "")
    assert mounted_at_home.said() == ["nobody", "given", "/pfs/.scratch/work"]
    assert mounted_at_home.output(result) == {"/f": b"x\n"}


@as_root
def test_lazy_files_of_another_user(mounted_at_home: Bench) -> None:
    task = Task(("sh", "-c", "cat $in > /pfs/out/f"), user="nobody", tries=1)
    result = mounted_at_home.one(task, mounted_at_home.input("in", "/f", {"/f": b"given\n"}, lazy=True))
    assert mounted_at_home.output(result) == {"/f": b"given\n"}


def test_users_and_groups_by_name_and_number() -> None:
    me = pwd.getpwuid(os.geteuid())
    assert invocation.user("") == invocation.MachineUser()
    assert invocation.user(me.pw_name) == invocation.MachineUser()
    assert invocation.user(str(me.pw_uid)) == invocation.MachineUser()
    for unknown in ("nobody-of-this-name", "987654", f"{me.pw_name}:no-such-group"):
        with pytest.raises(EnvironmentProblem, match="not found on this machine"):
            invocation.user(unknown)


@as_root
def test_a_group_of_ones_own() -> None:
    nobody = pwd.getpwnam("nobody")
    assert invocation.user("nobody").owner == (nobody.pw_uid, nobody.pw_gid)
    assert invocation.user(f"{nobody.pw_uid}:0").owner == (nobody.pw_uid, 0)


_UNPRIVILEGED = """
import os, sys
from pathlib import Path
root = Path(sys.argv[1])
from localpachd.database import Database
from localpachd.storage.chunk_store import ChunkStore
from localpachd.api.pps.loopback_servers import GrpcBatchServer
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.machine.machine_workplaces import MachineBackend
from localpachd.worker.local_runner import LocalRunner
from localpachd.worker.secret_store import SecretStore
from localpachd.worker.tasks import CancelToken, DatumWork, Task
from localpachd.worker.workplace import WorkerStores
os.setgroups([]); os.setgid(65534); os.setuid(65534)
chunks = ChunkStore(root / "chunks")
secrets = SecretStore(root / "secrets")
machine = MachineBackend(WorkerStores(Database(root / "db"), chunks, secrets), root / "scratch")
runner = LocalRunner(root / "scratch", GpuPool(), GrpcBatchServer(), machine)
def run(**how):
    results = []
    task = Task(("sh", "-c", 'echo $(id -u) > "${LOCALPACHD_PFS:-/pfs}/out/f"'), tries=1, **how)
    runner.run_set(task, [DatumWork("d", (), {})], results.append, print, CancelToken())
    return results[0]
done = run()
assert done.state == "PROCESSED", done
assert b"".join(chunks.read(done.output[0].content)) == b"65534\\n"
assert "must run as root" in run(user="root").reason
print("mounted" if machine.confinement.mounts else "plain")
"""


@as_root
def test_a_server_that_is_not_root() -> None:
    if obstacle():
        pytest.skip(obstacle())
    with tempfile.TemporaryDirectory() as root:  # other users may enter it, unlike pytest's own directories
        os.chown(root, NOBODY, NOBODY)
        asked = subprocess.run([sys.executable, "-c", _UNPRIVILEGED, root], capture_output=True, text=True)
        assert asked.returncode == 0, asked.stderr
        assert asked.stdout.splitlines()[-1] in ("mounted", "plain")
        assert [*Path(root, "scratch").iterdir()] == []


_TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"))
_NAMES = st.one_of(
    st.text(st.characters(exclude_characters="\0=", codec="utf-8"), min_size=1),
    st.sampled_from(["IFS", "PATH", "PWD", "ENV", "UID", "PPID", "OPTIND", "PS4", "_x", "a-b", "BASH_FUNC_x%%", "-n"]),
)
# The shell that sets the others sets or drops these.
_OF_SHELLS = {"PWD", "OLDPWD", "SHLVL", "_"}


def received(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that a command finds which gets these."""
    with invocation.carry_variables(env, ["/usr/bin/env", "-0"]) as (command, file):
        found = subprocess.run(
            command, env=invocation.tool_variables(), pass_fds=(file,), capture_output=True, check=True
        )
    pairs = (os.fsdecode(each).partition("=") for each in found.stdout.split(b"\0") if each)
    return {name: value for name, _, value in pairs}


@given(st.dictionaries(_NAMES, _TEXT, max_size=6))
@settings(max_examples=examples(60))
def test_all_variables_arrive(env: dict[str, str]) -> None:
    found = received(env)
    assert {name: found[name] for name in env} == env
    assert found.keys() - env.keys() <= _OF_SHELLS | invocation.tool_variables().keys()


def test_a_value_as_long_as_linux_allows() -> None:
    value = "it's " * 26_000
    assert received({"LONG": value})["LONG"] == value


def test_bytes_that_are_not_text() -> None:
    value = os.fsdecode(bytes(range(1, 256)))
    assert received({"BYTES": value})["BYTES"] == value


def test_no_value_is_an_argument() -> None:
    """All users of a machine can read arguments."""
    with invocation.carry_variables({"WORD": "open sesame"}, ["true"], ["WORD"]) as (command, _):
        assert not [each for each in command if "sesame" in each]


def test_a_secret_needs_a_name_that_shells_can_set() -> None:
    with (
        pytest.raises(EnvironmentProblem, match="the variable in-put cannot come from a secret on this"),
        invocation.carry_variables({"in-put": "x"}, ["true"], ["in-put"]),
    ):
        pass


def test_a_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="null byte"), invocation.carry_variables({"A": "a\0b"}, ["true"]):
        pass
