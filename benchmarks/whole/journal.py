"""Owns the journal of a measurement that may be interrupted: what is done, and when a server was running. Killed at any
moment, it is as it was after its last change. Knows no pipeline."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

_EVERY = 2.0
"""Seconds between two signs of life."""

T = TypeVar("T")

Life = tuple[float, float]
"""The begin and the last sign of life, in seconds since the epoch."""


class Journal:
    """A file with values by key, of what JSON can hold, and the lives in which the work went on.

    Raises RuntimeError if the file is that of a measurement with other settings.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._lives = False
        self._values: dict[str, Any] = {"settings": dict(settings), "lives": []}
        if path.exists():
            self._values = json.loads(path.read_text())
        if self._values["settings"] != dict(settings):
            raise RuntimeError(
                f"{path.parent} holds the state of another measurement, {_said(self._values['settings'])}: go on with "
                "that, delete the directory, or name another one with --directory"
            )

    def get(self, key: str, default: Any = None) -> Any:
        """The value that was kept by this key."""
        with self._lock:
            return self._values.get(key, default)

    def keep(self, key: str, value: T) -> T:
        """Keeps a value; returns it."""
        with self._lock:
            self._values[key] = value
            self._write()
        return value

    def once(self, key: str, make: Callable[[], T]) -> T:
        """The value kept by a key, which is made and kept if there is none. It is never None."""
        found: T | None = self.get(key)
        return self.keep(key, make()) if found is None else found

    @property
    def lives(self) -> list[Life]:
        """The times in which the work went on, the present one until now."""
        with self._lock:
            found = [(begun, ended) for begun, ended in self._values["lives"]]
        return [*found[:-1], (found[-1][0], time.time())] if self._lives else found

    @contextmanager
    def living(self, said: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
        """One life. `said`: values to keep with each sign of life."""
        with self._lock:
            self._values["lives"].append([time.time(), time.time()])
        self._lives = True
        ended = threading.Event()

        def signs() -> None:
            while not ended.wait(_EVERY):
                self._sign(said())

        thread = threading.Thread(target=signs, name="journal", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self._sign(said())
            self._lives = False

    def lengthen(self) -> None:
        """Has the last life end now: its server went on without this program."""
        self._sign({})

    def _sign(self, values: Mapping[str, Any]) -> None:
        with self._lock:
            self._values["lives"][-1][1] = time.time()
            self._values.update(values)
            self._write()

    def _write(self) -> None:
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(self._values, indent=1))
        new.replace(self._path)


def alive(lives: list[Life], begun: float, ended: float) -> float:
    """The seconds between two times that lie within lives, which do not overlap."""
    return sum(max(0.0, min(ended, last) - max(begun, first)) for first, last in lives)


def interruptions(lives: list[Life], begun: float, ended: float) -> int:
    """The number of lives that ended between two times, and after which the work went on later."""
    return sum(begun < last < ended for _, last in lives[:-1])


def _said(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())
