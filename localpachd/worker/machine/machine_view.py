"""The part of this machine that processes see: a `/tmp` of their own, nothing of the server's own files and, where the
machine has no `/pfs` to mount on or something is to be added, a root directory assembled from bind mounts.

Makes the mount points and the lines of an fstab(5) for them; mounts nothing. The server, which reads the files that
links out of `/pfs` lead to, sees more than the process that made the link: its own files, the kernel's about itself,
the machine's `/tmp`, and where it is root everybody's files.
"""

import contextlib
import errno
import os
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TMP = Path("/tmp")
SHARED_MEMORY = Path("/dev/shm")
_INSTALLED = Path(__file__).resolve().parents[3]
_KERNEL = (Path("/proc"), Path("/sys"))
_HIDDEN = "localpachd-hidden"
"""The source of the empty file systems. mount(8) would skip one whose source and place are mounted already."""

_CROWD = 1000
"""The number of entries above which a directory is not mounted entry by entry."""


@dataclass(frozen=True, slots=True)
class MachineView:
    """`hidden` are the directories and files of the server that no process may see, `kept` the directories below `/tmp`
    that all processes see in theirs. All are without links. `own_memory`: whether nothing that they need is in the
    machine's `/dev/shm`, so that they can have one of their own."""

    hidden: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    own_memory: bool = True

    def mounts(self, root: str, temporary: Path, memory: int | None) -> list[str]:
        """The lines by which processes whose root directory will be `root` ("" for that of this machine) get
        `temporary`, a directory made here, as their `/tmp`, and lose what is hidden. Their `/dev/shm` holds up to
        `memory` bytes; half of the machine's for 0, and with None it is the machine's."""
        temporary.mkdir()
        temporary.chmod(0o1777)
        lines = []
        for each in self.kept:
            place = temporary / each.relative_to(TMP)
            place.mkdir(parents=True, exist_ok=True)
            lines.append(line(each, place, ",nofail"))  # one that vanishes before it is mounted is no loss
        lines.append(line(temporary, Path(f"{root}{TMP}")))
        if memory is not None and self.own_memory and SHARED_MEMORY.is_dir():
            size = f",size={memory}" if memory else ""
            lines.append(f"localpachd-shm {root}{SHARED_MEMORY} tmpfs nosuid,nodev,mode=1777{size} 0 0\n")
        for each in self.hidden:
            if self._own(each) is not None or not each.exists():
                continue  # out of sight already
            if each.is_dir():
                lines.append(f"{_HIDDEN} {escaped(f'{root}{each}')} tmpfs ro,size=4k,mode=0555 0 0\n")
            else:
                lines.append(f"/dev/null {escaped(f'{root}{each}')} none bind 0 0\n")
        return lines

    def here(self, path: Path, temporary: Path | None, whole: bool) -> Path:
        """Where this machine has the file that processes see at an absolute path without links; `temporary` is what
        they have as `/tmp`, None for the machine's. Raises OSError if they do not see it or, for a `whole` directory,
        if it holds what they do not see."""
        own_memory = (SHARED_MEMORY,) if temporary is not None and self.own_memory else ()
        for each in (*self.hidden, *_KERNEL, *own_memory):
            if holds(each, path):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            if whole and holds(path, each):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        own = self._own(path) if temporary is not None else None
        return path if own is None or temporary is None else temporary / own

    def _own(self, path: Path) -> Path | None:
        """The place of a path in the processes' own `/tmp`; None if it is not there."""
        if not holds(TMP, path) or any(holds(each, path) for each in self.kept):
            return None
        return path.relative_to(TMP)


def view(hidden: Iterable[Path], further: Iterable[Path] = ()) -> MachineView:
    """The view of a server with these files of its own. What its programs, and so those of user code, consist of stays
    visible below `/tmp`, as do its working directory and `further` ones."""
    kept: list[Path] = []
    named = {name for path in (*_programs(), *further) for name in _names(path)}
    for each in sorted(filter(_below_tmp, named)):
        if not any(holds(other, each) for other in kept):
            kept.append(each)
    out_of_sight = tuple(Path(os.path.realpath(each)) for each in hidden)
    own_memory = not any(holds(SHARED_MEMORY, each) for each in (*out_of_sight, *named))
    return MachineView(out_of_sight, tuple(kept), own_memory)


def programs_in(directory: Path) -> bool:
    """Whether a directory holds a part of what user code needs to run."""
    return any(holds(directory, path) for each in _programs() for path in _names(each))


def _programs() -> Iterator[Path]:
    """The directories that user code needs: those of the interpreter, of modules and programs, and of this process. An
    editable installation finds modules, this one among them, outside of the interpreter's directories."""
    named = (os.environ.get(name, "") for name in ("HOME", "XDG_CACHE_HOME", "PATH", "PYTHONPATH"))
    texts = [part for text in named for part in text.split(os.pathsep) if part]
    texts += [*sys.path, str(_INSTALLED), sys.prefix, sys.base_prefix, str(Path(sys.executable).parent)]
    with contextlib.suppress(FileNotFoundError):  # it was deleted
        texts.append(str(Path.cwd()))
    yield from (Path(text) for text in texts if Path(text).is_absolute() and os.access(text, os.X_OK))


def _names(path: Path) -> tuple[Path, Path]:
    """A path as it is given, and without links."""
    return path.absolute(), Path(os.path.realpath(path))


def _below_tmp(path: Path) -> bool:
    return TMP in path.parents and path.is_dir()


def line(source: Path, place: Path, options: str = "") -> str:
    """The line of fstab(5) that shows `source` at `place`."""
    return f"{escaped(str(source))} {escaped(str(place))} none rbind{options} 0 0\n"


def escaped(path: str) -> str:
    """A path in the notation of fstab(5)."""
    return "".join(f"\\{ord(character):03o}" if character in " \t\n\\#" else character for character in path)


def holds(directory: Path, path: Path) -> bool:
    """Whether a path is a directory or lies in it."""
    return path == directory or directory in path.parents


@dataclass(frozen=True, slots=True)
class MachineFiles:
    """The linked files of a process of this machine: the files themselves, as far as it can see them. `temporary` is
    the directory that it has as `/tmp`, None where it shares the machine's; `user` are setpriv's options for its user,
    if that is not the server's."""

    view: MachineView
    temporary: Path | None
    user: Sequence[str] = ()

    def mode(self, path: str) -> int:
        return self._here(path, whole=False).lstat().st_mode

    def target(self, path: str) -> str:
        return str(self._here(path, whole=False).readlink())

    def fetch(self, path: str) -> Path:
        """As `visible_files.LinkedFiles` says. Raises PermissionError for what the process's user may not read."""
        found = self._here(path, whole=True)
        if self.user:
            search = ("find", "-H", str(found), "!", "-readable", "-print", "-quit")
            asked = subprocess.run(
                ("setpriv", *self.user, "--", *search), capture_output=True, stdin=subprocess.DEVNULL, check=False
            )
            if asked.returncode or asked.stdout:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return found

    def _here(self, path: str, whole: bool) -> Path:
        return self.view.here(Path(path), self.temporary, whole)


class MountProblem(Exception):
    """A directory cannot be mounted at the place it is meant for; the text is the reason."""


def build(root: Path, mounts: Mapping[str, Path], view: MachineView, rebuild: bool, memory: int | None = None) -> None:
    """Writes the list of the mounts that make processes see `view` to the fstab(5) beside `root`. With `rebuild`, fills
    `root` with mount points for the entries of `/` and for `mounts`, each a directory to be seen under a name. `memory`
    is as for `MachineView.mounts`. Raises MountProblem."""
    fstab, temporary = root.with_name(root.name + ".fstab"), root.with_name(root.name + ".tmp")
    if fstab.exists():
        return
    if not rebuild:
        fstab.write_text("".join(view.mounts("", temporary, memory)))
        return
    resolved = {Path(name).resolve(): source for name, source in mounts.items()}
    in_tmp = {target: source for target, source in resolved.items() if TMP in target.parents}
    targets = {target: source for target, source in resolved.items() if target not in in_tmp}
    remade = {Path("/")}
    for target in targets:
        remade |= _remade(target)
    (root / ".old").mkdir()
    (root / "pfs").mkdir()
    # An entry that vanishes before it is mounted is no loss.
    lines = [line(*pair, ",nofail") for directory in sorted(remade) for pair in _places(directory, root, remade)]
    for target, source in targets.items():
        place = root / target.relative_to("/")
        if not target.exists():
            place.mkdir(parents=True, exist_ok=True)
        lines.append(line(source, place))
    lines += view.mounts(str(root), temporary, memory)
    for target, source in in_tmp.items():
        (temporary / target.relative_to(TMP)).mkdir(parents=True, exist_ok=True)
        lines.append(line(source, root / target.relative_to("/")))
    fstab.write_text("".join(lines))


def _remade(target: Path) -> set[Path]:
    """The directories that must be remade so that `target` exists: those above it, or none if it exists already."""
    if target.is_dir():
        return set()
    above = [each for each in target.parents if each.exists()]
    if target.exists() or not above[0].is_dir():
        raise MountProblem(f"{target} cannot be a directory: {target if target.exists() else above[0]} is a file")
    for each in above:
        with os.scandir(each) as entries:
            if sum(1 for _ in entries) > _CROWD:
                raise MountProblem(f"{target} does not exist, and {each} has too many entries to add it: make it first")
    return set(above)


def _places(directory: Path, root: Path, remade: set[Path]) -> Iterator[tuple[Path, Path]]:
    """Makes mount points for a directory's entries below `root`; yields each entry with its mount point, except for
    those that are `remade` themselves."""
    with os.scandir(directory) as entries:
        for entry in entries:
            path = Path(entry.path)
            place = root / path.relative_to("/")
            if os.path.lexists(place):
                continue
            with contextlib.suppress(FileNotFoundError):  # it may vanish meanwhile
                if entry.is_symlink():
                    place.symlink_to(path.readlink())
                    continue
                if entry.is_dir():
                    place.mkdir()
                else:
                    place.touch()
                if path in remade:
                    _resemble(place, entry.stat())
                else:
                    yield path, place


def _resemble(place: Path, found: os.stat_result) -> None:
    """Gives a directory the permissions and the owner of the one that it stands in for."""
    place.chmod(stat.S_IMODE(found.st_mode))
    if os.geteuid() == 0:
        os.chown(place, found.st_uid, found.st_gid)
