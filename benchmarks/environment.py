"""Owns the virtual environment that DVC and Snakemake run in, apart from the project's: they bring a hundred packages
that nothing else here needs. Knows nothing of what is done with them."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SETUPS = Path(__file__).resolve().parent / "setups"
LOCK = SETUPS / "requirements.lock"
VARIABLE = "LOOKALIKE_PEERS"
"""Names the directory of the environment, if the option does not."""

TOOLS = ("dvc", "snakemake")
_STAMP = ".lookalike-peers"
_QUIET = {"DVC_NO_ANALYTICS": "1"}  # nothing is sent anywhere


class Unavailable(Exception):
    """The environment cannot be had; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program of the environment and its version."""

    program: Path
    version: str


def place(environment: Mapping[str, str]) -> Path:
    """Where the environment is or will be, one for each lock and Python: what VARIABLE says, or in the user's cache."""
    if environment.get(VARIABLE):
        return Path(environment[VARIABLE])
    cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "lookalike" / f"peers-{_fingerprint()[:12]}-{sys.implementation.cache_tag}"


def tools(directory: Path) -> dict[str, Tool]:
    """The tools by name, of an environment that is made where there is none. Raises Unavailable."""
    stamp = directory / _STAMP
    # Without a stamp somebody else has made it, and answers for the versions, which the table states.
    if not directory.exists() or (stamp.is_file() and stamp.read_text() != _fingerprint()):
        _make(directory)
    found = {}
    for name in TOOLS:
        path = directory / "bin" / name
        if not path.is_file():
            raise Unavailable(f"there is no {path}: install it there, or name a directory that does not exist yet")
        found[name] = Tool(path, _run([str(path), "--version"], f"{path} does not run"))
    return found


def _make(directory: Path) -> None:
    print(f"installing DVC and Snakemake into {directory} (270 MB, a minute) ...", file=sys.stderr, flush=True)
    _run([sys.executable, "-m", "venv", "--clear", str(directory)], "no virtual environment could be made")
    (directory / _STAMP).write_text("unfinished")
    pip = [str(directory / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    _run(
        [*pip, "--require-hashes", "-r", str(LOCK)],
        "pip could not install them: PyPI must be reachable once, or name an environment that was made elsewhere with "
        f"--environment or {VARIABLE}",
    )
    (directory / _STAMP).write_text(_fingerprint())


def _run(command: list[str], why: str) -> str:
    """What a program said. Raises Unavailable with this and the last line where it does not end well."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env={**os.environ, **_QUIET})
    except OSError as error:
        raise Unavailable(f"{why} ({error.strerror})") from error
    if done.returncode:
        said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise Unavailable(f"{why} ({said[-1] if said else f'status {done.returncode}'})")
    return done.stdout.strip()


def _fingerprint() -> str:
    return hashlib.sha256(LOCK.read_bytes()).hexdigest()
