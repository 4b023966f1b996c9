"""The directory that a library travels in: every commit of its source repos with what it changed, the content by its
sha256, and what the pipelines made of it all. Knows no server."""

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
    """A file that a commit changed: the sha256 of its content, "" where the file is gone; `hash` is what Pachyderm
    called the content where it was exported."""

    path: str
    sha256: str
    hash: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a source repo: its id where it was exported, when it was started (ISO 8601, UTC), what people said
    of it, and its changes, files that are gone first."""

    repo: str
    id: str
    started: str
    description: str
    changes: tuple[ExportedChange, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """What a pipeline had made of the last commits: a hash of what it runs, its commit, and the sha256 of every file by
    path."""

    pipeline: str
    code: str
    commit: str
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that is in a bundle: commits in the order in which they were made, outputs upstream first."""

    server: str
    commits: tuple[Commit, ...]
    outputs: tuple[Output, ...]


class Bundle:
    """One directory. Content is there before the manifest that names it; written again, it grows by what is new."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def read(self) -> Manifest:
        """The manifest. Raises LookalikeError where there is none, or one that is not whole."""
        path = self.directory / _MANIFEST
        try:
            read = json.loads(path.read_text())
        except FileNotFoundError as error:
            raise LookalikeError(
                f"{self.directory} is no exported library: it has no {_MANIFEST}; `lookalike export` writes one"
            ) from error
        except ValueError as error:
            raise LookalikeError(f"{path} is damaged ({error}): export the library again") from error
        if not isinstance(read, dict) or "format" not in read:
            raise LookalikeError(f"{path} is not of an exported library: name another directory")
        if read["format"] != _FORMAT:
            raise LookalikeError(f"{path} is of another version of lookalike: import it with that one")
        try:
            return _manifest(read)
        except (KeyError, TypeError, ValueError) as error:
            raise LookalikeError(f"{path} is damaged ({error}): export the library again") from error

    def known(self) -> Manifest | None:
        """The manifest that an earlier export has left, or None."""
        return self.read() if (self.directory / _MANIFEST).exists() else None

    def write(self, manifest: Manifest) -> None:
        """Makes this the manifest."""
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
        """Where a content lies."""
        return self.directory / _OBJECTS / sha256[:2] / sha256

    def check(self, commits: Iterable[Commit]) -> None:
        """Raises LookalikeError unless every content that these commits put is there and is what it should be."""
        for sha256 in {change.sha256 for commit in commits for change in commit.changes if change.sha256}:
            path = self.content(sha256)
            try:
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
            except FileNotFoundError as error:
                raise LookalikeError(f"{path} is missing: copy the whole directory, or export again") from error
            if found != sha256:
                raise LookalikeError(f"{path} is not what was exported: copy it anew, or export again")


def _manifest(read: Mapping[str, Any]) -> Manifest:
    """Raises KeyError, TypeError or ValueError where something is missing or not what it should be."""
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
        raise ValueError(f"{change.sha256!r} is no sha256")
    return change


def _output(files: Mapping[str, str], **texts: str) -> Output:
    if not isinstance(files, dict):
        raise TypeError(f"{files!r} are no files")
    return Output(files=_texts(files), **_texts(texts))


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in values.items()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
