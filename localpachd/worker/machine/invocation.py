"""The invocation of a command on this machine: its user, working directory, program and variables. Starts nothing.

The programs that prepare a process have more rights than user code, and loaders, shells and mount(8) obey many
variables, such as LD_PRELOAD. So they get none of user code's: a shell that has lost the rights reads these from a file
in memory. As arguments everybody could read them.
"""

import grp
import os
import pwd
import re
import shlex
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from localpachd import durable_files
from localpachd.worker.environment import PFS, EnvironmentProblem
from localpachd.worker.tasks import Task

_SHELL_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
# Shells refuse to set these, or set them to something else.
_OF_SHELLS = frozenset((b"BASHOPTS", b"EUID", b"LINENO", b"OPTIND", b"PPID", b"SHELLOPTS", b"UID", b"_"))
_NEEDED = ("PATH", "LD_LIBRARY_PATH")
_READ = '. "$1"; shift; exec "$@"'


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


def tool_variables() -> dict[str, str]:
    """The variables of the programs that prepare a process: the server's own, and no more than these need, since user
    code can read them."""
    return {name: os.environ[name] for name in _NEEDED if name in os.environ}


@contextmanager
def carry_variables(
    env: Mapping[str, str], command: Sequence[str], secret: Collection[str] = ()
) -> Iterator[tuple[list[str], int]]:
    """A command line that runs `command` with the variables `env`, and a descriptor that it has to inherit, open within
    the block. Raises ValueError for text with a NUL, and EnvironmentProblem for a name that a shell cannot set if its
    value is `secret`: env(1) sets the others of these, by its arguments.
    """
    pairs = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
    if any(b"\0" in text for pair in pairs.items() for text in pair):
        raise ValueError("embedded null byte in a variable")
    others = {name for name in pairs if not _SHELL_NAME.fullmatch(name) or name in _OF_SHELLS}
    if shown := others.intersection(map(os.fsencode, secret)):
        raise EnvironmentProblem(
            f"transform.secrets: the variable {os.fsdecode(min(shown))} cannot come from a secret on this machine: use "
            "an env_var of letters, digits and _"
        )
    script = b"".join(
        b"export %s=%s\n" % (name, os.fsencode(shlex.quote(os.fsdecode(value))))
        for name, value in pairs.items()
        if name not in others
    )
    given = [f"{os.fsdecode(name)}={os.fsdecode(pairs[name])}" for name in others]
    if given:
        command = [tool("env"), "--", *given, *command]
    memory = os.memfd_create("variables")
    try:
        durable_files.write_all(memory, script)
        yield [tool("sh"), "-c", _READ, "sh", f"/dev/fd/{memory}", *command], memory
    finally:
        os.close(memory)
