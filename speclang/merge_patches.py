"""Merge patches (RFC 7396): changes to JSON values, written as JSON values."""

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
