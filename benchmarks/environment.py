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
    there = {name: directory / "bin" / name for name in TOOLS}
    stamp = directory / _STAMP
    # Without a stamp somebody else has made it, and answers for the versions, which are stated.
    ready = stamp.read_text() == _fingerprint() if stamp.is_file() else all(map(Path.is_file, there.values()))
    if not ready:
        _make(directory)
    return {name: Tool(program, _version(program)) for name, program in there.items()}


def _make(directory: Path) -> None:
    if directory.exists() and any(directory.iterdir()) and not (directory / "pyvenv.cfg").is_file():
        raise Unavailable(f"{directory} is not empty and no virtual environment: name another directory for the peers")
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


def _run(command: list[str], why: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise Unavailable(f"{why} ({said[-1] if said else f'status {done.returncode}'})")


def _version(program: Path) -> str:
    done = subprocess.run([str(program), "--version"], capture_output=True, text=True, env={**os.environ, **_QUIET})
    if done.returncode:
        raise Unavailable(f"{program} does not run: remove {program.parent.parent}, and it is made anew")
    return done.stdout.strip()


def _fingerprint() -> str:
    return hashlib.sha256(LOCK.read_bytes()).hexdigest()
