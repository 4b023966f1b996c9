"""Filters of paths applied to many paths at once, for the service and the stage search alike."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.files.path_globs import FilterError, is_glob, regular_expression
from stages.files.tables.parquet import stored_text
from stages.knn.backend import Mask


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
