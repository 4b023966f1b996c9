"""localpachd on this machine: starting it in the background, finding it again, stopping it, and telling pachctl of it.

Knows localpachd only as a program to start; what it serves is reached through the API as on any cluster.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipelines.connection import config_path, read_config
from pipelines.errors import LookalikeError

CONTEXT = "localpachd"
"""The name of the context that pachctl and lookalike find the local server under."""

_FIRST_LINE = "localpachd: listening on "
_STOPS_WITHIN = 30.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running localpachd."""

    root: str
    address: str
    pid: int
    previous_context: str


def default_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the local server keeps its state: $LOOKALIKE_ROOT, else .lookalike in the working directory."""
    return Path(environment.get("LOOKALIKE_ROOT") or ".lookalike").absolute()


def running(root: Path) -> Server | None:
    """The server that `up` has started on this root, if it still runs."""
    try:
        server = Server(**json.loads(_record(root).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return server if _is_ours(server) else None


def up(root: Path, port: int, options: list[str]) -> tuple[Server, bool]:
    """Starts localpachd on a root unless it runs there already, and makes it the context that pachctl talks to. Returns
    it and whether it was started now."""
    server = running(root)
    fresh = server is None
    if server is None:
        root.mkdir(parents=True, exist_ok=True)
        address, pid = _start(root, port, options)
        server = Server(str(root), address, pid, "")
    previous = _enter_context(server.address)
    server = Server(server.root, server.address, server.pid, previous or server.previous_context)
    _record(root).write_text(json.dumps(asdict(server), indent=2) + "\n")
    return server, fresh


def down(root: Path) -> Server | None:
    """Stops the server of a root, waits until it is gone, and gives pachctl its old context back. None if none runs."""
    server = running(root)
    if server is None:
        return None
    os.kill(server.pid, signal.SIGTERM)
    give_up = time.monotonic() + _STOPS_WITHIN
    while _is_ours(server):
        if time.monotonic() > give_up:
            raise LookalikeError(
                f"localpachd (process {server.pid}) has not stopped within {_STOPS_WITHIN:.0f} s; see {log_path(root)}"
            )
        time.sleep(0.05)
    _record(root).unlink(missing_ok=True)
    _leave_context(server)
    return server


def log_path(root: Path) -> Path:
    """The log of the server of a root."""
    return root / "localpachd.log"


def _record(root: Path) -> Path:
    return root / "server.json"


def _start(root: Path, port: int, options: list[str]) -> tuple[str, int]:
    command = [sys.executable, "-m", "localpachd", "--root", str(root / "pachd"), "--port", str(port), *options]
    with log_path(root).open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True, text=True
        )
    assert process.stdout is not None
    with process.stdout:
        line = process.stdout.readline().strip()
    if not line.startswith(_FIRST_LINE):
        process.wait()
        raise LookalikeError(f"localpachd did not start: {_last_line(log_path(root)) or line or 'it said nothing'}")
    return line.removeprefix(_FIRST_LINE), process.pid


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return lines[-1] if lines else ""


def _is_ours(server: Server) -> bool:
    """Whether the process is there and still localpachd: process numbers are used again."""
    process = Path("/proc") / str(server.pid)
    if not process.parent.is_dir():
        return _exists(server.pid)
    try:
        state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and b"localpachd" in (process / "cmdline").read_bytes()
    except OSError:
        return False


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _enter_context(address: str) -> str:
    """Makes the local server pachctl's active context; returns the name of the one that was active before."""
    path = config_path(os.environ)
    config = read_config(path)
    v2 = config.setdefault("v2", {})
    before: str = v2.get("active_context", "")
    v2.setdefault("contexts", {})[CONTEXT] = {"pachd_address": address, "source": "IMPORTED"}
    v2["active_context"] = CONTEXT
    _write_config(path, config)
    return "" if before == CONTEXT else before


def _leave_context(server: Server) -> None:
    path = config_path(os.environ)
    config = read_config(path)
    v2 = config.get("v2", {})
    if (
        v2.get("active_context") == CONTEXT
        and v2.get("contexts", {}).get(CONTEXT, {}).get("pachd_address") == server.address
    ):
        del v2["contexts"][CONTEXT]
        v2["active_context"] = server.previous_context if server.previous_context in v2["contexts"] else ""
        _write_config(path, config)


def _write_config(path: Path, config: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".lookalike")
    scratch.write_text(json.dumps(config, indent=2) + "\n")
    scratch.replace(path)
