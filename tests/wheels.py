"""The wheel and its constraints, as `make wheel` makes them, built of a copy of the sources."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("localpachd", "lookalike", "pipelines", "speclang", "specs", "stages")
DOCUMENTS = ("LICENSE", "README.md", "pyproject.toml")
_PIN = re.compile(r"^([a-z][a-z0-9-]*==.*?)(?: \\)?$", re.MULTILINE)


def copied(to: Path) -> Path:
    """A copy of the sources in a directory."""
    for name in SOURCES:
        shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in DOCUMENTS:
        shutil.copy2(ROOT / name, to / name)
    return to


def build(source: Path, to: Path) -> Path:
    """The wheel of a copy of the sources, since a build leaves files beside them, in a directory, with constraints.txt
    beside it."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    subprocess.run([*pip, "--no-build-isolation", "--no-deps", "--wheel-dir", to, copied(source)], check=True)
    pins = _PIN.findall((ROOT / "requirements.lock").read_text())
    (to / "constraints.txt").write_text("".join(f"{pin}\n" for pin in pins))
    (found,) = to.glob("*.whl")
    return found
