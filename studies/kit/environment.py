"""Owns the virtual environments of the programs that lookalike is compared with, separate from the project's: they need
a hundred packages that nothing else here needs. Knows nothing of their use."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SETUPS = Path(__file__).resolve().parents[1] / "setups"
LOCK = SETUPS / "requirements.lock"
VARIABLE = "LOOKALIKE_PEERS"
"""Names the directory of the environment, unless the option does."""

TOOLS = ("dvc", "snakemake")
_STAMP = ".lookalike-peers"
_QUIET = {"DVC_NO_ANALYTICS": "1"}  # nothing is sent anywhere


class Unavailable(Exception):
    """The environment is not available; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program of the environment and its version."""

    program: Path
    version: str


def place(environment: Mapping[str, str]) -> Path:
    """The environment's directory, existing or not: the one VARIABLE names, or one in the user's cache for each lock
    file and version of Python."""
    return cached(environment, VARIABLE, "peers", LOCK)


def cached(environment: Mapping[str, str], variable: str, name: str, lock: Path) -> Path:
    """The directory of what a lock file pins: the one the variable names, or one in the user's cache for each content
    of the lock file and version of Python."""
    if environment.get(variable):
        return Path(environment[variable])
    cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "lookalike" / f"{name}-{fingerprint(lock)[:12]}-{sys.implementation.cache_tag}"


def tools(directory: Path) -> dict[str, Tool]:
    """The tools by name, from an environment that is created if missing. Raises Unavailable."""
    ensure(directory, LOCK, "DVC and Snakemake", "270 MB, a minute", VARIABLE)
    found = {}
    for name in TOOLS:
        path = directory / "bin" / name
        if not path.is_file():
            raise Unavailable(f"{path} does not exist: install it there, or name a directory that does not exist yet")
        found[name] = Tool(path, run([str(path), "--version"], f"{path} does not run"))
    return found


def ensure(directory: Path, lock: Path, what: str, cost: str, variable: str) -> None:
    """Makes an environment of a lock file's packages unless it is there. `what` is in it, in words; `cost`: what that
    takes; `variable` names the directory of another one. Raises Unavailable."""
    stamp = directory / _STAMP
    # Without a stamp the user has made it, with versions of their choice; the table states them.
    if directory.exists() and not (stamp.is_file() and stamp.read_text() != fingerprint(lock)):
        return
    print(f"installing {what} in {directory} ({cost}) ...", file=sys.stderr, flush=True)
    run([sys.executable, "-m", "venv", "--clear", str(directory)], "the virtual environment could not be created")
    stamp.write_text("unfinished")
    pip = [str(directory / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    run(
        [*pip, "--require-hashes", "-r", str(lock)],
        "pip could not install them: PyPI must be reachable once, or name an existing environment with "
        f"--environment or {variable}",
    )
    stamp.write_text(fingerprint(lock))


def run(command: list[str], why: str) -> str:
    """A program's output. Raises Unavailable with `why` and the last line of the output if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env={**os.environ, **_QUIET})
    except OSError as error:
        raise Unavailable(f"{why} ({error.strerror})") from error
    if done.returncode:
        said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise Unavailable(f"{why} ({said[-1] if said else f'status {done.returncode}'})")
    return done.stdout.strip()


def fingerprint(lock: Path) -> str:
    """The hash, 64 hex digits, of a lock file."""
    return hashlib.sha256(lock.read_bytes()).hexdigest()
