"""The directory of an exported library: every commit of its source repos with its changes, the content by its sha256,
and the hashes of the pipelines' outputs. Knows no server."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipelines.errors import LookalikeError

_FORMAT = 1
_MANIFEST = "manifest.json"
_OBJECTS = "objects"


@dataclass(frozen=True, slots=True)
class ExportedChange:
    """A file that a commit changed: the sha256 of its content, "" for a removed file; `hash` is the exporting server's
    Pachyderm hash of the content."""

    path: str
    sha256: str
    hash: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a source repo: its id where it was exported, its start (ISO 8601, UTC), its description, and its
    changes, removed files first."""

    repo: str
    id: str
    started: str
    description: str
    changes: tuple[ExportedChange, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """A pipeline's output for the last commits: a hash of its code, its commit, and the sha256 of every file by
    path."""

    pipeline: str
    code: str
    commit: str
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a bundle: commits in the order in which they were made, outputs upstream first."""

    server: str
    commits: tuple[Commit, ...]
    outputs: tuple[Output, ...]


class Bundle:
    """One directory. Content is written before the manifest that names it; a second export adds only new content."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def read(self) -> Manifest:
        """The manifest. Raises LookalikeError if it is missing or incomplete."""
        path = self.directory / _MANIFEST
        try:
            read = json.loads(path.read_text())
        except FileNotFoundError as error:
            raise LookalikeError(
                f"{self.directory} is not an exported library: it has no {_MANIFEST}; `lookalike export` writes one"
            ) from error
        except ValueError as error:
            raise LookalikeError(f"{path} is damaged ({error}): export the library again") from error
        if not isinstance(read, dict) or "format" not in read:
            raise LookalikeError(f"{path} is not the manifest of an exported library: name another directory")
        if read["format"] != _FORMAT:
            raise LookalikeError(f"{path} is of another version of lookalike: import it with that version")
        try:
            return _manifest(read)
        except (KeyError, TypeError, ValueError) as error:
            raise LookalikeError(f"{path} is damaged ({error}): export the library again") from error

    def known(self) -> Manifest | None:
        """The manifest of an earlier export, or None."""
        return self.read() if (self.directory / _MANIFEST).exists() else None

    def write(self, manifest: Manifest) -> None:
        """Replaces the manifest."""
        fresh = self.directory / f".{_MANIFEST}.new"
        fresh.write_text(json.dumps({"format": _FORMAT, **asdict(manifest)}, indent=1) + "\n")
        fresh.replace(self.directory / _MANIFEST)

    def keep(self, pieces: Iterable[bytes]) -> str:
        """Stores a content and returns its sha256."""
        objects = self.directory / _OBJECTS
        objects.mkdir(parents=True, exist_ok=True)
        fresh, digest = objects / ".new", hashlib.sha256()
        with fresh.open("wb") as file:
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
        place = self.content(digest.hexdigest())
        place.parent.mkdir(exist_ok=True)
        fresh.replace(place)
        return digest.hexdigest()

    def content(self, sha256: str) -> Path:
        """The path of a content."""
        return self.directory / _OBJECTS / sha256[:2] / sha256

    def check(self, commits: Iterable[Commit]) -> None:
        """Raises LookalikeError unless every content that these commits put is there and intact."""
        for sha256 in {change.sha256 for commit in commits for change in commit.changes if change.sha256}:
            path = self.content(sha256)
            try:
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
            except FileNotFoundError as error:
                raise LookalikeError(f"{path} is missing: copy the whole directory, or export again") from error
            if found != sha256:
                raise LookalikeError(f"{path} is not the exported file: copy it anew, or export again")


def _manifest(read: Mapping[str, Any]) -> Manifest:
    """Raises KeyError, TypeError or ValueError if something is missing or invalid."""
    return Manifest(
        _text(read["server"]),
        tuple(_commit(**each) for each in read["commits"]),
        tuple(_output(**each) for each in read["outputs"]),
    )


def _commit(changes: Iterable[Mapping[str, str]], **texts: str) -> Commit:
    return Commit(changes=tuple(_change(**each) for each in changes), **_texts(texts))


def _change(**texts: str) -> ExportedChange:
    change = ExportedChange(**_texts(texts))
    if change.sha256 and not re.fullmatch("[0-9a-f]{64}", change.sha256):
        raise ValueError(f"{change.sha256!r} is not a sha256")
    return change


def _output(files: Mapping[str, str], **texts: str) -> Output:
    if not isinstance(files, dict):
        raise TypeError(f"{files!r} is not a table of files")
    return Output(files=_texts(files), **_texts(texts))


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in values.items()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value
