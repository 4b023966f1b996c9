"""Filters of paths applied to many paths at once, for the service and the stage search alike.

A filter may be a name with special characters, which nobody can tell who sees only a part of the library, as search
does: whoever asks decides first, see stages.files.path_globs.meant.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.files.path_globs import FilterError, is_glob, regular_expression
from stages.files.tables.parquet import stored_text
from stages.knn.backend import Mask
from stages.record.sources import Source


def admitted(paths: Any, filter: str) -> Mask:
    """Which of n stored paths, an Arrow array of strings, a filter admits, bool (n,).

    A filter with one of * ? [ { is a pattern: * is any part of a name, ** any part of a path, ? one character, [abc]
    and {one,two} alternatives; without a slash it is compared with names alone. Any other filter is the beginning of a
    path. Takes time linear in the length of all paths. Raises FilterError for a bad pattern.
    """
    stored = stored_text(filter)
    try:
        if is_glob(filter):
            return np.asarray(pc.match_substring_regex(paths, regular_expression(stored)))
        return np.asarray(pc.starts_with(paths, stored))
    except pa.ArrowInvalid as error:
        raise FilterError("the filter is too complicated: use fewer wildcards and alternatives") from error


def inside_first(sources: Sequence[Source], filter: str) -> list[int]:
    """The numbers of a picture's sources: first those that the filter admits, otherwise in their order."""
    if not filter or len(sources) < 2:
        return list(range(len(sources)))
    inside = admitted(pa.array([stored_text(each.path) for each in sources], pa.string()), filter)
    return sorted(range(len(sources)), key=lambda number: not inside[number])
