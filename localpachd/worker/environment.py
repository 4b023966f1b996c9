"""What surrounds user code: variables, working directory, user, and where its program is. Starts nothing."""

import grp
import os
import pwd
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from localpachd.worker.gpus import visible
from localpachd.worker.namespaces import PFS, PFS_VARIABLE
from localpachd.worker.tasks import DatumWork, Task

_LONGEST_TEMPORARY = 64  # sockets are made in there, and their paths may have 107 bytes
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

WORKER_PORT = "PPS_WORKER_GRPC_PORT"
"""The variable by which a process finds the port for its NextDatum calls."""

# Of the server's own variables these would mislead user code or the shell that starts it.
_NOT_PASSED_ON = frozenset({PFS_VARIABLE, "OLDPWD", WORKER_PORT, "CUDA_VISIBLE_DEVICES"})


class EnvironmentProblem(Exception):
    """The task cannot be run as it is; the text is the reason."""


@dataclass(frozen=True, slots=True)
class User:
    """Who runs a command: `options` of setpriv(1), and the owner of its files."""

    options: tuple[str, ...] = ()
    owner: tuple[int, int] | None = None


def machine_variables(task: Task, shown: str, temporary: str, gpus: tuple[str, ...]) -> dict[str, str]:
    """The variables of a worker's processes on the machine itself, without those of any datum.

    The machine takes the place of the container image, so the server's own variables come first. `python3` is the
    server's interpreter. `shown` is the path by which processes see their `/pfs`.
    """
    env = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
    env["PYTHONUNBUFFERED"] = "1"  # what is printed should be in the log even when the process is killed
    if len(temporary) <= _LONGEST_TEMPORARY:
        env["TMPDIR"] = temporary
    env |= visible(gpus)
    env |= task.env
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', os.defpath)}"
    if shown != PFS:
        env[PFS_VARIABLE] = shown
    return env


def container_variables(task: Task, image: Iterable[str], gpus: int) -> dict[str, str]:
    """The variables of a worker's processes in a container of an image that has these `KEY=value` of its own, without
    those of any datum. However the machine numbers the GPUs that a container was given, it finds them numbered from 0.
    """
    env = dict(pair.partition("=")[::2] for pair in image)
    env["PYTHONUNBUFFERED"] = "1"  # what is printed should be in the log even when the process is killed
    return env | visible(tuple(str(number) for number in range(gpus))) | dict(task.env)


def datum_variables(work: DatumWork, shown: str) -> dict[str, str]:
    """A datum's own variables, its paths as processes see them."""
    if shown == PFS:
        return dict(work.env)
    names = {each.name for each in work.inputs}
    return {
        name: f"{shown}{value.removeprefix(PFS)}" if name in names and value.startswith(f"{PFS}/") else value
        for name, value in work.env.items()
    }


def working_directory(task: Task, shown: str, default: str) -> str:
    """Where commands start: `transform.working_dir` below `/`, or `default` in the place of the image's own."""
    if not task.working_dir:
        return default
    wanted = os.path.normpath("/" + task.working_dir.lstrip("/"))
    if in_pfs(wanted):
        return f"{shown}{wanted.removeprefix(PFS)}"
    if not Path(wanted).is_dir():
        raise EnvironmentProblem(f"transform.working_dir: {wanted} is not a directory on this machine")
    return wanted


def user(name: str) -> User:
    """Who `transform.user` (`user` or `user:group`, by name or number) is on this machine."""
    if not name:
        return User()
    account, _, group = name.partition(":")
    try:
        found = pwd.getpwuid(int(account)) if account.isdecimal() else pwd.getpwnam(account)
        gid = found.pw_gid
        if group:
            gid = int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid
    except KeyError as missing:
        raise EnvironmentProblem(f"transform.user: {name} not found on this machine") from missing
    if (found.pw_uid, gid) == (os.geteuid(), os.getegid()):
        return User()
    if os.geteuid() != 0:
        raise EnvironmentProblem(f"transform.user: localpachd must run as root to run commands as {name}")
    options = ("--reuid", str(found.pw_uid), "--regid", str(gid), "--init-groups")
    return User(options, (found.pw_uid, gid))


def program(cmd: tuple[str, ...], env: Mapping[str, str], cwd: str) -> tuple[str, ...]:
    """The command with its program found. Raises EnvironmentProblem, in Go's words, when there is no such program."""
    if not cmd:
        raise EnvironmentProblem("invalid pipeline transform, no command specified")
    name = cmd[0]
    if "/" not in name:
        found = shutil.which(name, path=env["PATH"])
        if found is None:
            raise EnvironmentProblem(f'exec: "{name}": executable file not found in $PATH')
        return (found, *cmd[1:])
    place = os.path.join(cwd, name)  # noqa: PTH118 (pathlib would drop what makes it relative)
    if not in_pfs(place):  # that exists for the process only
        if not Path(place).exists():
            raise EnvironmentProblem(f"fork/exec {name}: no such file or directory")
        if Path(place).is_dir() or not os.access(place, os.X_OK):
            raise EnvironmentProblem(f"fork/exec {name}: permission denied")
    return cmd


def in_pfs(path: str) -> bool:
    """Whether a path lies in `/pfs`."""
    return path == PFS or path.startswith(f"{PFS}/")


def through_shell(env: Mapping[str, str], command: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Variables and command such that shells in between lose nothing.

    A shell drops variables whose names it could not set itself, as of inputs with a dash: env(1) sets these.
    """
    plain = {name: value for name, value in env.items() if _SHELL_NAME.fullmatch(name)}
    others = [f"{name}={value}" for name, value in env.items() if name not in plain]
    return plain, ("env", *others, *command) if others else command
