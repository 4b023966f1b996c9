"""Workplaces in containers: images, users, limits. All that they share with processes is tested with both."""

from __future__ import annotations

import os
import subprocess
import uuid
from pathlib import Path

import pytest

from localpachd.worker.docker import container, container_workplaces
from localpachd.worker.docker.container_engine import EngineError
from localpachd.worker.secret_store import Secret
from localpachd.worker.tasks import SecretUse, Task
from tests import containers
from tests.localpachd.worker.bench import Bench

in_containers = pytest.mark.docker
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run commands as another user")


@in_containers
def test_commands_see_the_files_and_variables_of_the_image(contained: Bench) -> None:
    script = 'cat /etc/of-the-image; pwd; echo "$FROM_IMAGE $MINE ${HOME:+home}"; ls -d /pfs'
    assert contained.one(contained.sh(script, env={"MINE": "1"})).state == "PROCESSED"
    assert contained.said() == ["made for a test", "/work", "yes 1 home", "/pfs"]


@in_containers
def test_a_variable_of_the_pipeline_replaces_one_of_the_image(contained: Bench) -> None:
    contained.one(contained.sh('echo "$FROM_IMAGE"', env={"FROM_IMAGE": "no"}))
    assert contained.said() == ["no"]


@in_containers
def test_an_entrypoint_takes_no_part(contained: Bench) -> None:
    assert contained.one(Task(("true",), tries=1)).state == "PROCESSED"  # the image's would fail
    result = contained.one(Task((), tries=1))
    assert result.reason == "invalid pipeline transform, no command specified"


@in_containers
def test_an_image_without_a_shell(contained: Bench, tmp_path: Path) -> None:
    """Its only program is the pause binary, which does nothing, so the test sees only that it is started."""
    container.write_pause_binary(tmp_path / "pause", os.uname().machine)
    name = f"localpachd-test-bare:{uuid.uuid4().hex[:8]}"
    made = subprocess.run(["tar", "-C", str(tmp_path), "-c", "pause"], capture_output=True, check=True).stdout
    containers.load(name, made, [])
    try:
        result = contained.one(Task(("/pause",), image=name, tries=1, datum_timeout=1.0))
        assert "datum_timeout" in result.reason
        gone = contained.one(Task(("/bin/sh",), image=name, tries=1))
        assert gone.reason == "fork/exec /bin/sh: no such file or directory"
    finally:
        containers.unload(name)


@in_containers
def test_files_left_outside_of_pfs_stay_for_the_set(contained: Bench) -> None:
    task = contained.sh("cat /tmp/count 2> /dev/null; echo $N >> /tmp/count", err_cmd=("cat", "/tmp/count"))
    contained.run(task, contained.datum(N="0"), contained.datum(N="1"))
    contained.run(task, contained.datum(N="2"))
    assert contained.said() == ["0"]
    contained.lines.clear()
    failing = contained.sh("echo why > /tmp/reason; exit 1", err_cmd=("cat", "/tmp/reason"))
    assert contained.one(failing).state == "RECOVERED"
    assert contained.said() == ["why"]


@in_containers
def test_links_out_of_pfs_lead_into_the_image(contained: Bench) -> None:
    mine = Path("/etc/of-the-image")
    assert not mine.exists(), "this machine must not have it, or the test shows nothing"
    script = (
        "mkdir -p /data/sub; cd /data; echo f > f; echo g > sub/g; ln -s f chain; ln -s /data/chain again;"
        "ln -s /pfs/in/d/a /data/back; ln /data/f /data/hard; cd /pfs/out; ln -s /data dir; ln -s /data/again file;"
        "ln -s /etc/of-the-image text"
    )
    result = contained.one(contained.sh(script), contained.input("in", "/d/", {"/d/a": b"input"}))
    assert contained.output(result) == {
        "/dir/again": b"f\n", "/dir/back": b"input", "/dir/chain": b"f\n", "/dir/f": b"f\n", "/dir/hard": b"f\n",
        "/dir/sub/g": b"g\n", "/file": b"f\n", "/text": b"made for a test\n",
    }, result  # fmt: skip


@in_containers
def test_files_of_this_machine_are_not_uploaded(contained: Bench, tmp_path: Path) -> None:
    secret = tmp_path / "of-this-machine"
    secret.write_text("not for containers")
    result = contained.one(contained.sh(f"ln -s {secret} /pfs/out/stolen"))
    assert result.state == "FAILED"
    assert f"No such file or directory: {secret}" in result.reason


@in_containers
@as_root
def test_a_command_runs_as_transform_user_of_the_image(contained: Bench) -> None:
    script = "id -u; id -g; cat $in; rm $in; echo x > /pfs/out/f; touch /pfs/mine"
    given = contained.input("in", "/f", {"/f": b"given\n"})
    for user, ids in (("daemon", ["1", "1"]), ("1", ["1", "1"]), ("nobody:staff", ["65534", "50"])):
        result = contained.one(contained.sh(script, user=user), given)
        assert (result.state, contained.said()) == ("PROCESSED", [*ids, "given"])
        contained.lines.clear()
    for unknown in ("nobody-of-this-name", "4711", "daemon:no-such-group"):
        assert "not found in the image" in contained.one(contained.sh("true", user=unknown)).reason


@in_containers
@as_root
def test_a_command_runs_as_the_images_own_user(contained: Bench) -> None:
    name = f"localpachd-test-user:{uuid.uuid4().hex[:8]}"
    recipe = f"FROM {containers.image()}\nUSER daemon\n"
    subprocess.run(["docker", "build", "-q", "-t", name, "-"], input=recipe.encode(), check=True, capture_output=True)
    try:
        task = contained.sh("id -u; echo x > /pfs/out/f; cat < $in", image=name)
        lazy = contained.input("in", "/f", {"/f": b"given\n"}, lazy=True)
        assert contained.one(task, lazy).state == "PROCESSED"
        assert contained.said() == ["1", "given"]
    finally:
        containers.unload(name)


@in_containers
@as_root
def test_secrets_are_mounted_for_the_user_and_nobody_can_write_them(contained: Bench) -> None:
    contained.secrets.create(Secret("s", "Opaque", 7, {"word": b"sesame"}))
    use = SecretUse("s", key="word", env_var="WORD", mount_path="/var/made/deep")
    script = "cat /var/made/deep/word; echo; echo $WORD; stat -c '%u %a' /var/made/deep; touch /var/made/deep/x 2>&1; :"
    assert contained.one(contained.sh(script, user="daemon", secrets=(use,))).state == "PROCESSED"
    assert contained.said()[:3] == ["sesame", "sesame", "1 700"]
    assert any("Read-only" in line for line in contained.said())


@in_containers
def test_a_file_is_no_place_for_a_secret(contained: Bench) -> None:
    contained.secrets.create(Secret("s", "Opaque", 7, {"word": b"sesame"}))
    result = contained.one(contained.sh("true", secrets=(SecretUse("s", mount_path="/etc/of-the-image"),)))
    assert result.state == "FAILED"
    assert result.reason.startswith("cannot start a container: ")


@in_containers
def test_limits_of_memory_hold(contained: Bench) -> None:
    script = "x = bytearray(200 << 20); print('had it')"
    task = Task(("python3", "-c", script), tries=1, memory=64 << 20)
    result = contained.one(task)
    assert (result.state, result.reason) == ("FAILED", "signal: killed")
    assert contained.one(Task(("true",), tries=1, memory=64 << 20, cpus=0.5)).state == "PROCESSED"


def test_leased_gpus_are_given_to_the_container_and_no_others(tmp_path: Path) -> None:
    task = Task(("true",), image="any")
    none = container_workplaces._body(task, (), tmp_path, {}, "host")
    assert "DeviceRequests" not in none["HostConfig"] and none["Env"] == ["NVIDIA_VISIBLE_DEVICES=void"]
    two = container_workplaces._body(task, ("1", "3"), tmp_path, {}, "host")
    assert two["HostConfig"]["DeviceRequests"] == [{"DeviceIDs": ["1", "3"], "Capabilities": [["gpu"]]}]


@in_containers
def test_an_image_that_vanishes_is_the_machines_trouble_not_the_datums(contained: Bench) -> None:
    with pytest.raises(EngineError, match="(?i)no such image"):
        contained.run(contained.sh("true", image="localpachd-test-gone:1"), contained.datum())
    assert contained.results == []
