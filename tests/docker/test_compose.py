"""docker/compose.yaml: a library in containers, from nothing. Without Docker Compose it is compared with the images,
commands, options and ports that exist."""

import json
import re
import shlex
import shutil
import subprocess
import time
import tomllib
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from contents import PREFIX, PROJECT

from localpachd.server_options import ServerOptions
from pipelines.client.services.service_roles import SEARCH
from stages.backbone.photographs import open_photograph
from tests import wheels
from tests.command import Command
from tests.servers import OwnPort

FILE = PROJECT / "docker" / "compose.yaml"
SERVER, SERVICE = ServerOptions.__dataclass_fields__["port"].default, SEARCH.port
USED = re.compile(r"lookalike ((?:up|down|serve|add)\b[^;|&'\n]*)")


def document() -> dict[str, Any]:
    """With the usual values of the variables of its environment."""
    found: dict[str, Any] = yaml.safe_load(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", FILE.read_text()))
    return found


def lacking() -> str:
    """The reason for which the file cannot be run here, or ""."""
    if shutil.which("docker") is None:
        return "docker is not on the PATH"
    for asked, what in ((("compose", "version"), "Docker Compose"), (("info",), "the engine")):
        done = subprocess.run(["docker", *asked], capture_output=True, text=True)
        if done.returncode:
            return f"{what} does not answer: {(done.stderr or done.stdout).strip()[-200:]}"
    return ""


def test_the_file_is_one_of_what_exists(command: Command) -> None:
    found = document()
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    assert {each["image"] for each in found["services"].values()} == {f"{PREFIX.rstrip('-')}:{version}"}
    assert {each["network_mode"] for each in found["services"].values()} == {"host"}  # else they would need tokens
    for each in found["services"].values():
        assert each["volumes"][0].partition(":")[0] in found["volumes"]
    server, service = found["services"]["server"], found["services"]["service"]
    asked = [
        *USED.findall(f"{FILE.read_text()}\n{server['command'][-1]}"),
        *USED.findall(shlex.join(service["command"])),
    ]
    assert {line.split()[0] for line in asked} == {"up", "down", "serve", "add"}
    for line in asked:
        words = shlex.split(line)
        said = command.says(words[0], "-h")
        assert not [word for word in words if word.startswith("--") and word not in said], line
    assert (
        f"--port {SERVER} " in server["command"][-1] and f"'127.0.0.1', {SERVER})" in server["healthcheck"]["test"][-1]
    )
    assert service["environment"] == {"PACHD_ADDRESS": f"grpc://127.0.0.1:{SERVER}"}
    assert service["command"][service["command"].index("--port") + 1] == str(SERVICE)
    made = next(each for each in (PROJECT / "Makefile").read_text().split("\n\n") if each.startswith("wheel:"))
    copied = re.search(r"^COPY (.*) /dist/$", server["build"]["dockerfile_inline"], re.MULTILINE)
    assert copied and all(f"dist/{name}" in made for name in copied[1].split())
    assert (FILE.parent / server["build"]["context"]).resolve() == PROJECT / "dist"


@pytest.mark.docker
@pytest.mark.only_in_all
@pytest.mark.timeout(1800)
def test_a_library_in_containers_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_port: OwnPort
) -> None:
    if reason := lacking():
        pytest.skip(reason)
    for name in ("docker", "dist", "source"):
        (tmp_path / name).mkdir()
    shutil.copy(FILE, tmp_path / "docker")
    wheels.build(tmp_path / "source", tmp_path / "dist")
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for name in ("cat", "coffee"):
        open_photograph(name).save(pictures / f"{name}.png")
    port = own_port()
    for name, value in (("PICTURES", pictures), ("SERVER_PORT", own_port()), ("PORT", port)):
        monkeypatch.setenv(name, str(value))
    compose = ["docker", "compose", "--project-name", "lookalike-test", "--file", str(tmp_path / "docker" / FILE.name)]
    try:
        subprocess.run([*compose, "up", "--build", "--detach"], check=True)
        subprocess.run([*compose, "exec", "-T", "server", "lookalike", "add", "/pictures"], check=True)
        while (status := _status(port)).get("pictures") != 2:
            time.sleep(1)
        assert status["state"] == "ready"
        subprocess.run([*compose, "restart"], check=True)
        while (status := _status(port)).get("pictures") != 2:
            time.sleep(1)
    finally:
        subprocess.run([*compose, "down", "--volumes"], check=True)


def _status(port: int) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=5) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except OSError:
        return {}
