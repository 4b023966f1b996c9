"""JSON patches (RFC 6902): changes to JSON values, written as lists of operations. Knows no specification."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any


class PatchError(Exception):
    """A JSON patch that cannot be read or does not apply; says which operation, and why."""


def apply(target: Any, patch: Any) -> Any:
    """Applies a JSON patch. Changes neither argument. Raises PatchError."""
    if not isinstance(patch, Sequence) or isinstance(patch, str):
        raise PatchError("a JSON patch is a list of operations")
    value = copy.deepcopy(target)
    for place, operation in enumerate(patch):
        try:
            value = _apply(value, operation)
        except PatchError as error:
            raise PatchError(f"operation {place}: {error}") from None
    return value


def pointer(text: Any) -> list[str]:
    """The parts of a JSON pointer (RFC 6901). Raises PatchError for an invalid one."""
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchError(f"{text!r} is not a valid path: paths begin with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _apply(value: Any, operation: Any) -> Any:
    if not isinstance(operation, Mapping) or not isinstance(operation.get("op"), str):
        raise PatchError('an operation is an object with "op" and "path"')
    kind, path = operation["op"], pointer(operation.get("path"))
    if kind in ("add", "replace", "test") and "value" not in operation:
        raise PatchError(f'"{kind}" needs a "value"')
    if kind == "add":
        return _add(value, path, operation["value"])
    if kind == "remove":
        return _remove(value, path)
    if kind == "replace":
        return _add(_remove(value, path), path, operation["value"]) if path else operation["value"]
    if kind in ("move", "copy"):
        source = pointer(operation.get("from"))
        moved = copy.deepcopy(_find(value, source))
        return _add(_remove(value, source) if kind == "move" else value, path, moved)
    if kind == "test":
        if _find(value, path) != operation["value"]:
            raise PatchError(f"the test of {operation['path']} fails")
        return value
    raise PatchError(f'"{kind}" is not an operation: write add, remove, replace, move, copy or test')


def _find(value: Any, path: Sequence[str]) -> Any:
    for depth, part in enumerate(path):
        known = isinstance(value, Mapping) and part in value
        if not known and not isinstance(value, list):
            raise PatchError(f"there is no {_said(path[: depth + 1])}")
        value = value[_index(value, part, path, len(value) - 1)] if isinstance(value, list) else value[part]
    return value


def _add(value: Any, path: Sequence[str], new: Any) -> Any:
    if not path:
        return copy.deepcopy(new)
    parent, last = _find(value, path[:-1]), path[-1]
    if isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else _index(parent, last, path, len(parent)), copy.deepcopy(new))
    elif isinstance(parent, dict):
        parent[last] = copy.deepcopy(new)
    else:
        raise PatchError(f"{_said(path[:-1])} is neither an object nor a list")
    return value


def _remove(value: Any, path: Sequence[str]) -> Any:
    if not path:
        raise PatchError("the whole document cannot be removed")
    _find(value, path)
    parent = _find(value, path[:-1])
    del parent[_index(parent, path[-1], path, len(parent) - 1) if isinstance(parent, list) else path[-1]]
    return value


def _index(items: Sequence[Any], part: str, path: Sequence[str], last: int) -> int:
    if not part.isascii() or not part.isdigit():
        raise PatchError(f"{_said(path)}: {part!r} is not a place in a list")
    if int(part) > last:
        raise PatchError(f"there is no {_said(path)}: the list has {len(items)}")
    return int(part)


def _said(path: Sequence[str]) -> str:
    return "/" + "/".join(path)
