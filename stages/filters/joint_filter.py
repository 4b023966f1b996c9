"""A filter of paths and one by attributes, which hold for the same file: the one way of the service and of search."""

from collections.abc import Sequence

import numpy as np

from stages.datum.contract import load
from stages.files import path_masks
from stages.filters.attribute_table import AttributeTable
from stages.knn.backend import Mask


def admitted_files(
    table: AttributeTable, filter: str, where: str, *, lenient: bool = False
) -> tuple[Mask, Sequence[str]]:
    """The files that both filters admit, bool (m,), and the columns that `where` names and the table lacks. "" is no
    filter. lenient: such a column is null everywhere; without, it is refused. Raises FilterError."""
    # sqlglot is imported with the first filter
    clause = load("stages.filters.where_clause").parse_where(where, table.columns, lenient=lenient) if where else None
    files: Mask = np.ones(len(table), np.bool_)
    if filter:
        files &= path_masks.admitted(table.column("path"), filter)
    if clause is not None:
        files &= clause.files(table)
    return files, [] if clause is None else sorted(clause.unknown)
