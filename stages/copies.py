"""Groups of copies: pictures that are equal or near, which source of each group to keep, and why.

Groups are the connected components of the pairs: a picture is in a group if it is near to any other picture of it. Owns
the rule of keeping and the lines of groups.jsonl. Knows no files, no drawing and no Pachyderm.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stages.sources import Source

Rows = NDArray[np.int32]

_NEVER = "~"  # after every date
_AT_ONCE = 1 << 16  # pairs that are Python's numbers, which take more memory


@dataclass(frozen=True)
class Near:
    """m pictures and n pairs of them. sources: of each picture, sorted. first, second: int32 (n,), rows of pictures,
    equal for a picture with several sources; distances: float32 (n,). bits: uint8 (n,), those of the perceptual hashes
    that differ."""

    ids: Sequence[str]
    sources: Sequence[Sequence[Source]]
    first: Rows
    second: Rows
    distances: NDArray[np.float32]
    bits: NDArray[np.uint8]


@dataclass(frozen=True)
class Copy:
    """A distinct picture of a group. sources: those that are looked at, sorted by path; several are exact copies.
    distance, bits: to the picture that is kept, None where the pair is not a near one."""

    id: str
    sources: tuple[Source, ...]
    distance: float | None
    bits: int | None


@dataclass(frozen=True)
class Group:
    """Two sources or more. copies: the one with the kept source first, then by distance and id. why: the rule that
    decided. removed: all sources that are not needed, in the order of the copies."""

    copies: tuple[Copy, ...]
    kept: Source
    why: str
    removed: tuple[Source, ...]

    @property
    def is_exact(self) -> bool:
        """Whether all sources are exact copies of one picture."""
        return len(self.copies) == 1

    @property
    def size(self) -> int:
        """The number of its sources."""
        return sum(len(copy.sources) for copy in self.copies)

    @property
    def frees(self) -> int:
        """The bytes of the sources that are not needed."""
        return sum(source.bytes for source in self.removed)


def groups(near: Near, across: tuple[str, str] | None = None) -> list[Group]:
    """The groups of copies, the largest first, then by the bytes that removal frees, then by the kept source's path.

    across: two folders. Then only pictures in these count, a group has some of both, and everything in the first folder
    is kept, and everything in the second one removed.
    """
    looked_at = _within(near.sources, across) if across else near.sources
    apart = _Apart(near)
    found = (_group(near, apart, looked_at, members, across) for members in _components(near, looked_at))
    chosen = [group for group in found if group is not None]
    return sorted(chosen, key=lambda group: (-group.size, -group.frees, group.kept.path, group.kept.sha256))


def is_in(path: str, folder: str) -> bool:
    """Whether a path is in a folder, or is the entry of that name itself."""
    return path == folder or path.startswith(f"{folder}/")


def removable(groups: Sequence[Group]) -> list[str]:
    """The paths of all sources that are not needed, sorted, without any that is also the path of one to keep."""
    unneeded = {source.path for group in groups for source in group.removed}
    stay = {source.path for group in groups for copy in group.copies for source in copy.sources} - unneeded
    stay |= {group.kept.path for group in groups}
    return sorted(unneeded - stay)


def json_lines(groups: Sequence[Group], facts: Mapping[str, object]) -> Iterator[str]:
    """The lines of groups.jsonl, without line ends: one group each. facts: what is equal in all of them."""
    for group in groups:
        removed = set(group.removed)
        value = {
            **facts,
            "kind": "exact" if group.is_exact else "near",
            "keep": group.kept.path,
            "why": group.why,
            "frees": group.frees,
            "pictures": [
                {
                    "id": copy.id,
                    "bits": copy.bits,
                    "distance": None if copy.distance is None else _shortest(copy.distance),
                    "sources": [source._asdict() | {"keep": source not in removed} for source in copy.sources],
                }
                for copy in group.copies
            ],
        }
        yield json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _within(sources: Sequence[Sequence[Source]], folders: Collection[str]) -> list[tuple[Source, ...]]:
    return [tuple(each for each in row if any(is_in(each.path, folder) for folder in folders)) for row in sources]


def _components(near: Near, looked_at: Sequence[Sequence[Source]]) -> list[list[int]]:
    """The rows of each group of connected pictures that have a source to look at."""
    above = list(range(len(near.ids)))

    def top(row: int) -> int:
        while above[row] != row:
            above[row] = above[above[row]]
            row = above[row]
        return row

    for begin in range(0, len(near.first), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        for one, other in zip(near.first[part].tolist(), near.second[part].tolist(), strict=True):
            if looked_at[one] and looked_at[other]:
                one, other = sorted((top(one), top(other)))
                above[other] = one
    members: dict[int, list[int]] = {}
    for row, sources in enumerate(looked_at):
        if sources:
            members.setdefault(top(row), []).append(row)
    return list(members.values())


class _Apart:
    """The distances and bits of near pairs by the rows of their pictures."""

    def __init__(self, near: Near) -> None:
        self._count = len(near.ids)
        keys = near.first.astype(np.int64) * self._count + near.second
        order = np.argsort(keys)
        self._keys, self._distances, self._bits = keys[order], near.distances[order], near.bits[order]

    def between(self, one: int, other: int) -> tuple[float, int] | tuple[None, None]:
        """None for a pair that is not near; 0 for a picture and itself."""
        if one == other:
            return 0.0, 0
        key = min(one, other) * self._count + max(one, other)
        at = int(np.searchsorted(self._keys, key))
        if at == len(self._keys) or self._keys[at] != key:
            return None, None
        return float(self._distances[at]), int(self._bits[at])


def _group(
    near: Near,
    apart: _Apart,
    looked_at: Sequence[Sequence[Source]],
    members: Sequence[int],
    across: tuple[str, str] | None,
) -> Group | None:
    """The group of these rows; None if it has only one source, or is in one of the folders only."""
    rows = {source: row for row in members for source in looked_at[row]}
    stay, go = ([each for each in rows if is_in(each.path, folder)] for folder in across) if across else (rows, rows)
    if len(rows) < 2 or not stay or not go:
        return None
    best, *others = sorted(stay, key=_rank)
    unneeded = set(go) - {best}
    copies = [Copy(near.ids[row], tuple(looked_at[row]), *apart.between(rows[best], row)) for row in members]
    copies.sort(key=lambda copy: (copy.id != near.ids[rows[best]], copy.distance is None, copy.distance or 0, copy.id))
    return Group(
        copies=tuple(copies),
        kept=best,
        why=f"in {across[0]}" if across else _why(best, others[0]),
        removed=tuple(each for copy in copies for each in copy.sources if each in unneeded),
    )


def _rank(source: Source) -> tuple[object, ...]:
    """Orders sources from the one to keep to the last."""
    return tuple(value for _, value in _criteria(source))


def _criteria(source: Source) -> list[tuple[str, object]]:
    """The rule of keeping: criteria with a value each, of which the smallest is the best, the first criterion first."""
    return [
        ("most pixels", -source.width * source.height),
        ("most bytes", -source.bytes),
        ("taken first", source.taken or _NEVER),
        ("shortest name", len(source.path)),
        ("first by name", (source.path, source.sha256)),
    ]


def _why(best: Source, next_best: Source) -> str:
    """The first criterion that tells them apart."""
    both = zip(_criteria(best), _criteria(next_best), strict=True)
    return next((name for (name, one), (_, other) in both if one != other), "first by name")


def _shortest(distance: float) -> float:
    """The float with the fewest digits that reads back as the same float32."""
    return float(str(np.float32(distance)))
