"""Figures of a running server: its options, machine, process and files; and its program, source and versions. Reads no
content."""

import importlib.metadata
import os
import platform
import shutil
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from localpachd.database import Database

_MEMORY = Path("/proc/meminfo")
_PACKAGES = ("localpachd", "speclang")
_HERE = Path(__file__).resolve().parents[2]


class ServerFacts:
    """The figures of the server on a root directory; `options` are shown as they are."""

    def __init__(self, root: Path, options: Mapping[str, object]) -> None:
        self._root = root
        self._options = options
        self._started = time.time()

    def describe(self) -> str:
        """The server, the process and the machine, a line each."""
        disk = shutil.disk_usage(self._root)
        memory = dict(line.split(":", 1) for line in _MEMORY.read_text().splitlines())
        times = os.times()
        lines = {
            **{f"option {name}": value for name, value in self._options.items()},
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._started)),
            "process": os.getpid(),
            "processor time": f"{times.user:.1f} s user, {times.system:.1f} s system",
            "open files": sum(1 for _ in Path("/proc/self/fd").iterdir()),
            "cores": len(os.sched_getaffinity(0)),
            "load": " ".join(f"{each:.2f}" for each in os.getloadavg()),
            "memory": f"{memory['MemTotal'].strip()}, {memory['MemAvailable'].strip()} available",
            "disk": f"{disk.total} bytes, {disk.free} free",
        }
        return "".join(f"{name}: {value}\n" for name, value in lines.items())

    def files(self) -> dict[str, dict[str, int]]:
        """The number and bytes of the files below the root by their first directory."""
        counts: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for directory, _, names in os.walk(self._root):
            for name in names:
                path = Path(directory, name)
                kind = path.relative_to(self._root).parts[0]
                counts[kind] += 1
                try:
                    sizes[kind] += path.stat(follow_symlinks=False).st_size
                except FileNotFoundError:  # deleted meanwhile
                    continue
        return {kind: {"files": counts[kind], "bytes": sizes[kind]} for kind in sorted(counts)}


def tables(db: Database) -> dict[str, dict[str, int]]:
    """The rows and bytes of each table of the database, its indices included."""
    with db.read() as conn:
        names = [row[0] for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        bytes_ = _bytes(conn)
        return {
            name: {"rows": conn.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0], "bytes": bytes_.get(name, 0)}
            for name in names
        }


def _bytes(conn: sqlite3.Connection) -> dict[str, int]:
    sizes = "SELECT tbl_name, SUM(pgsize) FROM dbstat JOIN sqlite_master USING (name) GROUP BY tbl_name"
    try:
        return dict(conn.execute(sizes).fetchall())
    except sqlite3.OperationalError:  # this SQLite was built without dbstat
        return {}


def program_files() -> Iterator[tuple[str, bytes]]:
    """The name and content of each source file, as it is on disk now, and of versions.txt."""
    for package in _PACKAGES:
        for path in sorted((_HERE / package).rglob("*.py")):
            yield path.relative_to(_HERE).as_posix(), path.read_bytes()
    yield "versions.txt", program_versions().encode()


def program_versions() -> str:
    """The interpreter, SQLite and every installed package, a line each."""
    found = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
    packages = [f"{name} {found[name]}" for name in sorted(found, key=str.lower) if name]
    head = [
        f"python {platform.python_version()} ({platform.python_implementation()}, {sys.executable})",
        f"system {platform.platform()}",
        f"sqlite {sqlite3.sqlite_version}",
    ]
    return "\n".join([*head, *packages, ""])
