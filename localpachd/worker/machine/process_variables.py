"""The variables of user code, carried past the programs that prepare its process.

Those have more rights than user code, and loaders, shells and mount(8) obey many variables, such as LD_PRELOAD. So they
get none of user code's: a shell that has lost the rights reads these from a file in memory. As arguments everybody
could read them. Starts nothing.
"""

import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from localpachd import durable_files
from localpachd.worker.environment import EnvironmentProblem
from localpachd.worker.machine.invocation import tool

_SHELL_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
# Shells refuse to set these, or set them to something else.
_OF_SHELLS = frozenset((b"BASHOPTS", b"EUID", b"LINENO", b"OPTIND", b"PPID", b"SHELLOPTS", b"UID", b"_"))
_NEEDED = ("PATH", "LD_LIBRARY_PATH")
_READ = '. "$1"; shift; exec "$@"'


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
