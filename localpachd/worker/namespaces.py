"""How a process gets to see `/pfs`, and how it dies with us: the command lines of unshare, mount and setpriv.

Linux's own tools do it all, started per process: nothing persists between datums that could leak or break. Knows no
datums.
"""

import logging
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

_log = logging.getLogger(__name__)

PFS = "/pfs"
PFS_VARIABLE = "LOCALPACHD_PFS"
"""Names, to processes that cannot have `/pfs`, the directory that stands for it."""

_PROBE_SECONDS = 20
_CROWD = 1000
"""Entries of a directory that are not mounted one by one any more."""

# "$1" is the directory to be seen as /pfs, "$2" the working directory, "$3" the prepared root; then the command.
_BIND = 'mount -n --bind "$1" /pfs || exit 126'
# Where the machine has no /pfs to mount on, its root is rebuilt from bind mounts below a directory that has one.
_REBUILD = (
    'mount -n --rbind "$3" "$3" && mount -n -a -T "$3.fstab" && mount -n --bind "$1" "$3/pfs" && cd "$3"'
    " && pivot_root . .old && umount -n -l /.old || exit 126"
)
# A shell that stays keeps the user's process from being process 1, which no signal ends by default.
_ENTER = 'cd -- "$2" || exit 126; shift 3; '
_STAY = '"$@"; exit $?'
_EXEC = 'exec "$@"'

# Where processes have no number space of their own, a watcher among them kills them all when our end of a pipe closes.
# The group is named by its leader, so that nobody else's is hit should this shell not lead one.
_WATCH = '(read -r _ < "$1"; kill -s KILL -- "-$$") > /dev/null 2>&1 & cd -- "$2" || exit 126; shift 2; exec "$@"'

_PID = ("-p", "-f", "--kill-child", "--mount-proc")
_KEEP_USER = ("-U", "-c", "--keep-caps")
_CANDIDATES: tuple[tuple[str, ...], ...] = (
    ("-m", *_PID),
    ("-m",),
    (*_KEEP_USER, "-m", *_PID),
    (*_KEEP_USER, "-m"),
    ("-U", "-r", "-m", *_PID),
    ("-U", "-r", "-m"),
)
_DROP_CAPABILITIES = ("setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--")


class MountProblem(Exception):
    """A directory cannot be mounted where it should be; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """A way of starting processes that works on this machine.

    `flags` are unshare's; () when processes see the machine as it is and have no `/pfs`. `rebuild` says that the root
    directory is put together anew.
    """

    flags: tuple[str, ...] = ()
    rebuild: bool = False

    @property
    def mounts(self) -> bool:
        """Whether processes see their own `/pfs`."""
        return bool(self.flags)

    @property
    def own_processes(self) -> bool:
        """Whether a command has its own process numbers, so that no descendant can outlive it."""
        return "-p" in self.flags

    def shown(self, pfs: Path) -> str:
        """The path by which a process sees the directory `pfs`."""
        return PFS if self.mounts else str(pfs)

    def prepare(self, root: Path, mounts: Mapping[str, Path] | None = None) -> None:
        """Makes `root` ready to be a process's root directory, if that is how it gets `/pfs`.

        With `rebuild`, each directory of `mounts` will be seen under its name. Raises MountProblem where it cannot be.
        """
        if self.rebuild:
            _skeleton(root, mounts or {})

    def command(
        self,
        argv: Sequence[str],
        pfs: Path,
        cwd: str,
        root: Path,
        user: Sequence[str],
        lifeline: int,
        before: Sequence[str] = (),
    ) -> list[str]:
        """The command line that runs `argv` in `cwd` with `pfs` as its `/pfs`. A shell is always part of it.

        `root` was given to `prepare`; `user` are setpriv's options that change the user, or (); `lifeline` is the
        inherited read end of a pipe whose other end closes when this process dies. `before` is a command that runs
        all of this as its arguments, with every right that there is inside.
        """
        inner = list(argv)
        if user:
            inner = ["setpriv", *user, "--", *inner]
        elif "--keep-caps" in self.flags:
            inner = [*_DROP_CAPABILITIES, *inner]
        inner = [*before, *inner]
        if self.mounts:
            script = f"{_REBUILD if self.rebuild else _BIND}; {_ENTER}{_STAY if self.own_processes else _EXEC}"
            inner = ["unshare", *self.flags, "sh", "-c", script, "sh", str(pfs), cwd, str(root), *inner]
            cwd = "/"
        if self.own_processes:
            return ["setpriv", "--pdeathsig", "KILL", "--", *inner]
        return ["sh", "-c", _WATCH, "sh", f"/dev/fd/{lifeline}", cwd, *inner]


def detect(scratch: Path) -> Confinement:
    """The best confinement that works here, found by trying; says in the server's log when there is no `/pfs`.

    `scratch` is a directory for the trial.
    """
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        _warn("unshare(1) and mount(1) of util-linux were not found")
        return Confinement()
    rebuild = not Path(PFS).is_dir()
    complaints = ""
    with tempfile.TemporaryDirectory(dir=scratch, prefix="probe-") as directory:
        trial = Path(directory)
        (trial / "pfs").mkdir()
        (trial / "pfs" / "probe").touch()
        (trial / "root").mkdir()
        for flags in _CANDIDATES:
            candidate = Confinement(flags, rebuild)
            candidate.prepare(trial / "root")
            complaints = _complaints(candidate, trial)
            if not complaints:
                return candidate
    _warn(complaints)
    return Confinement()


def with_network(confinement: Confinement, scratch: Path) -> Confinement | None:
    """The same confinement with a network of its own, which has nothing but a loopback; None where that cannot be."""
    if not confinement.mounts:
        return None
    own = replace(confinement, flags=(*confinement.flags, "-n"))
    with tempfile.TemporaryDirectory(dir=scratch, prefix="probe-") as directory:
        trial = Path(directory)
        (trial / "pfs").mkdir()
        (trial / "pfs" / "probe").touch()
        (trial / "root").mkdir()
        own.prepare(trial / "root")
        return None if _complaints(own, trial) else own


def _warn(why: str) -> None:
    _log.warning(
        "user code cannot be given %s on this machine: %s. Its environment names the directory that stands for %s in "
        "%s instead; code that has %s written into it will not find its files.",
        PFS, why, PFS, PFS_VARIABLE, PFS,
    )  # fmt: skip


def _complaints(candidate: Confinement, trial: Path) -> str:
    """What goes wrong when a trivial command is run so; "" when it works."""
    lifeline = os.pipe()
    try:
        return _tried(candidate, trial, lifeline[0])
    finally:
        for end in lifeline:
            os.close(end)


def _tried(candidate: Confinement, trial: Path, lifeline: int) -> str:
    test = ["sh", "-c", "test -f /pfs/probe && test -d /proc/self && : > /pfs/written"]
    command = candidate.command(test, trial / "pfs", "/", trial / "root", (), lifeline)
    try:
        tried = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
            process_group=0,
            pass_fds=(lifeline,),
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        return str(failure)
    if tried.returncode == 0:
        return ""
    said = tried.stderr.decode(errors="replace").strip().splitlines()
    return said[-1] if said else f"the trial ended with exit status {tried.returncode}"


def _skeleton(root: Path, mounts: Mapping[str, Path]) -> None:
    """Fills `root` with empty places for the entries of `/` and for `mounts`, and a list of what to mount on them."""
    fstab = root.with_name(root.name + ".fstab")
    if fstab.exists():
        return
    targets = {Path(name).resolve(): source for name, source in mounts.items()}
    remade = {Path("/")}
    for target in targets:
        remade |= _remade(target)
    (root / ".old").mkdir()
    (root / "pfs").mkdir()
    lines = [_line(*pair) for directory in sorted(remade) for pair in _places(directory, root, remade)]
    for target, source in targets.items():
        place = root / target.relative_to("/")
        if not target.exists():
            place.mkdir(parents=True, exist_ok=True)
        lines.append(_line(source, place))
    fstab.write_text("".join(lines))


def _remade(target: Path) -> set[Path]:
    """The directories that cannot be taken over as they are, for `target` to be there: those above it, if it is not."""
    if target.is_dir():
        return set()
    above = [each for each in target.parents if each.exists()]
    if target.exists() or not above[0].is_dir():
        raise MountProblem(f"{target} cannot be a directory: {target if target.exists() else above[0]} is a file")
    for each in above:
        with os.scandir(each) as entries:
            if sum(1 for _ in entries) > _CROWD:
                raise MountProblem(f"{target} is not there, and {each} holds too much to make it: make it yourself")
    return set(above)


def _places(directory: Path, root: Path, remade: set[Path]) -> Iterator[tuple[Path, Path]]:
    """Makes the empty places for a directory's entries below `root`; yields each entry with its place, but for those
    that are `remade` themselves."""
    with os.scandir(directory) as entries:
        for entry in entries:
            path = Path(entry.path)
            place = root / path.relative_to("/")
            if os.path.lexists(place):
                continue
            if entry.is_symlink():
                place.symlink_to(path.readlink())
                continue
            if entry.is_dir():
                place.mkdir()
            else:
                place.touch()
            if path not in remade:
                yield path, place
                continue
            found = entry.stat()
            place.chmod(stat.S_IMODE(found.st_mode))
            if os.geteuid() == 0:
                os.chown(place, found.st_uid, found.st_gid)


def _line(source: Path, place: Path) -> str:
    """The line of fstab(5) that shows `source` at `place`."""
    return f"{_escaped(str(source))} {_escaped(str(place))} none rbind 0 0\n"


def _escaped(path: str) -> str:
    """A path as fstab(5) writes it."""
    return "".join(f"\\{ord(character):03o}" if character in " \t\n\\#" else character for character in path)
