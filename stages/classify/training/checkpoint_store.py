"""The state of an unfinished training, kept in a bucket or a directory so that another attempt goes on from there.

A checkpoint is one object, replaced as a whole, with a hash of its content. Its name has the fingerprint of all that
determines the result, so another training never finds it. Knows no network: a state is named arrays and JSON values.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import obstore
from obstore.exceptions import NotFoundError
from obstore.store import LocalStore

from stages.datum.contract import StageError
from stages.datum.text_format import first_line
from stages.files.bucket import FAILURES, BucketError, open_bucket

_MAGIC = b"lookalike-checkpoint-1\n"
_HASH = 32  # bytes
_FACTS = "facts"  # the member with the JSON values; names of arrays begin with a letter and a dot


@dataclass(frozen=True)
class TrainingState:
    """arrays: by name, of any numeric type. facts: JSON values."""

    arrays: Mapping[str, npt.NDArray[Any]]
    facts: Mapping[str, Any]


class CheckpointStore:
    """The one checkpoint of a training."""

    def __init__(self, url: str, name: str, fingerprint: str) -> None:
        """url: of a bucket or a directory in it (s3://, gs://, az://), or of a directory (file:///). Credentials come
        from the environment, in the variables of each provider's own tools. name: of the training, for people.
        fingerprint: of all that determines its result. Raises BadUrl.
        """
        self._url = url
        try:
            self._store = open_bucket(url)
        except BucketError as error:
            raise StageError(f"fine_tune.checkpoints is {url}, but {error}") from error
        self._fingerprint = fingerprint
        self._name = f"{name}-{fingerprint[:32]}.checkpoint"
        self._written = False

    def load(self) -> TrainingState | None:
        """The state that the last attempt left; None if there is none, or a damaged one, which is reported.

        Raises StageError if the bucket cannot be read.
        """
        try:
            content = bytes(obstore.get(self._store, self._name).bytes())
        except _MISSING:
            return None
        except FAILURES as error:
            raise StageError(self._unusable("read", error)) from error
        try:
            return _unpacked(content, self._fingerprint)
        except ValueError as error:
            print(f"the checkpoint {self._name} in {self._url} is ignored: {error}; training starts from the beginning")
            return None

    def save(self, state: TrainingState) -> None:
        """Replaces the checkpoint. Raises StageError if the first one cannot be written; once one was, a failure is
        reported and training goes on, since ending it would lose more."""
        try:
            obstore.put(self._store, self._name, _packed(state, self._fingerprint))
            for file in self._files(self._name):
                with file.open("rb") as written:
                    os.fsync(written.fileno())
        except FAILURES as error:
            if not self._written:
                raise StageError(self._unusable("written", error)) from error
            print(f"{self._unusable('written', error)}; training goes on without it")
        else:
            self._written = True

    def delete(self) -> None:
        """Removes the checkpoint of a finished training, if there is one; a failure is only reported."""
        try:
            for piece in self._files(f"{self._name}#*"):  # that killed processes were writing
                piece.unlink()
            with contextlib.suppress(*_MISSING):
                obstore.delete(self._store, self._name)
        except FAILURES as error:
            print(f"{self._unusable('removed', error)}; remove it yourself")

    def _files(self, pattern: str) -> Iterator[Path]:
        """The files of a directory of this machine; none of a bucket."""
        directory = self._store.prefix if isinstance(self._store, LocalStore) else None
        return iter(()) if directory is None else directory.glob(pattern)

    def _unusable(self, done: str, error: BaseException) -> str:
        return (
            f"the checkpoint {self._name} in {self._url}, which fine_tune.checkpoints names, cannot be {done}: "
            f"{first_line(error)}. Check the address, the network and the credentials in the environment of the "
            "pipeline"
        )


_MISSING = (NotFoundError, FileNotFoundError)


def _packed(state: TrainingState, fingerprint: str) -> bytes:
    """Magic bytes, the hash of all that follows, the fingerprint, and the arrays as an .npz file."""
    facts = np.frombuffer(json.dumps(state.facts).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, **{_FACTS: facts, **{f"a.{name}": each for name, each in state.arrays.items()}})
    content = fingerprint.encode() + b"\n" + file.getvalue()
    return _MAGIC + hashlib.sha256(content).digest() + content


def _unpacked(content: bytes, fingerprint: str) -> TrainingState:
    """The reverse of _packed. Raises ValueError, with the reason, for any other content."""
    begin = len(_MAGIC) + _HASH
    if not content.startswith(_MAGIC):
        raise ValueError("it is not a checkpoint of this version of lookalike")
    if hashlib.sha256(content[begin:]).digest() != content[len(_MAGIC) : begin]:
        raise ValueError("it is damaged: its content does not have its hash")
    owner, _, packed = content[begin:].partition(b"\n")
    if owner != fingerprint.encode():
        raise ValueError("it belongs to another training")
    with np.load(io.BytesIO(packed), allow_pickle=False) as members:
        arrays = {name.removeprefix("a."): members[name] for name in members.files if name != _FACTS}
        return TrainingState(arrays, json.loads(members[_FACTS].tobytes()))
