"""The content of inputs, kept for the datums that follow with the same ones. Knows no stage and no files."""

from collections.abc import Callable
from typing import Generic, TypeVar

from stages.datum.contract import DatumInput

_ContentT = TypeVar("_ContentT")


class InputCache(Generic[_ContentT]):
    """Keeps the content of one input for as long as the datums that follow have the same input."""

    def __init__(self, read: Callable[[DatumInput], _ContentT]) -> None:
        self._read = read
        self._held: tuple[tuple[str, str], _ContentT] | None = None

    def get(self, each: DatumInput) -> _ContentT:
        """The input's content. Reads it again if the input has no commit to show that it is unchanged."""
        key = (each.commit, each.repo_path)
        if self._held is None or not each.commit or key != self._held[0]:
            self._held = None  # frees the memory first
            self._held = key, self._read(each)
        return self._held[1]


class MultiInputCache(Generic[_ContentT]):
    """Keeps the contents of several inputs of one commit while they fit into `room`, and beyond that the last one.

    The first ones stay: datums take inputs in turns, so the one that was not used for the longest time is the next.
    """

    def __init__(self, read: Callable[[DatumInput], _ContentT], size: Callable[[_ContentT], int], room: int) -> None:
        """size: of a content, in the unit of `room`."""
        self._last = InputCache(read)
        self._size = size
        self._room = room
        self._left = room
        self._commit = ""
        self._kept: dict[str, _ContentT] = {}

    def get(self, each: DatumInput) -> _ContentT:
        """The input's content. Reads it again if the input has no commit to show that it is unchanged."""
        if not each.commit:
            return self._last.get(each)
        if each.commit != self._commit:
            self._commit, self._left = each.commit, self._room
            self._kept.clear()
        if each.repo_path in self._kept:
            return self._kept[each.repo_path]
        found = self._last.get(each)
        if self._size(found) <= self._left:
            self._left -= self._size(found)
            self._kept[each.repo_path] = found
        return found
