"""The labels of pictures from those of their sources: a code for each picture, and all that has no label, with the
reasons.

Reads the repo of labels. Knows the tables of pictures of the index, and no distances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.datum.contract import StageError
from stages.files.tables.columns import SourceColumn
from stages.files.tables.index_table import IndexTable
from stages.record.label_files import SourceLabels, unite

UNLABELLED = -1
"""The code of a picture without a label that can be used."""

SAMPLE = 20
"""Most examples of each thing that is left out."""

_CONFLICT = -2


@dataclass(frozen=True)
class LibraryLabels:
    """All pictures of the library, by segment.

    codes: of each segment int32 (n,), the place of each picture's label in `names`, or UNLABELLED. left_out: what has
    no label, or gives none, in numbers and examples, as JSON values; `example` is the name of a source.
    """

    tables: Mapping[str, IndexTable]
    codes: Mapping[str, npt.NDArray[np.int32]]
    names: Sequence[str]
    left_out: Mapping[str, Any]

    def __len__(self) -> int:
        return sum(map(len, self.tables.values()))

    def labelled(self, segment: str) -> npt.NDArray[np.int64]:
        """The rows of the segment's own table that have a label, int64 (n,)."""
        return np.flatnonzero(self.codes[segment] != UNLABELLED)


class LabelEncoder:
    """Labels as numbers: the code of a label is its place in `names`, sorted."""

    def __init__(self, labels: SourceLabels) -> None:
        self.names: Sequence[str] = sorted({*labels.of.values()})
        code_of = {name: code for code, name in enumerate(self.names)}
        self._by_source = {source: code_of[label] for source, label in labels.of.items()}
        self._by_source |= dict.fromkeys(labels.conflicts, _CONFLICT)

    def known(self, paths: Iterable[str]) -> set[str]:
        """Those of the sources that have labels, one or several."""
        return {path for path in paths if path in self._by_source}

    def of_pictures(
        self, paths: Sequence[str], firsts: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """The code of each of n pictures, int32 (n,), or UNLABELLED, and whether its sources disagree, bool (n,).

        paths: the true paths of all their sources, in order. firsts: int64 (n,), the place of each picture's first one.
        """
        of_sources = np.fromiter((self._by_source.get(path, UNLABELLED) for path in paths), np.int32, len(paths))
        return _agreed(of_sources, firsts)


def read_labels(repo: Path, wanted: Callable[[str], bool] = lambda _: True) -> SourceLabels:
    """The labels in the files of a repo that are wanted, by their paths in it; they may be pipes."""
    return unite(label_contents(repo, wanted))


def label_contents(repo: Path, wanted: Callable[[str], bool] = lambda _: True) -> Iterator[tuple[str, bytes]]:
    """The path and the content of each file of labels that is wanted; a pipe is read once, to its end."""
    for path in sorted(repo.rglob("*")):
        name = path.relative_to(repo).as_posix()
        if not path.is_dir() and wanted(name):
            yield name, path.read_bytes()


def read_pictures(tables: Mapping[str, IndexTable], labels: SourceLabels) -> LibraryLabels:
    """The pictures in the tables of segments, in their order, with their labels."""
    coder = LabelEncoder(labels)
    codes: dict[str, npt.NDArray[np.int32]] = {}
    mixed: list[str] = []
    known: set[str] = set()
    example = ""
    for segment, table in tables.items():
        sources = SourceColumn.of(table.sources)
        paths, firsts = sources.paths, first_sources(sources)
        known |= coder.known(paths)
        example = example or paths[0]
        codes[segment], differs = coder.of_pictures(paths, firsts)
        mixed += [paths[place] for place in firsts[differs]]
    return LibraryLabels(
        tables=tables,
        codes=codes,
        names=coder.names,
        left_out={**unused(labels, known), "mixed": examples(sorted(mixed)), "example": example},
    )


def first_sources(sources: SourceColumn) -> npt.NDArray[np.int64]:
    """The place of each picture's first source among all of them."""
    counts = sources.counts
    if (counts < 1).any():
        raise StageError("a picture has no source: reprocess it with `lookalike deploy --reprocess index`")
    starts: npt.NDArray[np.int64] = np.cumsum(counts) - counts
    return starts


def _agreed(
    of_sources: npt.NDArray[np.int32], firsts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """The code of each picture from those of its sources, and whether these disagree. Sources without a label do not
    count."""
    if not len(firsts):
        return np.empty(0, np.int32), np.empty(0, np.bool_)
    largest = np.maximum.reduceat(of_sources, firsts)
    beyond = np.where(of_sources == UNLABELLED, np.iinfo(np.int32).max, of_sources)
    smallest = np.minimum.reduceat(beyond, firsts)
    differs = (smallest == _CONFLICT) | ((largest >= 0) & (smallest != largest))
    return np.where(differs | (largest < 0), UNLABELLED, largest).astype(np.int32), differs


def unused(labels: SourceLabels, known: set[str]) -> dict[str, Any]:
    """The labels that no picture has, and why, as JSON values. known: the labelled sources of pictures."""
    conflicts = sorted(labels.conflicts.items())
    return {
        "files": labels.rows,
        "problems": examples([each.said for each in labels.problems]),
        "conflicts": examples([{"source": source, "labels": several} for source, several in conflicts]),
        "unknown": examples(sorted({*labels.of, *labels.conflicts} - known)),
    }


def examples(items: Sequence[Any]) -> dict[str, Any]:
    """The number of some things that were left out, and the first SAMPLE of them, as JSON values."""
    return {"count": len(items), "examples": list(items[:SAMPLE])}
