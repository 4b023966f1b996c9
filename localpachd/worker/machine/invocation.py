"""The invocation of a command on this machine: its user, working directory and program. Starts nothing."""

import grp
import os
import pwd
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from localpachd.worker.environment import PFS, EnvironmentProblem
from localpachd.worker.tasks import Task


@dataclass(frozen=True, slots=True)
class MachineUser:
    """The user that runs a command: `options` of setpriv(1), the owner of its files, its name and its home."""

    options: tuple[str, ...] = ()
    owner: tuple[int, int] | None = None
    name: str = ""
    home: str = ""

    def variables(self, temporary: str) -> Iterator[tuple[str, str]]:
        """The variables that name the user, if it is not the server's. `temporary` stands in for a home that is
        missing."""
        if self.owner is not None:
            yield from (("USER", self.name), ("LOGNAME", self.name))
            yield "HOME", self.home if Path(self.home).is_dir() else temporary


def working_directory(task: Task, shown: str, default: str) -> str:
    """The directory where commands start: `transform.working_dir` below `/`, or `default` in place of the image's."""
    if not task.working_dir:
        return default
    wanted = os.path.normpath("/" + task.working_dir.lstrip("/"))
    if in_pfs(wanted):
        return f"{shown}{wanted.removeprefix(PFS)}"
    if not Path(wanted).is_dir():
        raise EnvironmentProblem(f"transform.working_dir: {wanted} is not a directory on this machine")
    return wanted


def user(name: str) -> MachineUser:
    """The user of this machine that `transform.user` (`user` or `user:group`, by name or number) names."""
    if not name:
        return MachineUser()
    account, _, group = name.partition(":")
    try:
        found = pwd.getpwuid(int(account)) if account.isdecimal() else pwd.getpwnam(account)
        gid = found.pw_gid
        if group:
            gid = int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid
    except KeyError as missing:
        raise EnvironmentProblem(f"transform.user: {name} not found on this machine") from missing
    if (found.pw_uid, gid) == (os.geteuid(), os.getegid()):
        return MachineUser()
    if os.geteuid() != 0:
        raise EnvironmentProblem(f"transform.user: localpachd must run as root to run commands as {name}")
    options = ("--reuid", str(found.pw_uid), "--regid", str(gid), "--init-groups")
    return MachineUser(options, (found.pw_uid, gid), found.pw_name, found.pw_dir)


def program(cmd: tuple[str, ...], env: Mapping[str, str], cwd: str) -> tuple[str, ...]:
    """The command with the path of its program. Raises EnvironmentProblem, in Go's words, for a missing program."""
    if not cmd:
        raise EnvironmentProblem("invalid pipeline transform, no command specified")
    name = cmd[0]
    if "/" not in name:
        found = shutil.which(name, path=env["PATH"])
        if found is None:
            raise EnvironmentProblem(f'exec: "{name}": executable file not found in $PATH')
        return (found, *cmd[1:])
    place = os.path.join(cwd, name)  # noqa: PTH118 (pathlib would drop what makes it relative)
    if not in_pfs(place):  # /pfs exists for the process only
        if not Path(place).exists():
            raise EnvironmentProblem(f"fork/exec {name}: no such file or directory")
        if Path(place).is_dir() or not os.access(place, os.X_OK):
            raise EnvironmentProblem(f"fork/exec {name}: permission denied")
    return cmd


def in_pfs(path: str) -> bool:
    """Whether a path lies in `/pfs`."""
    return path == PFS or path.startswith(f"{PFS}/")


def tool(name: str) -> str:
    """The path of a program of this machine, where the server's own PATH leads; the name itself if it is missing."""
    return shutil.which(name) or name
