"""Environments made from lock files, as `make setup` does: of real wheels, from an index on this machine."""

import hashlib
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.small_archives import zipped

PROGRAM = Path(__file__).resolve().parents[2] / "setup" / "environment.py"


def lock(place: Path, name: str) -> str:
    """The name of a lock that pins a new wheel of this name, of one module and a header."""
    file, info = place / name / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    file.parent.mkdir()
    members = {
        f"{name}/__init__.py": b"",
        f"{name}/include/{name}.h": b"int x;\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    file.write_bytes(zipped(members))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    place.joinpath(f"{name}.lock").write_text(f"{name}==1.0 ; sys_platform == 'linux' \\\n    --hash=sha256:{digest}\n")
    return f"{name}.lock"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """The address of an index of the wheels in the test's directory: pip reads a listing of files as one."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=tmp_path))
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def environment(place: Path, index: str, *arguments: str) -> tuple[int, str]:
    """The exit status of the program, called in this place, and the text that it shows on a terminal."""
    leader, follower = os.openpty()
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), "env", *arguments],
        env={**os.environ, "PIP_INDEX_URL": index, "PIP_NO_CACHE_DIR": "1"},
        stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, cwd=place,
    ) as program:  # fmt: skip
        os.close(follower)
        said = b""
        with open(leader, "rb", 0) as terminal:  # noqa: PTH123  # a descriptor
            try:
                while more := terminal.read(65536):
                    said += more
            except OSError:  # the terminal's other end is closed
                pass
    return program.returncode, said.decode().replace("\r\n", "\n")


def imports(place: Path, name: str) -> bool:
    python = place / "env" / "bin" / "python"
    return subprocess.run([python, "-c", f"import {name}"], capture_output=True).returncode == 0


def test_an_environment_is_made_of_a_lock_and_others_are_added(tmp_path: Path, index: str) -> None:
    status, said = environment(tmp_path, index, "--lock", lock(tmp_path, "lantern"), "--without", "lantern/include")
    assert status == 0, said
    assert "env: Python 3." in said
    assert "\r\x1b[Kenv: fetching 1 of 1 packages: lantern" in said
    assert "env: 1 packages of lantern.lock, nothing fetched in " in said  # less than a megabyte
    assert "env: without lantern/include\n" in said
    assert said.endswith(" GB on disk\n")
    assert imports(tmp_path, "lantern")
    assert not list(tmp_path.joinpath("env").rglob("lantern.h"))
    assert not tmp_path.joinpath("env", "tmp").exists()

    status, said = environment(tmp_path, index, "--lock", lock(tmp_path, "shutter"), "--add")
    assert status == 0, said
    assert imports(tmp_path, "lantern") and imports(tmp_path, "shutter")

    pinned = lock(tmp_path, "prism")
    with zipfile.ZipFile(tmp_path / "prism" / "prism-1.0-py3-none-any.whl", "a") as wheel:
        wheel.writestr("prism/other.py", "")
    status, said = environment(tmp_path, index, "--lock", pinned, "--add")
    assert status == 1
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in said
    assert said.endswith("then run the same command again: pip keeps what it has fetched\n")
    assert not imports(tmp_path, "prism")
