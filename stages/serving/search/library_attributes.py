"""The attributes of a library's pictures, and what filters find in it, kept for further questions.

A filter of paths and one by attributes hold for the same file. Knows no vectors.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from stages.files.path_globs import FilterError
from stages.filters import facets, picture_listing
from stages.filters.attribute_table import AttributeTable
from stages.filters.facets import Facet
from stages.filters.joint_filter import admitted_files
from stages.filters.picture_listing import SORTS
from stages.knn.backend import Mask, Rows
from stages.serving.search.library_paths import LibraryPaths

_KEPT = 16


class LibraryAttributes:
    """The attributes of n pictures with m files. Immutable; may be used from several threads.

    All methods take a filter by attributes and one of paths, "" for none, and raise FilterError for one that is not
    valid. Their answers are kept: arrays are read-only.
    """

    def __init__(self, table: AttributeTable, paths: Callable[[], LibraryPaths]) -> None:
        """paths: gives the same library's paths."""
        self.table = table
        self._paths = paths
        self._prepared = False
        self.files = lru_cache(_KEPT)(self._files)
        self.pictures = lru_cache(_KEPT)(self._pictures)
        self.facets = lru_cache(_KEPT)(self._facets)
        self.places = lru_cache(_KEPT)(self._places)
        self.listed = lru_cache(_KEPT)(self._listed)
        self._sorted = lru_cache(len(SORTS))(self._order)

    def prepare(self) -> None:
        """Makes the columns of the usual facets and the order by name, once. Of a million pictures that takes seconds,
        for which otherwise the first who asks waits."""
        if not self._prepared:
            self._prepared = True
            self.facets("", "", ())
            self.listed("", "", "name")

    def _files(self, where: str, filter: str) -> Mask:
        """The files that both filters admit, bool (m,)."""
        found, _ = admitted_files(self.table, self._paths().meant(filter) if filter else "", where)
        found.flags.writeable = False
        return found

    def _pictures(self, where: str, filter: str) -> Mask:
        """The pictures with such a file, bool (n,)."""
        found = self.table.pictures_of(self.files(where, filter))
        found.flags.writeable = False
        return found

    def _facets(self, where: str, filter: str, columns: tuple[str, ...]) -> Sequence[Facet]:
        """The facets of some columns, or without any of all that people want to see and that have values."""
        found = facets.count_facets(self.table, self.files(where, filter), columns or facets.shown_columns(self.table))
        return [each for each in found if columns or each.get("values") or each.get("bars")]

    def _places(self, where: str, filter: str) -> Sequence[dict[str, Any]]:
        """The places of the files, in clusters."""
        return picture_listing.place_clusters(self.table, self.files(where, filter))

    def admitted(self, where: str, filter: str) -> Mask | None:
        """The same pictures; None for all, without a filter."""
        return self.pictures(where, filter) if where or filter else None

    def ordered(self, where: str, filter: str, sort: str) -> Rows:
        """The files in an order, see picture_listing.SORTS: int64."""
        order = self._sorted(sort)
        found: Rows = order[self.files(where, filter)[order]]
        return found

    def _listed(self, where: str, filter: str, sort: str) -> Rows:
        """The first file of each picture in an order: int64."""
        return picture_listing.listed_files(self.table, self.ordered(where, filter, sort))

    def _order(self, sort: str) -> Rows:
        if sort not in SORTS:
            raise FilterError(f"sort is one of {', '.join(SORTS)}")
        return picture_listing.sorted_files(self.table, sort)
