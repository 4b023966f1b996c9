"""Command lines of unshare, mount and setpriv that give a process its `/pfs` and end it when the server ends.

Linux's own tools do it all, anew for each process: nothing persists between datums that could leak or break. They have
more rights than the process will have, so they are the server's programs, wherever the process's PATH leads. Knows no
datums.
"""

import logging
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from localpachd.worker.environment import PFS, PFS_VARIABLE
from localpachd.worker.machine import machine_view
from localpachd.worker.machine.invocation import tool
from localpachd.worker.machine.machine_view import MachineView

_log = logging.getLogger(__name__)

_PROBE_SECONDS = 60  # a busy machine must not lead to a weaker way
EVERYTHING = MachineView()
"""Nothing is hidden but the machine's `/tmp`."""

# "$1" is the directory to be seen as /pfs, "$2" the working directory, "$3" the prepared root; then the command.
_BIND = '{mount} -n --bind "$1" /pfs && {mount} -n -a -T "$3.fstab" || exit 126'
# Where the machine has no /pfs to mount on, its root is rebuilt from bind mounts below a directory with a /pfs.
_REBUILD = (
    '{mount} -n --rbind "$3" "$3" && {mount} -n -a -T "$3.fstab" && {mount} -n --bind "$1" "$3/pfs" && cd "$3"'
    " && {pivot_root} . .old && {umount} -n -l /.old || exit 126"
)
# A shell that stays keeps the user's process from being process 1, which no signal ends by default.
_ENTER = 'cd -- "$2" || exit 126; shift 3; '
_STAY = '"$@"; exit $?'
_EXEC = 'exec "$@"'

# Where processes have no number space of their own, a watcher among them kills them all when our end of a pipe closes.
# The group is named by its leader, so that no other group is hit should this shell not lead one.
_WATCH = '(read -r _ < "$1"; kill -s KILL -- "-$$") > /dev/null 2>&1 & cd -- "$2" || exit 126; shift 2; exec "$@"'

_PID = ("-p", "-f", "--kill-child", "--mount-proc")
_OWN_MEMORY = ("-i",)
_KEEP_USER = ("-U", "-c", "--keep-caps")
_CANDIDATES: tuple[tuple[str, ...], ...] = (
    ("-m", *_PID),
    ("-m",),
    (*_KEEP_USER, "-m", *_PID),
    (*_KEEP_USER, "-m"),
    ("-U", "-r", "-m", *_PID),
    ("-U", "-r", "-m"),
)
# What a program that runs as root expects to be allowed; without CAP_SYS_ADMIN it cannot undo the mounts. These are
# Docker's, without those for devices, raw packets, other roots and capabilities of files.
_OF_ROOT = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+net_bind_service"
_NO_CAPABILITIES = ("--inh-caps=-all", "--ambient-caps=-all")


@dataclass(frozen=True, slots=True)
class Confinement:
    """A way of starting processes that works on this machine.

    `flags` are unshare's; () when processes see the machine as it is and have no `/pfs`. With `rebuild` the root
    directory is assembled from mounts. `drops`: whether processes that are root can be denied capabilities.
    """

    flags: tuple[str, ...] = ()
    rebuild: bool = False
    drops: bool = True

    @property
    def mounts(self) -> bool:
        """Whether processes see their own `/pfs`."""
        return bool(self.flags)

    @property
    def own_processes(self) -> bool:
        """Whether a command has its own process numbers, so that no descendant can outlive it."""
        return "-p" in self.flags

    @property
    def own_memory(self) -> bool:
        """Whether a command has its own shared memory, which goes with it."""
        return "-i" in self.flags

    def shown(self, pfs: Path) -> str:
        """The path of the directory `pfs` as a process sees it."""
        return PFS if self.mounts else str(pfs)

    def prepare(
        self, root: Path, mounts: Mapping[str, Path] | None = None, view: MachineView = EVERYTHING, memory: int = 0
    ) -> None:
        """Prepares the mounts that processes see: `view`, and with `rebuild` `root` as their root directory. Files in
        their shared memory may have `memory` bytes, half of the machine's memory for 0.

        Each directory of `mounts` will be seen under its name. Raises MountProblem where that is impossible.
        """
        if self.mounts:
            machine_view.build(root, mounts or {}, view, self.rebuild, memory if self.own_memory else None)

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
        inherited read end of a pipe whose other end closes when this process dies. `before` is a command that runs the
        rest as its arguments, inside, before rights are dropped.
        """
        inner = [*before, *self._rights(user), *argv]
        if self.mounts:
            mounting = _with_tools(_REBUILD if self.rebuild else _BIND)
            script = f"{mounting}; {_ENTER}{_STAY if self.own_processes else _EXEC}"
            inner = [tool("unshare"), *self.flags, tool("sh"), "-c", script, "sh", str(pfs), cwd, str(root), *inner]
            cwd = "/"
        if self.own_processes:
            return [tool("setpriv"), "--pdeathsig", "KILL", "--", *inner]
        return [tool("sh"), "-c", _WATCH, "sh", f"/dev/fd/{lifeline}", cwd, *inner]

    def _rights(self, user: Sequence[str]) -> list[str]:
        """The command that takes all rights from the rest of a command line but those that it needs, and changes the
        user."""
        if not self.mounts and shutil.which("setpriv") is None:
            return list[str]()
        is_root = not user and (os.geteuid() == 0 or "-r" in self.flags)
        may_drop = self.drops and (os.geteuid() == 0 or "-U" in self.flags)
        bounding = ["--bounding-set", _OF_ROOT if is_root else "-all"] if may_drop else []
        return [tool("setpriv"), *user, "--no-new-privs", *_NO_CAPABILITIES, *bounding, "--"]


def detect(scratch: Path) -> Confinement:
    """The best confinement that works here, found by trials in `scratch`; warns in the server's log if `/pfs` is
    impossible."""
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        _warn("unshare(1) and mount(1) of util-linux were not found")
        return _unconfined()
    rebuild = not Path(PFS).is_dir()
    complaints = ""
    for flags in ((*flags, *own) for flags in _CANDIDATES for own in (_OWN_MEMORY, ())):
        candidate = Confinement(flags, rebuild)
        if complaints := _complaints(candidate, scratch):
            continue
        if not candidate.own_memory:
            _log.warning(
                "user code shares /dev/shm with this machine, and files in it do not count towards "
                "resource_limits.memory: no other one could be mounted"
            )
        return candidate
    _warn(complaints)
    return _unconfined()


def _with_tools(script: str) -> str:
    return script.format(**{name: shlex.quote(tool(name)) for name in ("mount", "umount", "pivot_root")})


def _unconfined() -> Confinement:
    """Processes that see the machine as it is. Root lacks the capability to drop others in some containers."""
    rights = Confinement()._rights(())
    asked = subprocess.run((*rights, "true"), capture_output=True, check=False) if rights else None
    return Confinement(drops=asked is None or asked.returncode == 0)


def with_network(confinement: Confinement, scratch: Path) -> Confinement | None:
    """The same confinement with a network of its own, which has only a loopback; None where that is impossible."""
    if not confinement.mounts:
        return None
    own = replace(confinement, flags=(*confinement.flags, "-n"))
    return None if _complaints(own, scratch) else own


def _warn(why: str) -> None:
    _log.warning(
        "user code cannot have %s on this machine: %s. The variable %s names the directory that stands in for it; code "
        "that contains the path %s will not find its files. Nothing hides the server's files and other processes from "
        "it but their permissions (see SECURITY.md).",
        PFS, why, PFS_VARIABLE, PFS,
    )  # fmt: skip


def _complaints(candidate: Confinement, scratch: Path) -> str:
    """The error of a trivial command under this confinement, in a directory of its own; "" when it works."""
    lifeline = os.pipe()
    try:
        with tempfile.TemporaryDirectory(dir=scratch, prefix="probe-") as directory:
            trial = Path(directory)
            (trial / "pfs").mkdir()
            (trial / "pfs" / "probe").touch()
            (trial / "root").mkdir()
            candidate.prepare(trial / "root")
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
