"""The files on this machine that a command's code consists of, as far as its arguments name them. Starts nothing.

A process that imports a module once does not notice a change of it, so one that is kept ends with such a change.
"""

import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from localpachd.worker.environment import PFS, EnvironmentProblem
from localpachd.worker.machine.invocation import in_pfs, program
from localpachd.worker.tasks import Task
from localpachd.worker.workplace import NotReusable

_MOST = 5_000
_INPUT = re.compile(rf"(?<![\w./-]){PFS}/(?!out(?:/|\b))\w")
_PYTHON = re.compile(r"python[0-9.]*")
_WITH_VALUE = ("-W", "-X")


def code_state(task: Task, env: Mapping[str, str]) -> str:
    """A text that changes with each file of the code of a task, whose processes have the variables `env`: the program,
    the arguments that are files, a script's directory, the package that `-m` names, and what is installed beside it.
    Raises NotReusable for code that is an input, or that cannot be found."""
    named = (*task.cmd, *task.stdin)
    cwd = os.path.normpath("/" + task.working_dir.lstrip("/"))
    if in_pfs(cwd) or any(_INPUT.search(text) for text in named):
        raise NotReusable("its command names files of its inputs, which another job may have others of")
    try:
        found, *arguments = program(task.cmd, env, cwd)
    except EnvironmentProblem as problem:
        raise NotReusable(str(problem)) from problem
    digest = blake2b(digest_size=32)
    for number, path in enumerate(_files(found, arguments, cwd, env)):
        if number >= _MOST:
            raise NotReusable(f"its code has more than {_MOST:,} files")
        digest.update(_entry(path))
    return digest.hexdigest()


def _entry(path: Path) -> bytes:
    try:
        at = path.stat()
    except OSError:  # it is gone, or was never there
        return os.fsencode(path) + b"\0\n"
    return os.fsencode(path) + f"\0{at.st_mtime_ns} {at.st_size} {at.st_ino}\n".encode()


def _files(found: str, arguments: Sequence[str], cwd: str, env: Mapping[str, str]) -> Iterator[Path]:
    yield Path(found)
    yield from (Path(cwd, each) for each in arguments if os.path.isfile(Path(cwd, each)))  # noqa: PTH113
    if not _PYTHON.fullmatch(Path(found).name):
        return
    ours = Path(found).parent == Path(sys.executable).parent
    if ours:
        yield from (Path(each) for each in sys.path if each.endswith(("site-packages", "dist-packages")))
    option, ran = _ran(arguments)
    if option == "-m":
        yield from _package(ran, cwd, env, ours)
    elif not option and os.path.isfile(Path(cwd, ran)):  # noqa: PTH113 (unlike pathlib's, it takes any text)
        yield from _below(Path(cwd, ran).parent)


def _ran(arguments: Sequence[str]) -> tuple[str, str]:
    """The option (`-m`, `-c`, or "") that tells Python what to run, and its value or the script."""
    rest = list(arguments)
    while rest:
        each = rest.pop(0)
        if each[:2] in ("-m", "-c"):
            return each[:2], each[2:] or "".join(rest[:1])
        if not each.startswith("-"):
            return "", each
        if each in _WITH_VALUE:
            del rest[:1]
    return "", ""


def _package(module: str, cwd: str, env: Mapping[str, str], ours: bool) -> Iterator[Path]:
    """The files of the outermost package of a module. Raises NotReusable if it cannot be found."""
    name = module.partition(".")[0]
    if not name:
        raise NotReusable("its command names no module")
    for place in filter(None, (cwd, *env.get("PYTHONPATH", "").split(os.pathsep))):
        if (Path(place) / name).is_dir():
            yield from _below(Path(place) / name)
            return
        if (file := Path(place) / f"{name}.py").is_file():
            yield file
            return
    importlib.invalidate_caches()
    spec = importlib.util.find_spec(name) if ours and name.isidentifier() else None
    if spec is None:
        raise NotReusable(f"the module {module} was not found")
    if spec.origin is not None and not spec.submodule_search_locations:
        yield Path(spec.origin)
    for each in spec.submodule_search_locations or ():
        yield from _below(Path(each))


def _below(directory: Path) -> Iterator[Path]:
    for place, directories, names in os.walk(directory):
        directories[:] = sorted(each for each in directories if each != "__pycache__")
        yield from (Path(place, name) for name in sorted(names))
