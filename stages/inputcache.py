"""The content of an input, kept for the datums that follow with the same input. Knows no stage and no files."""

from collections.abc import Callable
from typing import Generic, TypeVar

from stages.contract import Input

Read = TypeVar("Read")


class InputCache(Generic[Read]):
    """Keeps the content of one input for as long as the datums that follow have the same input."""

    def __init__(self, read: Callable[[Input], Read]) -> None:
        self._read = read
        self._held: tuple[tuple[str, str], Read] | None = None

    def get(self, each: Input) -> Read:
        """The input's content. Reads it again if the input has no commit to show that it is unchanged."""
        key = (each.commit, each.repo_path)
        if self._held is None or not each.commit or key != self._held[0]:
            self._held = None  # frees the memory first
            self._held = key, self._read(each)
        return self._held[1]
