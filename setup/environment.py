"""Makes a virtual environment from lock files and shows its steps (`make setup`).

Standard library only, since it runs before anything is installed. The packages are chosen by the lock; this program
knows none of them.
"""

import argparse
import contextlib
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

AGAIN = "then run the same command again: pip keeps what it has fetched"
_PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--progress-bar", "off")
_PAUSE = 0.2  # seconds between two looks at the progress
_KEPT = 15  # lines of pip's output that are shown if it fails


class Failed(Exception):
    """The reason why there is no environment, shown to the user as it is."""


class Line:
    """A step's line of progress on a terminal, overwritten in place; elsewhere only the end of a step is printed."""

    def __init__(self) -> None:
        self._live = sys.stdout.isatty()

    def show(self, text: str) -> None:
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{text[:width]}", end="", flush=True)

    def done(self, text: str) -> None:
        self.show("")
        print(text, flush=True)


class Progress:
    """The progress of one run of pip, from the lines that it prints and the files that it writes.

    total: the packages in the lock. scratch: the directory for pip's temporary files, where a download grows.
    """

    def __init__(self, total: int, scratch: Path, packages: Path) -> None:
        self._left, self._scratch, self._packages = total, scratch, packages
        self._before = self._installed()
        self._name, self._file, self._size = "", "", 0.0
        self.seen, self.fetched, self.installing = 0, 0.0, False

    def read(self, line: str) -> None:
        if match := re.match(r"(?:Collecting|Requirement already satisfied:) ([\w.-]+)", line):
            self._name, self.seen, self._size = match[1], self.seen + 1, 0.0
        elif line.startswith("Ignoring "):  # a package for another kind of machine
            self._left -= 1
        elif match := re.match(r"\s+Downloading (\S+) \(([\d.]+) (kB|MB|bytes)\)", line):
            self._file = match[1].rpartition("/")[2]
            self._size = float(match[2]) * {"bytes": 1e-6, "kB": 1e-3, "MB": 1.0}[match[3]]
            self.fetched += self._size
        elif line.startswith("Installing collected packages"):
            self.installing = True

    def __str__(self) -> str:
        if self.installing:
            return f"installing {self._installed() - self._before} of {self.seen} packages"
        if not self.seen:
            return f"{self._left} packages"
        size = f", {self._arrived():.0f} of {self._size:.0f} MB" if self._size >= 5 else ""
        return f"fetching {self.seen} of {self._left} packages: {self._name}{size}"

    def _arrived(self) -> float:
        """The megabytes of the present download that are there."""
        with contextlib.suppress(OSError):
            return max((each.stat().st_size for each in self._scratch.rglob(self._file)), default=0) / 1e6
        return 0.0

    def _installed(self) -> int:
        return sum(1 for _ in self._packages.glob("*.dist-info"))


def make(directory: Path, line: Line) -> None:
    """An empty environment with pip, of the Python that runs this program. Replaces another one."""
    version = ".".join(map(str, sys.version_info[:3]))
    line.show(f"{directory}: Python {version}")
    venv.create(directory, clear=True, with_pip=True)
    line.done(f"{directory}: Python {version}, {sys.executable}")


def install(directory: Path, lock: Path, line: Line) -> None:
    """Installs a lock's packages, each with its hash. Raises Failed if pip does."""
    total = len(re.findall(r"^\S+==", lock.read_text(encoding="utf-8"), re.MULTILINE))
    (packages,) = (directory / "lib").glob("python*/site-packages")
    with _scratch(directory) as scratch:
        progress, begun, fetched = Progress(total, scratch, packages), time.monotonic(), 0.0
        for said in _pip(directory, scratch, "--require-hashes", "--no-deps", "--requirement", str(lock)):
            progress.read(said)
            fetched = time.monotonic() - begun if not progress.installing else fetched
            line.show(f"{directory}: {progress}")
    size = f"{progress.fetched:,.0f} MB" if progress.fetched >= 1 else "nothing"
    installed = time.monotonic() - begun - fetched
    line.done(
        f"{directory}: {progress.seen} packages of {lock}, {size} fetched in {fetched:.0f} s, "
        f"installed in {installed:.0f} s"
    )


def remove(directory: Path, names: Sequence[str], line: Line) -> None:
    """Removes directories of packages that only compilers read."""
    (packages,) = (directory / "lib").glob("python*/site-packages")
    there = [packages / name for name in names if (packages / name).is_dir()]
    for each in there:
        line.show(f"{directory}: removing {each.relative_to(packages)}")
        shutil.rmtree(each)
    if there:
        line.done(f"{directory}: without {', '.join(str(each.relative_to(packages)) for each in there)}")


def install_project(directory: Path, project: Path, line: Line) -> None:
    """Installs the project in place: its command runs the code as it stands in the working tree."""
    name = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    line.show(f"{directory}: {name}")
    with _scratch(directory) as scratch:
        for _ in _pip(directory, scratch, "--no-deps", "--no-build-isolation", "--editable", str(project)):
            pass
    line.done(f"{directory}: {name} itself, from {project.resolve()}")


@contextlib.contextmanager
def _scratch(directory: Path) -> Iterator[Path]:
    """A directory for pip's temporary files, on the disk of the environment: /tmp is often a part of the memory."""
    scratch = (directory / "tmp").absolute()
    scratch.mkdir(exist_ok=True)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _pip(directory: Path, scratch: Path, *arguments: str) -> Iterator[str]:
    """Runs pip and yields its lines as they come, and an empty one whenever there is time to look at its progress."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "TMPDIR": str(scratch)}
    command = [str(directory.absolute() / "bin" / "python"), *_PIP, *arguments]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as pip:
        lines: queue.Queue[str] = queue.Queue()
        reader = threading.Thread(target=_read, args=(pip, lines), daemon=True)
        reader.start()
        said: list[str] = []
        while reader.is_alive() or not lines.empty():
            try:
                said.append(lines.get(timeout=_PAUSE))
            except queue.Empty:
                yield ""
            else:
                yield said[-1]
    if pip.returncode:
        reason = "\n".join(["", *(each for each in said if each.strip())][-_KEPT:])
        raise Failed(f"pip could not install the packages:{reason}\nRemove the cause, {AGAIN}")


def _read(pip: "subprocess.Popen[str]", lines: "queue.Queue[str]") -> None:
    assert pip.stdout is not None
    for each in pip.stdout:
        lines.put(each.rstrip("\n"))


def _size(directory: Path) -> float:
    """The gigabytes on disk of all files below a directory."""
    return sum(each.lstat().st_blocks * 512 for each in directory.rglob("*")) / 1e9


def main() -> int:
    """Makes the environment; see --help. Exit status 1 after one reason, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(description="Make a virtual environment from lock files.")
    parser.add_argument("directory", type=Path, help="the environment")
    parser.add_argument("--lock", type=Path, required=True, help="a file of pinned packages with hashes")
    parser.add_argument("--without", metavar="DIR", nargs="*", default=[], help="directories of packages to remove")
    parser.add_argument("--project", type=Path, help="a directory to install in place, after its packages")
    parser.add_argument("--add", action="store_true", help="add to an environment instead of replacing it")
    given = parser.parse_args()
    line = Line()
    try:
        if not sys.platform.startswith("linux"):
            raise Failed("lookalike runs on Linux; docs/install.md describes the way with a container")
        if not given.add:
            make(given.directory, line)
        install(given.directory, given.lock, line)
        remove(given.directory, given.without, line)
        if given.project:
            install_project(given.directory, given.project, line)
        line.show(f"{given.directory}: measuring")
        line.done(f"{given.directory}: ready, {_size(given.directory):.2f} GB on disk")
    except Failed as error:
        line.done(str(error))
        return 1
    except OSError as error:
        line.done(f"{error.filename or given.directory}: {error.strerror or error}; remove the cause, {AGAIN}")
        return 1
    except KeyboardInterrupt:
        line.done(f"{given.directory}: interrupted; {AGAIN.removeprefix('then ')}")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
