"""The tar of an exported library: the names, the order and the form of its members. Knows no server.

    library.json               the commits, in the order in which they were made
    library.sha256
    images/<commit>.json       the files that the commit removed
    images/<commit>/cat.jpg    a file that it wrote; a hard link has the content of an earlier commit's file
    images/<commit>.sha256     the end of the commit; the next one follows
    outputs/<pipeline>.json    the hashes of a pipeline's output
    outputs.sha256             the end

A member *.sha256 holds the hashes of all members since the one before it, as sha256sum(1) writes them. So each commit
can be checked before it is finished, and a stream that ends early is recognised.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter
from pydantic_core import from_json

FORMAT = 2
LIBRARY = "library"
OUTPUTS = "outputs"
SUMS = ".sha256"
FACTS = ".json"

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


@dataclass(frozen=True, slots=True)
class BundleCommit:
    """A commit of a source repo: its id where it was exported, its start (ISO 8601, UTC), its description, and the
    number and the bytes of the files that it wrote."""

    repo: str
    id: str
    started: str
    description: str
    files: int
    bytes: int

    @property
    def name(self) -> str:
        """The directory of its files in the tar."""
        return f"{self.repo}/{self.id}"

    def __str__(self) -> str:
        return f"commit {self.id} of {self.repo} ({self.started[:19]})"


@dataclass(frozen=True, slots=True)
class PipelineOutput:
    """A pipeline's output for the last commits: a hash of its code, its commit, and the sha256 of every file by
    path."""

    pipeline: str
    code: str
    commit: str
    files: Mapping[str, str]

    @property
    def name(self) -> str:
        """Its member without the suffix."""
        return f"{OUTPUTS}/{self.pipeline}"


@dataclass(frozen=True, slots=True)
class CommitList:
    """The value in library.json."""

    format: int
    commits: tuple[BundleCommit, ...]


@dataclass(frozen=True, slots=True)
class CommitRemovals:
    """The value in a commit's own member: the paths that it removed."""

    removed: tuple[str, ...]


Value = TypeVar("Value")

_form: Callable[[type], TypeAdapter[Any]] = cache(TypeAdapter)


def text(value: CommitList | CommitRemovals | PipelineOutput) -> bytes:
    """The content of the member of a value."""
    return _form(type(value)).dump_json(value, indent=1) + b"\n"


def parse(kind: type[Value], text: bytes) -> Value:
    """The value in a member. Raises ValueError for anything else."""
    found: Value = _form(kind).validate_json(text, strict=True)
    return found


def format_of(text: bytes) -> object:
    """The format that library.json names. Raises KeyError, TypeError or ValueError if it names none."""
    named: object = from_json(text)["format"]
    return named


def sums_text(sums: Mapping[str, str]) -> bytes:
    """The content of a member *.sha256, from the hashes of members by name."""
    return "".join(f"{sha256}  {name}\n" for name, sha256 in sums.items()).encode()


def sums(text: bytes) -> dict[str, str]:
    """The hashes in a member *.sha256 by the names of members. Raises ValueError for anything else."""
    found = {}
    for line in text.decode().splitlines():
        parts = _LINE.fullmatch(line)
        if parts is None:
            raise ValueError(f"{line!r} is not a line of sha256sum")
        found[parts[2]] = parts[1]
    return found
