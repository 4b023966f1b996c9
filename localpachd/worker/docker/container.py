"""One container from its creation to its removal, and the files in it. Knows neither tasks nor datums."""

import base64
import errno
import json
import os
import stat
import struct
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any

from localpachd.worker.docker.container_engine import ContainerEngine, EngineError, component

_STATUS = "X-Docker-Container-Path-Stat"
# The bits of Go's os.FileMode for everything but regular files.
_KINDS = {
    1 << 31: stat.S_IFDIR,
    1 << 27: stat.S_IFLNK,
    1 << 26: stat.S_IFCHR,
    1 << 25: stat.S_IFIFO,
    1 << 24: stat.S_IFSOCK,
}

# Process 1 ignores SIGCHLD, so that the kernel itself reaps orphans, and then sleeps.
_CODE = {
    "x86_64": (
        62,  # the machine's number in ELF
        "6a00 6a00 6a00 6a01"  # push 0 (sa_mask), 0 (sa_restorer), 0 (sa_flags), 1 (sa_handler: SIG_IGN)
        "4889e6 31d2 6a08 415a"  # rsi = that; edx = 0; r10 = 8, the size of a mask
        "6a11 5f 6a0d 58 0f05"  # edi = SIGCHLD; rt_sigaction
        "6a22 58 0f05 ebf9",  # pause, again and again
    ),
    "aarch64": (
        183,
        "210080d2 e17fbea9 ff7f01a9"  # the same struct on the stack
        "200280d2 e1030091 020080d2 030180d2 c81080d2 010000d4"  # rt_sigaction(SIGCHLD, sp, 0, 8)
        "000080d2 010080d2 020080d2 030080d2 040080d2"  # ppoll(0, 0, 0, 0, 0)
        "280980d2 010000d4 f9ffff17",  # again and again
    ),
}
_NAMES = {"amd64": "x86_64", "arm64": "aarch64"}
_BASE = 0x400000
_HEADERS = 64 + 56


class Container:
    """A container made from `body` (as for `POST /containers/create`), not yet running.

    Process 1 must be a pause binary: commands run beside it, and all of them die with it. All methods raise
    EngineError. Used by one thread, except for `kill`.
    """

    def __init__(self, engine: ContainerEngine, name: str, body: Mapping[str, Any]) -> None:
        self._engine = engine
        self.id: str = engine.call("POST", "/containers/create", body, name=name)["Id"]
        self._path = f"/containers/{self.id}"
        self._running = False

    def run(self) -> None:
        """Makes sure that the container is running, at first with nothing but process 1."""
        if not self._running:
            self._engine.call("POST", f"{self._path}/start")
            self._running = True

    def prepare(self, body: Mapping[str, Any]) -> str:
        """The id of a command (as for `POST /containers/{id}/exec`) that is ready to be started here."""
        self.run()
        try:
            return str(self._engine.call("POST", f"{self._path}/exec", body)["Id"])
        except EngineError as failure:
            if failure.status != HTTPStatus.CONFLICT:  # the container was stopped from outside, or ran out of memory
                raise
        self._running = False
        self.run()
        return str(self._engine.call("POST", f"{self._path}/exec", body)["Id"])

    def clear(self) -> None:
        """Kills processes that commands have left behind."""
        if self._running and self._processes() > 1:
            self.kill()

    def _processes(self) -> int:
        # For options of ps, Podman would start the container's own ps(1); it has descriptors of its own instead.
        found = self._engine.call("GET", f"{self._path}/top", ps_args="pid" if self._engine.podman else "-eo pid")
        return len(found["Processes"])

    def kill(self) -> None:
        """Kills all processes in the container and waits until they are gone. Its files stay."""
        try:
            self._engine.call("POST", f"{self._path}/kill")
        except EngineError as failure:
            if failure.status not in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND):  # it is not running, as desired
                raise
        else:
            self._engine.call("POST", f"{self._path}/wait", condition="not-running")
        self._running = False

    def remove(self) -> None:
        """Kills all processes in the container and deletes it with all its files."""
        remove(self._engine, self.id)

    @property
    def pid(self) -> int:
        """The number of its process 1 on this machine; it must be running."""
        return int(self._engine.call("GET", f"{self._path}/json")["State"]["Pid"])

    def read(self, path: str) -> bytes:
        """The bytes of a small file in the container. Raises FileNotFoundError."""
        with _missing(path), self._engine.archive(f"{self._path}/archive", path=path) as tar:
            for member in tar:
                file = tar.extractfile(member)
                if file is not None:
                    return file.read()
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def status(self, path: str) -> tuple[int, str]:
        """The `st_mode` of a file in the container and, for a link, its target. Raises OSError."""
        with _missing(path):
            found = json.loads(base64.b64decode(self._engine.heading(f"{self._path}/archive", _STATUS, path=path)))
        kind = next((kind for bit, kind in _KINDS.items() if found["mode"] & bit), stat.S_IFREG)
        return kind | found["mode"] & 0o777, found.get("linkTarget", "")

    def copy(self, path: str, place: Path) -> None:
        """Copies a file or a directory with all below it to `place`, which must not exist yet. Raises OSError."""
        links: list[tuple[Path, str]] = []
        place.parent.mkdir(parents=True, exist_ok=True)
        with _missing(path), self._engine.archive(f"{self._path}/archive", path=path) as tar:
            for member in tar:
                # The first part of each name is the name of the requested file.
                below = place.joinpath(*(part for part in PurePosixPath(member.name).parts[1:] if part != ".."))
                if member.issym():
                    links.append((below, member.linkname))
                elif member.islnk():
                    first = place.joinpath(*PurePosixPath(member.linkname).parts[1:])
                    below.hardlink_to(first)
                else:
                    _unpack(tar, member, below)
        for link, target in links:  # made last, so that nothing is written through one
            link.symlink_to(target)


class ContainerFiles:
    """The linked files of processes in a container; copies are kept in `directory`."""

    def __init__(self, container: Container, directory: Path) -> None:
        self._container = container
        self._directory = directory
        self._copies = 0

    def mode(self, path: str) -> int:
        return self._container.status(path)[0]

    def target(self, path: str) -> str:
        return self._container.status(path)[1]

    def fetch(self, path: str) -> Path:
        """As `visible_files.LinkedFiles` says: a copy, since the container's files are the engine's."""
        self._copies += 1
        place = self._directory / str(self._copies)
        self._container.copy(path, place)
        return place


def remove(engine: ContainerEngine, container: str) -> None:
    """Removes a container by its id, whatever its state; silent if it is gone already."""
    try:
        engine.call("DELETE", f"/containers/{component(container)}", force="true", v="true")
    except EngineError as failure:
        if failure.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):  # it is being removed already
            raise


@contextmanager
def _missing(path: str) -> Iterator[None]:
    """Turns the error of a file missing in a container into an OSError, as everywhere else."""
    try:
        yield
    except EngineError as failure:
        if failure.status != HTTPStatus.NOT_FOUND:
            raise
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from failure


def _unpack(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
    elif member.isfile():
        file = tar.extractfile(member)
        assert file is not None
        with place.open("wb") as target:
            while block := file.read(1 << 20):
                target.write(block)
    else:
        os.mkfifo(place)  # stands in for any other kind, which has no content to be kept


def write_pause_binary(path: Path, architecture: str) -> None:
    """Writes the program that keeps a container running between commands by doing nothing: an image need not contain
    any, not even a shell. Raises KeyError for an engine's architecture that is not supported."""
    machine, listing = _CODE[_NAMES.get(architecture, architecture)]
    code = bytes.fromhex(listing)
    size = _HEADERS + len(code)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)  # 64 bits, little-endian, version 1
    head = struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, _BASE + _HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1000)  # to be loaded, read and run
    path.write_bytes(ident + head + segment + code)
    path.chmod(0o755)


def is_supported(architecture: str) -> bool:
    """Whether there is a pause binary for an engine's architecture."""
    return _NAMES.get(architecture, architecture) in _CODE
