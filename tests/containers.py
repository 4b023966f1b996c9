"""A container image for tests, made of this machine's own programs, so that no registry is needed."""

import functools
import hashlib
import importlib.metadata
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import grpc
import pytest

from localpachd.worker.docker import container_engine
from localpachd.worker.docker.container_engine import ContainerEngine, EngineError

_PROGRAMS = (
    "cat chmod chown cp cut env false find grep head hostname id ln ls mkdir mkfifo mktemp mv paste pwd readlink rm",
    "seq setsid sh sleep sort stat tail tee touch tr true uniq wc",
)
# Imports of the tests' programs, some of them lazy: the clients, servers and readers of files.
_IMPORTS = """
import contextlib, encodings.idna, http.server, json, os, pathlib, python_pachyderm, shutil, socket, sys, threading
import time, urllib.request
from python_pachyderm.proto.v2.worker import worker_pb2, worker_pb2_grpc
with contextlib.suppress(Exception), python_pachyderm.Client("127.0.0.1", 1).modify_file_client(("r", "b")) as writer:
    writer.put_file_from_bytes("/f", b"")
for module in list(sys.modules.values()):
    print(getattr(module, "__file__", None) or "")
    print(getattr(module, "__cached__", None) or "")
print(os.__file__)
"""
_FILES = {
    "/etc/passwd": "root:x:0:0:r:/:/bin/sh\ndaemon:x:1:1:d:/:/bin/false\nnobody:x:65534:65534:n:/:/bin/false\n",
    "/etc/group": "root:x:0:\ndaemon:x:1:\nstaff:x:50:\nnogroup:x:65534:\n",
    "/etc/of-the-image": "made for a test\n",
}


def why_not() -> str:
    """The reason that containers cannot be run here; "" if they can."""
    if shutil.which("docker") is None and shutil.which("podman") is None:
        return "neither docker nor podman is on the PATH"
    try:
        container_engine.find()
    except EngineError as failure:
        return str(failure)
    return ""


def found() -> ContainerEngine:
    """This machine's engine; skips the test if there is none."""
    if reason := why_not():
        pytest.skip(reason)
    return container_engine.find()


@functools.cache
def image() -> str:
    """The name of the image, made unless it is there: a shell and what shells use, `python3` with a client of
    NextDatum, users, a variable FROM_IMAGE, and a working directory `/work` of its own."""
    found()
    name = f"localpachd-test:{_version()}"
    if subprocess.run([_client(), "image", "inspect", name], capture_output=True).returncode:
        changes = [
            "ENV PATH=/usr/bin:/bin", "ENV FROM_IMAGE=yes", f"ENV PYTHONHOME={sys.base_prefix}",
            f"ENV PYTHONPATH={os.pathsep.join(path for path in sys.path if path.endswith('-packages'))}",
            "WORKDIR /work", 'ENTRYPOINT ["/usr/bin/false"]',
        ]  # fmt: skip
        load(name, _root(), changes)
    return name


def load(name: str, tar: bytes, changes: list[str]) -> None:
    """Makes an image from a root directory and instructions of a Dockerfile."""
    options = [option for change in changes for option in ("--change", change)]
    subprocess.run([_client(), "import", *options, "-", name], input=tar, check=True, capture_output=True)


def unload(name: str) -> None:
    """Removes an image, or one of its names."""
    subprocess.run([_client(), "rmi", "--force", name], capture_output=True)


def tag(name: str, other: str) -> None:
    """Gives an image another name."""
    subprocess.run([_client(), "tag", name, other], check=True, capture_output=True)


def running(label: str) -> list[str]:
    """The ids of the containers with a label, running or not."""
    filters = json.dumps({"label": [label]})
    return [each["Id"] for each in container_engine.find().call("GET", "/containers/json", all="true", filters=filters)]


def _client() -> str:
    return shutil.which("docker") or shutil.which("podman") or ""


def _version() -> str:
    recipe = f"{Path(__file__).read_bytes()!r} {sys.version} {grpc.__version__}"
    return hashlib.sha256(recipe.encode()).hexdigest()[:12]


def _root() -> bytes:
    """The root directory as a tar."""
    places = {f"/usr/bin/{name}": path for name in " ".join(_PROGRAMS).split() if (path := shutil.which(name))}
    places["/usr/bin/python3"] = os.path.realpath(sys.executable)
    places |= {path: path for path in _modules()}
    for path in sorted({*places.values()}):
        places |= {library: library for library in _libraries(path)}
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        for directory in ("/tmp", "/work", "/proc", "/sys", "/dev", "/var/lib"):
            entry = tarfile.TarInfo(directory)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if directory == "/tmp" else 0o755
            tar.addfile(entry)
        for place, source in sorted(places.items()):
            tar.add(os.path.realpath(source), place, recursive=False)
        for place, text in _FILES.items():
            entry = tarfile.TarInfo(place)
            entry.size, entry.mode = len(text), 0o644
            tar.addfile(entry, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("/bin")
        link.type, link.linkname = tarfile.SYMTYPE, "usr/bin"
        tar.addfile(link)
    return held.getvalue()


def _modules() -> list[str]:
    """The files of all modules that Python imports."""
    asked = subprocess.run([sys.executable, "-c", _IMPORTS], capture_output=True, text=True, check=True)
    known = importlib.metadata.files("python_pachyderm") or ()  # it asks for its own version
    described = [str(each.locate()) for each in known if each.name == "METADATA"]
    found = (Path(line).absolute() for line in (*asked.stdout.splitlines(), *described) if line)
    return sorted({str(path) for path in found if path.is_file()})


def _libraries(path: str) -> list[str]:
    """The libraries that the loader loads with a program or module."""
    if not (path.endswith(".so") or ".so." in path or os.access(path, os.X_OK)):
        return []
    asked = subprocess.run(["ldd", path], capture_output=True, text=True)
    return re.findall(r"(?:=> |^\s*)(/\S+)", asked.stdout, re.MULTILINE)
