"""Transcripts in documents: indented blocks of commands (`$ ...`) with their output, and running them again. Knows no
fixture."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_ID = re.compile(r"\b[0-9a-f]{32}(?:[0-9a-f]{32})?\b")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_VARYING = {
    r"(Less than a|About a|About an|\d+) (second|minute|hour)s?( ago)?": "AGE",
    r"\b[\d.]+(B|KiB|MiB)": "SIZE",
    r"\d{4}-\d\d-\d\dT[\d:.]+Z": "TIME",
    r"\b2\.\d+\.\d+": "VERSION",
    _ID.pattern: "ID",
}
_HEADER = re.compile(r"FOUND IN COMMITS|SIZE \(MASTER\)|STATE / LAST JOB|[A-Z]+")
_DONE = "-- done --"

_COLUMNS_BY_VERSION = {"ALERTS", "BRANCH", "CREATED", "CREATOR", "TYPE"}
"""The columns that only some versions of pachctl print."""
_LINES_BY_VERSION = ("Created at:", "Description:", "Original Branch:", "Repo deleted.")
"""The beginnings of the lines that only some versions of pachctl print."""


@dataclass(frozen=True)
class Step:
    """A command and the lines of its output."""

    command: str
    output: tuple[str, ...]


def steps(document: str) -> list[Step]:
    """The commands of a document's transcripts, in order."""
    found: list[Step] = []
    within = False
    for line in document.splitlines():
        if line.startswith("    $ "):
            found.append(Step(line[6:], ()))
            within = True
        elif within and line.startswith("    "):
            found[-1] = Step(found[-1].command, (*found[-1].output, line[4:]))
        elif line:
            within = False
    return found


class Shell:
    """A bash that runs commands one by one. Everything that they started ends with it."""

    def __init__(self, directory: Path, variables: Mapping[str, str]) -> None:
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            cwd=directory, env={**os.environ, **variables}, text=True, start_new_session=True,
        )  # fmt: skip

    def run(self, command: str, lines: int = 0) -> list[str]:
        """The lines that a command prints. One in the background has printed what it should after `lines`."""
        assert self._bash.stdin is not None and self._bash.stdout is not None
        self._bash.stdin.write(f"{command}\n")
        self._bash.stdin.flush()
        printed = [self._bash.stdout.readline().rstrip("\n") for _ in range(lines if command.endswith("&") else 0)]
        self._bash.stdin.write(f"echo '{_DONE}'\n")
        self._bash.stdin.flush()
        for line in self._bash.stdout:
            if line.rstrip("\n") == _DONE:
                return printed
            printed.append(line.rstrip("\n"))
        raise AssertionError(f"the shell has ended at {command}: {printed}")

    def close(self) -> None:
        """Ends it and all that runs in it."""
        os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.wait()
        for pipe in (self._bash.stdin, self._bash.stdout):
            if pipe is not None:
                pipe.close()


@contextlib.contextmanager
def checkout_shell(directory: Path, pachctl: str, linked: Sequence[str]) -> Iterator[Shell]:
    """A shell in a checkout, made below a directory, with this environment and these directories of the project; its
    `pachctl` is the program of that name or path."""
    checkout, programs = directory / "checkout", directory / "programs"
    for each in (checkout, programs):
        each.mkdir()
    for name in linked:
        (checkout / name).symlink_to(_ROOT / name)
    (checkout / ".venv").symlink_to(sys.prefix)
    (programs / "pachctl").symlink_to(Path(shutil.which(pachctl) or pachctl).absolute())
    path = f"{programs}:{os.environ['PATH']}"
    variables = {"PATH": path, "PACH_CONFIG": str(directory / "config.json")}
    with contextlib.closing(Shell(checkout, variables)) as shell:
        yield shell


class Ids:
    """The ids of a document and those of the run at hand, which stand for each other."""

    def __init__(self) -> None:
        self._now: dict[str, str] = {}

    def learn(self, said: str, printed: str) -> None:
        """Notes the ids in an output. Raises AssertionError if they are not those noted before."""
        for known, now in zip(_ID.findall(said), _ID.findall(printed), strict=True):
            assert self._now.setdefault(known, now) == now, f"{known} was {self._now[known]} and is {now}"
        assert len({*self._now.values()}) == len(self._now), "two ids of the document are one"

    def put(self, text: str) -> str:
        """A text of the document with the ids of the run."""
        return _ID.sub(lambda found: self._now[found[0]], text)


def comparable(said: Sequence[str], printed: Sequence[str]) -> tuple[object, object]:
    """Two outputs of a command in a form that is equal if they differ only in ids, ages, sizes, and the columns and
    lines that versions of pachctl do not share."""
    tables = rows(said), rows(printed)
    if not tables[0] or not tables[1]:
        return _settled(said), _settled(printed)
    names, others = ({*table[0]} for table in tables)
    unshared = (names ^ others) & _COLUMNS_BY_VERSION
    kept = [[{name: row[name] for name in row.keys() - unshared} for row in table] for table in tables]
    return kept[0], kept[1]


def _settled(lines: Sequence[str]) -> list[str]:
    """Lines without what may differ: colours, ids, ages, sizes, versions, empty lines and spaces at ends."""
    settled = []
    for line in lines:
        text = _COLOUR.sub("", line)
        for pattern, word in _VARYING.items():
            text = re.sub(pattern, word, text)
        settled.append(text.rstrip())
    return [line for line in settled if line and not line.startswith(_LINES_BY_VERSION)]


def rows(lines: Sequence[str]) -> list[dict[str, str]]:
    """A table's rows, settled, by the names of their columns, the row of names included; none if it is not a table."""
    plain = [text for line in lines if (text := _COLOUR.sub("", line)).strip()]
    if not plain or not re.fullmatch(rf"(?:(?>{_HEADER.pattern})\s*){{2,}}", plain[0]):
        return []
    starts = [each.start() for each in _HEADER.finditer(plain[0])]
    cut = [
        line.split("\t") if "\t" in plain[0] else [line[i:j] for i, j in pairwise([*starts, None])] for line in plain
    ]
    names = [name.strip() for name in cut[0]]
    return [{name: " ".join(_settled([cell])) for name, cell in zip(names, cells, strict=True)} for cells in cut]
