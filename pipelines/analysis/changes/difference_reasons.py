"""The reasons for which a query's neighbours differ between two states of the library. Pure: decides from the two
answers and from what changed in between."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipelines.analysis.changes.pipeline_versions import SettingChange
from pipelines.analysis.query_answers import AnswerNeighbour, AnswerPair, QueryMatch
from stages.datum.stage_version import STAGE

ADDED, REPLACED, REMOVED = "picture added", "picture replaced", "picture removed"
MODEL, PARAMETERS, QUERY = "model", "parameters", "query replaced"
PUSHED, ROSE, SHIFTED = "pushed out", "moved up", "moved"
OTHER = "unknown"

_NUMBER = "K"
_FOR_DISTANCES = frozenset({"IMAGE_SIZE", "FIT", "METRIC", STAGE})
"""Variables that change distances. K, the number of neighbours, does not, and others change no answer."""


@dataclass(frozen=True, slots=True)
class ChangeCauses:
    """Everything that changed between two states: the names of pictures of the library, the backbone before and after
    in words (None for the same), and parameters."""

    added: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    model: tuple[str, str] | None = None
    settings: tuple[SettingChange, ...] = ()

    @property
    def of_distances(self) -> tuple[tuple[str, str], ...]:
        """Those that change the distances of all pictures: each a reason with its words."""
        found = [(MODEL, "another model")] if self.model is not None else []
        return (*found, *((PARAMETERS, _words(each)) for each in self.settings if each.name in _FOR_DISTANCES))

    @property
    def of_number(self) -> tuple[tuple[str, str], ...]:
        """Those that change the number of neighbours."""
        return tuple((PARAMETERS, _words(each)) for each in self.settings if each.name == _NUMBER)


@dataclass(frozen=True, slots=True)
class NeighbourDifference:
    """A neighbour in which two answers differ: as it was and as it is (None if it is not among them), the ranks from 1,
    and the reasons, each with its words."""

    old: AnswerNeighbour | None
    new: AnswerNeighbour | None
    old_rank: int | None
    new_rank: int | None
    reasons: tuple[tuple[str, str], ...]

    @property
    def tile(self) -> AnswerNeighbour:
        tile = self.new or self.old
        assert tile is not None
        return tile


def differences(two: AnswerPair, matched: QueryMatch, causes: ChangeCauses) -> list[NeighbourDifference]:
    """The neighbours in which two answers to a query differ, in the order of their ranks: those that are only in one of
    them, and those with another rank."""
    return list(_Comparison(two, matched, causes).differences())


class _Comparison:
    """Two answers to one query."""

    def __init__(self, two: AnswerPair, matched: QueryMatch, causes: ChangeCauses) -> None:
        self._old, self._new = two.old, two.new
        self._causes = causes
        keys = matched.keys(two.old), matched.keys(two.new)
        before = {key: rank for rank, key in enumerate(keys[0], 1)}
        after = {key: rank for rank, key in enumerate(keys[1], 1)}
        self._gone = [two.old.tiles[rank - 1] for key, rank in before.items() if key not in after]
        self._come = [two.new.tiles[rank - 1] for key, rank in after.items() if key not in before]
        self._before = {id(two.old.tiles[rank - 1]): (rank, after.get(key)) for key, rank in before.items()}
        self._after = {id(two.new.tiles[rank - 1]): (rank, before.get(key)) for key, rank in after.items()}
        replaced = matched.comparable and two.old.id != two.new.id
        self._all = ((QUERY, "the query picture is another"),) if replaced else causes.of_distances

    def differences(self) -> Iterator[NeighbourDifference]:
        for tile in self._new.tiles:
            rank, old_rank = self._after[id(tile)]
            if old_rank is None:
                yield NeighbourDifference(None, tile, None, rank, self._arrival(tile, rank))
            elif old_rank != rank:
                yield NeighbourDifference(self._old.tiles[old_rank - 1], tile, old_rank, rank, self._shift())
        for tile in self._gone:
            rank = self._before[id(tile)][0]
            yield NeighbourDifference(tile, None, rank, None, self._departure(tile, rank))

    def _arrival(self, tile: AnswerNeighbour, rank: int) -> tuple[tuple[str, str], ...]:
        if self._causes.added.issuperset(tile.sources):
            return ((ADDED, ""),)
        if not (self._causes.added | self._causes.replaced).isdisjoint(tile.sources):
            return ((REPLACED, ""),)
        if self._all:
            return self._all
        if rank > self._old.k and self._causes.of_number:
            return self._causes.of_number
        lost = [each for each in self._gone if self._is_lost(each)]
        return ((ROSE, f"in place of {_named(lost)}"),) if lost else ((OTHER, ""),)

    def _departure(self, tile: AnswerNeighbour, rank: int) -> tuple[tuple[str, str], ...]:
        if self._causes.removed.issuperset(tile.sources):
            return ((REMOVED, ""),)
        if self._is_lost(tile):
            return ((REPLACED, ""),)
        if self._all:
            return self._all
        if rank > self._new.k and self._causes.of_number:
            return self._causes.of_number
        found = [each for each in self._come if self._is_found(each)]
        return ((PUSHED, f"by {_named(found)}"),) if found else ((OTHER, ""),)

    def _shift(self) -> tuple[tuple[str, str], ...]:
        if self._all:
            return self._all
        lost = [each for each in self._gone if self._is_lost(each)]
        found = [each for each in self._come if self._is_found(each)]
        parts = [f"{_named(found)} came"] if found else []
        parts += [f"{_named(lost)} went"] if lost else []
        return ((SHIFTED, ", ".join(parts)),)

    def _is_lost(self, tile: AnswerNeighbour) -> bool:
        """Whether a picture is not in the library any more."""
        return (self._causes.removed | self._causes.replaced).issuperset(tile.sources)

    def _is_found(self, tile: AnswerNeighbour) -> bool:
        """Whether a picture was not in the library before."""
        return not (self._causes.added | self._causes.replaced).isdisjoint(tile.sources)


def _words(setting: SettingChange) -> str:
    if setting.name == STAGE:
        return f"code of {', '.join(setting.pipelines)}"
    return f"{setting.name} {setting.before} → {setting.after}"


def _named(tiles: Sequence[AnswerNeighbour] | Iterable[AnswerNeighbour]) -> str:
    return ", ".join(tile.sources[0] for tile in tiles if tile.sources)
