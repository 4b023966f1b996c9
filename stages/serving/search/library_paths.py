"""The true paths of a library: its folders, page by page, and what a filter of paths means in it.

Paths lie sorted by folder, then by name. Knows no vectors and no files.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.files import path_globs
from stages.files.path_globs import FilterError
from stages.files.tables.parquet import stored_text, true_text
from stages.filters.picture_listing import ListedPicture
from stages.knn.backend import Rows

_AFTER_SLASH = chr(ord("/") + 1)
_FOLDER, _PICTURE = "d:", "p:"  # beginnings of cursors
_KEPT = 16  # meanings of filters


class LibraryPaths:
    """The paths of n pictures, each of which has at least one. Immutable; may be used from several threads."""

    def __init__(self, segments: Sequence[tuple[Any, Rows]]) -> None:
        """segments: for each its stored paths, an Arrow array of strings, and the number of paths of each picture."""
        counts = np.concatenate([each for _, each in segments])
        texts = pa.concat_arrays([each.cast(pa.large_string()) for each, _ in segments])
        order = pc.array_sort_indices(texts).to_numpy()
        texts = texts.take(pa.array(order))
        folders = pc.replace_substring_regex(texts, "[^/]*$", "", max_replacements=1).dictionary_encode()
        ranks = pc.rank(folders.dictionary, tiebreaker="first").to_numpy().astype(np.int64) - 1
        places = ranks[folders.indices.to_numpy()]
        by_folder = np.argsort(places, kind="stable")
        self._texts = texts.take(pa.array(by_folder))
        self._rows: Rows = np.repeat(np.arange(len(counts)), counts)[order[by_folder]]
        self._folders = folders.dictionary.take(pa.array(np.argsort(ranks)))
        self._starts: Rows = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=len(ranks)))])
        self.meant = lru_cache(_KEPT)(self._meant)

    def __len__(self) -> int:
        return len(self._texts)

    def listing(self, folder: str = "", after: str | None = None, limit: int = 100) -> dict[str, Any]:
        """A page of at most `limit` folders and pictures, in JSON's types: the folder without a slash at its end;
        first its folders, each with its name and the number of paths in it and below, then its pictures
        (ListedPicture), both in the order of paths; after: the cursor of the next page, or None; total: the number of
        paths in the folder and below, 0 if there is no such folder.

        folder: a true path, with or without a slash at its end; "" for the top. after: the cursor in the page before.
        Raises FilterError for a cursor that no page had.
        """
        inside = stored_text(folder.removesuffix("/") + "/" if folder.removesuffix("/") else "")
        low, high = self._range(inside)
        kind, name = (_FOLDER, None) if after is None else (after[:2], stored_text(after[2:]))
        if kind not in (_FOLDER, _PICTURE):
            raise FilterError("after is not a cursor of a page: leave it out for the first page")
        folders: list[tuple[str, int]] = []
        pictures: list[ListedPicture] = []
        if kind == _FOLDER:
            folders = list(islice(self._children(inside, low, high, name), limit + 1))
            name = None
        more = len(folders) > limit
        if not more:
            pictures, more = self._pictures(inside, low, high, name, limit - len(folders))
        del folders[limit:]
        last = _PICTURE + pictures[-1].path[len(true_text(inside)) :] if pictures else None
        if last is None and folders:
            last = _FOLDER + true_text(folders[-1][0])
        return {
            "folder": folder.removesuffix("/"),
            "folders": [{"name": true_text(each), "pictures": count} for each, count in folders],
            "pictures": pictures,
            "after": last if more else None,
            "total": int(self._starts[high] - self._starts[low]),
        }

    def _meant(self, filter: str) -> str:
        """The filter that a user of this library means: see stages.files.path_globs. Raises FilterError."""
        return path_globs.meant(
            filter,
            lambda name: bool(pc.any(pc.starts_with(self._texts, stored_text(f"{name}/"))).as_py()),
            lambda name: bool(pc.any(pc.equal(self._texts, stored_text(name))).as_py()),
        )

    def _range(self, inside: str) -> tuple[int, int]:
        """The folders that begin with `inside`, which ends with a slash or is empty."""
        if not inside:
            return 0, len(self._folders)
        return _place(self._folders, inside), _place(self._folders, inside[:-1] + _AFTER_SLASH)

    def _children(self, inside: str, low: int, high: int, after: str | None) -> Iterator[tuple[str, int]]:
        """The folders in a folder, with the number of paths in and below each, from one that comes after a name."""
        at = low if after is None else _place(self._folders, f"{inside}{after}{_AFTER_SLASH}", low, high)
        while at < high:
            name, slash, _ = self._folders[at].as_py()[len(inside) :].partition("/")
            if not slash:  # the folder itself
                at += 1
                continue
            end = _place(self._folders, f"{inside}{name}{_AFTER_SLASH}", at, high)
            yield name, int(self._starts[end] - self._starts[at])
            at = end

    def _pictures(
        self, inside: str, low: int, high: int, after: str | None, limit: int
    ) -> tuple[list[ListedPicture], bool]:
        """The pictures in a folder itself, from one that comes after a name, and whether there are more."""
        if low == high or self._folders[low].as_py() != inside:
            return [], False
        begin, end = int(self._starts[low]), int(self._starts[low + 1])
        if after is not None:
            begin = _place(self._texts, inside + after, begin, end, bisect_right)
        stop = min(begin + limit, end)
        while begin < stop < end and self._texts[stop] == self._texts[stop - 1]:
            stop += 1  # a cursor is a name, so pictures of one name are on one page
        return [
            ListedPicture(int(self._rows[at]), true_text(self._texts[at].as_py())) for at in range(begin, stop)
        ], stop < end


def _place(texts: Any, text: str, low: int = 0, high: int | None = None, bisect: Any = bisect_left) -> int:
    """The place of a text among sorted ones, which stay in Arrow's memory, from low to high."""
    return int(bisect(range(len(texts)), text, low, high, key=lambda at: texts[at].as_py()))
