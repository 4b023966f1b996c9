"""The part of the machine and of its server that user code of pipelines sees: a hostile pipeline looks around.

The server runs as root, if the tests do, and as a user without any rights.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pps import pps_pb2

from localpachd.worker.machine import machine_view
from tests import servers
from tests.localpachd.nobody_user import AS_NOBODY, NOBODY, obstacle
from tests.localpachd.worker.bench import BEST
from tests.servers import Localpachd

pytestmark = pytest.mark.skipif(not BEST.mounts, reason="/pfs cannot be mounted here")

WORD, KEY = "open sesame, said the secret", "the key of a bucket"
_OF_ROOT = {"chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "net_bind_service"}
_NUMBERS = {"chown": 0, "dac_override": 1, "fowner": 3, "fsetid": 4, "kill": 5, "setgid": 6, "setuid": 7,
            "net_bind_service": 10}  # fmt: skip


@dataclass
class House:
    """A server with a secret of its own, and the directory around its root."""

    server: Localpachd
    root: Path
    client: Client
    is_root: bool
    count: int = 0

    def run(
        self, *script: str, repo: str = "in", glob: str = "/", **transform: Any
    ) -> tuple[pps_pb2.JobInfo, list[str]]:
        """The job of a pipeline with this script, and what it printed."""
        self.count += 1
        name = f"p{self.count}"
        self.client.create_pipeline(
            name,
            transform=pps_pb2.Transform(cmd=["sh"], stdin=list(script), **transform),
            input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo=repo, glob=glob)),
            datum_tries=1,
        )
        newest = next(iter(self.client.list_job(pipeline_name=name))).job.id
        (job,) = self.client.inspect_job(newest, pipeline_name=name, wait=True)
        lines = [each.message.rstrip("\n") for each in self.client.get_pipeline_logs(name) if each.user]
        return job, lines

    def said(self, *script: str, **transform: Any) -> list[str]:
        """The lines that a script printed, which has to succeed."""
        job, lines = self.run(*script, **transform)
        assert job.state == pps_pb2.JOB_SUCCESS, (job.reason, lines)
        return lines


def kinds() -> list[str]:
    return ["root", "nobody"] if os.geteuid() == 0 else ["user"]


@pytest.fixture(scope="module", params=kinds())
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    """Pytest's own directories are closed to others, and so not used here."""
    with tempfile.TemporaryDirectory() as around, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
        patch.setenv("PASSED_ON", "passed")
        within: tuple[str, ...] = servers.AS_PROGRAM  # whose variables and those of its process are the same
        if request.param == "nobody":
            if obstacle():
                pytest.skip(obstacle())
            os.chown(around, NOBODY, NOBODY)
            within = AS_NOBODY
        server = servers.start(Path(around) / "root", "--pass-env", "PASSED_ON", within=within)
        client = server.client()
        client.create_secret("kept", {"word": WORD})
        client.create_repo("in")
        client.put_file_bytes(("in", "master"), "/f", b"content of a chunk")
        yield House(server, Path(around) / "root", client, request.param == "root")
        server.stop()


def test_it_has_no_variable_of_the_server_but_those_that_programs_need(house: House) -> None:
    lines = house.said("env | cut -d = -f 1; echo $PASSED_ON; cat /proc/*/environ | tr '\\0' '\\n'")
    assert "PATH" in lines
    assert "HOME" in lines
    assert "passed" in lines
    assert not [line for line in lines if "AWS" in line or KEY in line]


def test_it_sees_no_file_of_the_server(house: House) -> None:
    """Neither secrets, chunks and database, nor the /pfs of other workers."""
    assert (house.root / "secrets" / "kept.json").exists()
    lines = house.said(f"find {house.root} | sort; cat {house.root}/pachd.sqlite {house.root}/secrets/* 2>&1; true")
    assert lines[0] == str(house.root)
    assert len([line for line in lines if line.startswith(str(house.root))]) == 1
    assert len([line for line in lines if "No such file" in line]) == 2


def test_it_cannot_bring_them_back(house: House) -> None:
    lines = house.said(
        f"umount {house.root} 2>&1; umount -l {house.root} 2>&1; mount -t tmpfs none /mnt 2>&1",
        "mount --bind / /mnt 2>&1; mknod /tmp/device b 254 0 2>&1; chroot / true 2>&1",
        f"nsenter -t 1 -m ls {house.root} 2>&1; ls /proc/1/root 2>&1; cat /proc/1/environ 2>&1; ls {house.root}",
    )
    assert not [line for line in lines if "secrets" in line or "chunks" in line]
    assert len(lines) >= 7, lines


def test_it_has_no_capability_that_it_does_not_need(house: House) -> None:
    (line,) = house.said("grep -E 'CapEff|CapBnd|CapPrm|NoNewPrivs' /proc/self/status | paste -s -d ' '")
    found = dict(re.findall(r"(\w+):\s+(\w+)", line))
    wanted = sum(1 << _NUMBERS[each] for each in _OF_ROOT) if house.is_root else 0
    assert {name: int(value, 16) for name, value in found.items()} == {
        "CapEff": wanted, "CapPrm": wanted, "CapBnd": wanted, "NoNewPrivs": 1,
    }  # fmt: skip


def test_no_variable_changes_the_programs_that_prepare_it(house: House) -> None:
    """They have the rights that it lacks: others in their place, or other libraries in them, would see all."""
    around = house.root.parent
    programs = around / "programs"
    programs.mkdir()
    for name in ("sh", "mount", "umount", "pivot_root", "setpriv", "unshare", "env"):
        (programs / name).write_text(f"#!/bin/bash\n/usr/bin/cat {house.root}/secrets/* >> {around}/seen\n")
        (programs / name).chmod(0o755)
    house.run("/usr/bin/true", env={"PATH": f"{programs}:/usr/bin:/bin"})
    assert (around / "seen").read_text() == ""  # by the command alone, which is one of these programs
    # The loader of each program that has these variables writes a file.
    house.run("/usr/bin/true", env={"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": f"{around}/loader"})
    said = "".join(each.read_text() for each in around.glob("loader.*"))
    assert {Path(each).name for each in re.findall(r"initialize program: (\S+)", said)} == {"sh", "true"}


def test_an_ordinary_path_is_enough(house: House) -> None:
    """Though mount(8) and pivot_root(8) are not on it."""
    assert house.said("/usr/bin/echo works", env={"PATH": "/usr/bin:/bin"}) == ["works"]


def test_it_sees_code_that_is_installed_from_a_directory_below_tmp(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as checkout:
        monkeypatch.setattr(machine_view, "_INSTALLED", Path(checkout))
        assert any(machine_view.holds(each, Path(checkout)) for each in machine_view.view(()).kept)


def test_its_tmp_is_its_own(house: House) -> None:
    name = f"/tmp/{house.root.parent.name}-left"
    assert house.said(f"touch {name}; ls {name}") == [name]
    assert not Path(name).exists()
    assert house.said(f"ls /tmp | grep -c left; stat -c %a /tmp; touch {name}") == ["0", "1777"]


def test_a_link_to_a_file_that_it_does_not_see_gives_nothing(house: House) -> None:
    """The server sees it, and reads what links in /pfs/out lead to."""
    root = house.root
    seen = [root / "secrets" / "kept.json", root / "pachd.sqlite", root, root.parent]
    targets = [*map(str, seen), "/proc/self/environ", f"/proc/{house.server.process.pid}/environ"]
    house.client.create_repo("targets")
    with house.client.modify_file_client(("targets", "master")) as files:
        for number, target in enumerate(targets):
            files.put_file_from_bytes(f"/{number}", target.encode())
    to_target = 'ln -sfn "$(cat /pfs/targets/*)"'
    for script in (f"{to_target} /pfs/out/link", f"{to_target} /tmp/link; ln -s /tmp/link /pfs/out/link"):
        job, lines = house.run(script, repo="targets", glob="/*")
        assert job.state == pps_pb2.JOB_FAILURE
        states = [each.state for each in house.client.list_datum(job.job.pipeline.name, job.job.id)]
        assert states == [pps_pb2.FAILED] * len(targets), lines


def test_a_link_into_its_tmp_is_followed_there(house: House) -> None:
    job, _ = house.run(
        "echo mine > /tmp/f; ln -s /tmp/f /pfs/out/f; mkdir /tmp/d; cp /tmp/f /tmp/d; ln -s /tmp/d /pfs/out"
    )
    assert job.state == pps_pb2.JOB_SUCCESS, job.reason
    for path in ("/f", "/d/f"):
        assert house.client.get_file((job.job.pipeline.name, "master"), path).read() == b"mine\n"


def test_secrets_are_mounted_in_its_tmp_too(house: House) -> None:
    given = pps_pb2.SecretMount(name="kept", mount_path="/tmp/kept secrets")
    assert house.said("cat '/tmp/kept secrets/word'", secrets=[given]) == [WORD]
    given = pps_pb2.SecretMount(name="kept", mount_path="/kept")
    assert house.said(f"cat /kept/word; ls {house.root}", secrets=[given]) == [WORD]


def test_another_user_cannot_link_to_what_only_root_may_read(house: House) -> None:
    if not house.is_root:
        pytest.skip("only root can run commands as another user")
    job, lines = house.run("id -un; echo $HOME; cat /etc/shadow; ln -s /etc/shadow /pfs/out/f", user="nobody")
    assert (job.state, lines[0]) == (pps_pb2.JOB_FAILURE, "nobody")
    assert Path(lines[1]) != Path.home()
    job, _ = house.run("ln -s /etc/hostname /pfs/out/f", user="nobody")
    assert job.state == pps_pb2.JOB_SUCCESS, job.reason


def test_a_server_that_is_root_may_run_all_as_another_user() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can run commands as another user")
    with tempfile.TemporaryDirectory() as around:
        Path(around).chmod(0o755)
        server = servers.start(Path(around) / "root", "--run-as", "nobody")
        house = House(server, Path(around) / "root", server.client(), False)
        house.client.create_repo("in")
        house.client.put_file_bytes(("in", "master"), "/f", b"x")
        assert house.said("id -un; cat /pfs/in/f > /pfs/out/f; grep CapBnd /proc/self/status | cut -f 2") == [
            "nobody", "0" * 16,
        ]  # fmt: skip
        assert house.said("id -un", user="root") == ["root"]
        server.stop()


@pytest.mark.parametrize("user", ["nobody-of-this-name", "root:no-such-group"])
def test_users_that_cannot_be(tmp_path: Path, user: str) -> None:
    with pytest.raises(AssertionError, match=f"--run-as {user}: .* not found on this machine"):
        servers.start(tmp_path / "root", "--run-as", user)


def test_a_root_around_programs_hides_its_own_files(tmp_path: Path) -> None:
    """The server's working directory is in its root."""
    (tmp_path / "root" / "here").mkdir(parents=True)
    (tmp_path / "root" / "here" / "program").write_text("echo works")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / "root" / "here")
        server = servers.start(tmp_path / "root")
    house = House(server, tmp_path / "root", server.client(), False)
    house.client.create_secret("kept", {"word": WORD})
    house.client.create_repo("in")
    house.client.put_file_bytes(("in", "master"), "/f", b"x")
    lines = house.said(
        f"sh {house.root}/here/program; ls {house.root}/secrets {house.root}/chunks; cat {house.root}/p*"
    )
    assert "works" in lines
    assert not [line for line in lines if "kept" in line or "SQLite" in line]
    server.stop()
