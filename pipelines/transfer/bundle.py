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

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

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


def library_text(commits: Sequence[BundleCommit]) -> bytes:
    """The content of library.json."""
    return _json({"format": FORMAT, "commits": [asdict(each) for each in commits]})


def library(text: bytes) -> tuple[BundleCommit, ...]:
    """The commits in library.json. Raises KeyError, TypeError or ValueError for anything else."""
    return tuple(_commit(**each) for each in _object(text)["commits"])


def format_of(text: bytes) -> int:
    """The format that library.json names. Raises KeyError, TypeError or ValueError if it names none."""
    return _number(_object(text)["format"])


def removed_text(paths: Sequence[str]) -> bytes:
    """The content of a commit's own member."""
    return _json({"removed": list(paths)})


def removed(text: bytes) -> tuple[str, ...]:
    """The paths in a commit's own member. Raises KeyError, TypeError or ValueError for anything else."""
    return tuple(_text(each) for each in _object(text)["removed"])


def output_text(output: PipelineOutput) -> bytes:
    """The content of a pipeline's member."""
    return _json(asdict(output))


def output(text: bytes) -> PipelineOutput:
    """The output in a pipeline's member. Raises KeyError, TypeError or ValueError for anything else."""
    read = _object(text)
    files = {_text(path): _text(sha256) for path, sha256 in dict(read.pop("files")).items()}
    return PipelineOutput(files=files, **{name: _text(value) for name, value in read.items()})


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


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"


def _object(text: bytes) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(read, dict):
        raise TypeError(f"{read!r} is not an object")
    return read


def _commit(files: Any, bytes: Any, **texts: Any) -> BundleCommit:
    return BundleCommit(
        files=_number(files), bytes=_number(bytes), **{name: _text(value) for name, value in texts.items()}
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not a number")
    return value
