"""Merge patches (RFC 7396): changes to JSON values, written as JSON values; applied, and found."""

import copy
from collections.abc import Mapping
from typing import Any


def merge(target: Any, patch: Any) -> Any:
    """Applies a merge patch: objects are merged, null removes a member, and anything else, lists too, replaces what was
    there. Changes neither argument."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch from one object to another: empty if they are equal. Neither may hold null."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            inner = difference(old, value)
            if inner:
                patch[name] = inner
        elif name not in before or old != value:
            patch[name] = value
    return patch
