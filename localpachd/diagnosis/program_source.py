"""The program that this process runs: the source of its packages, and the versions of everything that it uses."""

import importlib.metadata
import platform
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("localpachd", "speclang")
_HERE = Path(__file__).resolve().parents[2]


def files() -> Iterator[tuple[str, bytes]]:
    """The name and content of each source file, as it is on disk now, and of versions.txt."""
    for package in PACKAGES:
        for path in sorted((_HERE / package).rglob("*.py")):
            yield path.relative_to(_HERE).as_posix(), path.read_bytes()
    yield "versions.txt", versions().encode()


def versions() -> str:
    """The interpreter, SQLite and every installed package, a line each."""
    found = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
    packages = [f"{name} {found[name]}" for name in sorted(found, key=str.lower) if name]
    head = [
        f"python {platform.python_version()} ({platform.python_implementation()}, {sys.executable})",
        f"system {platform.platform()}",
        f"sqlite {sqlite3.sqlite_version}",
    ]
    return "\n".join([*head, *packages, ""])
