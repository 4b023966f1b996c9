"""Groups of copies: which file of each group to keep, and why.

Exact copies are files of equal content (stages.record.sources); near ones are copies of the kept file itself that a
program has changed, as pairs of pictures say. Owns the rule of keeping and the lines of groups.jsonl and near.jsonl.
Knows no files, no drawing and no Pachyderm."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stages.record import url_records
from stages.record.sources import LOSSLESS, LOSSY, PALETTE, RAW, Source, may_be_copies

_Rows = NDArray[np.int32]
FolderPair = tuple[str, str] | None
"""Two folders, of which the first one's files are kept; None for the whole library."""

_ACROSS = "mirrored, turned by 90°"
TURNED = ("", "mirrored", "mirrored", "turned by 180°", _ACROSS, "turned by 90°", "turned by 90°", _ACROSS)
"""The turns of stages.record.hashes in words, which are the same for either of two pictures."""

_NEVER = "~"  # after every date
_CODINGS = (RAW, LOSSLESS, LOSSY, PALETTE)  # others are made from the first ones


@dataclass(frozen=True)
class CopyCandidates:
    """m pictures and n pairs of them. sources: of each picture, sorted. first, second: int32 (n,), rows of pictures,
    equal for a picture with several sources; distances: float32 (n,). bits: uint8 (n,), those of the perceptual hashes
    that differ. turns: uint8 (n,), how one lies beside the other, see stages.record.hashes. near: bool (n,), whether
    they are copies, as far as their files are not exact ones."""

    ids: Sequence[str]
    sources: Sequence[Sequence[Source]]
    first: _Rows
    second: _Rows
    distances: NDArray[np.float32]
    bits: NDArray[np.uint8]
    turns: NDArray[np.uint8]
    near: NDArray[np.bool_]


@dataclass(frozen=True)
class CopyPicture:
    """Exact copies of each other. id: of their picture. sources: those that are looked at, sorted by path. distance,
    bits: to the picture that is kept. turn: of TURNED, how it lies beside that."""

    id: str
    sources: tuple[Source, ...]
    distance: float = 0.0
    bits: int = 0
    turn: int = 0


@dataclass(frozen=True)
class CopyGroup:
    """Two sources or more. copies: the one with the kept source first, then by distance and id. why: the rule that
    decided. others: all other sources, in the order of the copies."""

    copies: tuple[CopyPicture, ...]
    kept: Source
    why: str
    others: tuple[Source, ...]

    @property
    def is_exact(self) -> bool:
        """Whether all sources are exact copies."""
        return len(self.copies) == 1

    @property
    def size(self) -> int:
        """The number of its sources."""
        return sum(len(copy.sources) for copy in self.copies)

    @property
    def bytes(self) -> int:
        """Those of the other sources."""
        return sum(source.bytes for source in self.others)


def exact_groups(found: CopyCandidates, across: FolderPair = None) -> list[CopyGroup]:
    """The groups of exact copies, the largest first, then by the bytes that removal frees, then by the kept path.

    With two folders only files in these count, and a group has some of both.
    """
    groups = []
    for row in np.unique(found.first[found.first == found.second]).tolist():
        for sources in _by_content(_within(found.sources[row], across)):
            group = _group([CopyPicture(found.ids[row], sources)], across)
            if group is not None:
                groups.append(group)
    return _ordered(groups)


def near_groups(found: CopyCandidates, across: FolderPair = None) -> list[CopyGroup]:
    """The groups of near copies, in the same order. A file is in one group at most, exact copies together.

    The best file of all becomes the kept one of a group of all that are near to it, and so on with the rest: nothing is
    in a group for being near to another one than the kept. Files that a camera took at different times are no copies.
    """
    rows = np.unique(np.concatenate([found.first[found.near], found.second[found.near]]))
    copies = [
        CopyPicture(found.ids[row], each)
        for row in rows.tolist()
        for each in _by_content(_within(found.sources[row], across))
    ]
    edges = _edges(found, copies)
    stay = [at for at, copy in enumerate(copies) if _staying(copy.sources, across)]
    groups: list[CopyGroup] = []
    grouped: set[int] = set()
    for at in sorted(stay, key=lambda at: min(map(_rank, _staying(copies[at].sources, across)))):
        if at in grouped:
            continue
        around = {other: pair for other, pair in edges[at].items() if other not in grouped}
        near = [_compared(copies[other], found, pair) for other, pair in around.items()]
        group = _group([copies[at], *near], across) if near else None
        if group is not None:
            grouped |= {at, *around}
            groups.append(group)
    return _ordered(groups)


def without_last_stored(groups: Sequence[CopyGroup], at_urls: AbstractSet[str]) -> list[CopyGroup]:
    """Exact groups, of which a stored file stays if one is stored; those of which then nothing can go are left out.
    at_urls: the paths of files that are not stored."""
    spared = [(group, spared_source(group.others, _every(group), at_urls)) for group in groups]
    left = [
        group if source is None else replace(group, others=tuple(each for each in group.others if each != source))
        for group, source in spared
    ]
    return _ordered([group for group in left if group.others])


def spared_source(others: Collection[Source], every: Collection[Source], at_urls: AbstractSet[str]) -> Source | None:
    """The best of the other sources of an exact group if one of them has to stay, as the last that is stored."""
    last = url_records.last_stored({each.path for each in every}, {each.path for each in others}, at_urls)
    return min((each for each in others if each.path in last), key=_rank, default=None)


def is_in(path: str, folder: str) -> bool:
    """Whether a path is in a folder, or is the entry of that name itself."""
    return path == folder or path.startswith(f"{folder}/")


def removable(groups: Sequence[CopyGroup]) -> list[str]:
    """The paths of all sources of exact groups that are not needed, sorted, without any that is also the path of one to
    keep. Raises ValueError for a near group: its files are not equal."""
    if not all(group.is_exact for group in groups):
        raise ValueError("near copies are not to be removed unseen")
    unneeded = {source.path for group in groups for source in group.others}
    stay = {source.path for group in groups for source in _every(group)} - unneeded
    stay |= {group.kept.path for group in groups}
    return sorted(unneeded - stay)


def json_lines(groups: Sequence[CopyGroup], facts: Mapping[str, object]) -> Iterator[str]:
    """The lines of groups.jsonl or near.jsonl, without line ends: one group each. facts: what is equal in all."""
    for group in groups:
        others = set(group.others)
        value = {
            **facts,
            "kind": "exact" if group.is_exact else "near",
            "keep": group.kept.path,
            "why": group.why,
            "frees": group.bytes,
            "pictures": [
                {
                    "id": copy.id,
                    "bits": copy.bits,
                    "distance": _shortest(copy.distance),
                    "turned": TURNED[copy.turn],
                    "sources": [source._asdict() | {"keep": source not in others} for source in copy.sources],
                }
                for copy in group.copies
            ],
        }
        yield json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _every(group: CopyGroup) -> list[Source]:
    return [source for copy in group.copies for source in copy.sources]


def _within(sources: Sequence[Source], across: FolderPair) -> tuple[Source, ...]:
    return tuple(each for each in sources if across is None or any(is_in(each.path, folder) for folder in across))


def _by_content(sources: Sequence[Source]) -> list[tuple[Source, ...]]:
    """The sources that are exact copies of each other, together."""
    found: dict[str, list[Source]] = {}
    for each in sources:
        found.setdefault(each.content, []).append(each)
    return [tuple(each) for each in found.values()]


def _edges(found: CopyCandidates, copies: Sequence[CopyPicture]) -> list[dict[int, int]]:
    """For each of the copies the others that are near, with the numbers of their pairs."""
    of: dict[str, list[int]] = {}
    for at, copy in enumerate(copies):
        of.setdefault(copy.id, []).append(at)
    edges: list[dict[int, int]] = [{} for _ in copies]
    for pair in np.flatnonzero(found.near).tolist():
        mine, theirs = (of.get(found.ids[rows[pair]], []) for rows in (found.first, found.second))
        for one, other in ((one, other) for one in mine for other in theirs):
            if one != other and _may_be_near(found, pair, copies[one], copies[other]):
                edges[one][other] = edges[other][one] = pair
    return edges


def _may_be_near(found: CopyCandidates, pair: int, one: CopyPicture, other: CopyPicture) -> bool:
    # Of one picture with two contents it is enough that dates agree: two shots are never equal in all of its pixels.
    itself = bool(found.first[pair] == found.second[pair])
    return may_be_copies(one.sources, other.sources, itself or bool(found.turns[pair]))


def _compared(copy: CopyPicture, found: CopyCandidates, pair: int) -> CopyPicture:
    """The copies with the facts of their pair with the kept one."""
    return CopyPicture(
        copy.id, copy.sources, float(found.distances[pair]), int(found.bits[pair]), int(found.turns[pair])
    )


def _staying(sources: Sequence[Source], across: FolderPair) -> Sequence[Source]:
    """Those of which one may be kept."""
    return sources if across is None else [each for each in sources if is_in(each.path, across[0])]


def _group(copies: Sequence[CopyPicture], across: FolderPair) -> CopyGroup | None:
    """The group of these copies, of which the first ones have the source to keep; None if no other is left."""
    first, rest = copies[0], sorted(copies[1:], key=lambda copy: (copy.distance, copy.id, copy.sources))
    every = [source for copy in (first, *rest) for source in copy.sources]
    stay = _staying(every, across)
    kept = min(_staying(first.sources, across), key=_rank, default=None)
    if kept is None:
        return None
    others = [each for each in every if each != kept and (across is None or is_in(each.path, across[1]))]
    if across and not any(each.taken for each in stay):
        others = [each for each in others if not each.taken]  # those alone say when the picture was taken
    if not others:
        return None
    return CopyGroup(
        copies=(first, *rest),
        kept=kept,
        why=f"in {across[0]}" if across else _why(kept, min(others, key=_rank)),
        others=tuple(others),
    )


def _ordered(groups: list[CopyGroup]) -> list[CopyGroup]:
    return sorted(groups, key=lambda group: (-group.size, -group.bytes, group.kept.path, group.kept.sha256))


def _rank(source: Source) -> tuple[object, ...]:
    """Orders sources from the one to keep to the last."""
    return tuple(value for _, value in _criteria(source))


def _criteria(source: Source) -> list[tuple[str, object]]:
    """The rule of keeping: criteria with a value each, of which the smallest is the best, the first criterion first.
    What others are made from comes before size, since a picture that was scaled up has more pixels than its original,
    and a camera's date before the rest, since programs lose it on the way."""
    coding = _CODINGS.index(source.coding) if source.coding in _CODINGS else len(_CODINGS)
    return [
        ("RAW", source.coding != RAW),
        ("date of the camera", not source.taken),
        ("lossless" if source.coding == LOSSLESS else "more colours", coding),
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
