"""The datums of an input: identity, hash and order. Reads files only through the caller's finder."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from localpachd import ids
from localpachd.errors import TooMany
from localpachd.pps.specs.inputs import CronInput, CrossInput, GroupInput, Input, JoinInput, PfsInput, UnionInput
from speclang import globs


@dataclass(frozen=True, slots=True)
class GlobMatch:
    """One match of an input's glob at the job's commit: path as in FileInfo (a directory ends in `/`), 32-byte hash,
    size in bytes, captures as `Glob.match` gives them, and the id of the commit it was found in."""

    path: str
    hash: bytes
    size: int
    captures: tuple[str, ...]
    commit: str


@dataclass(frozen=True, slots=True)
class DatumInput:
    """One file or directory of a datum, with the settings of its input. `size` in bytes."""

    name: str
    project: str
    repo: str
    repo_type: str
    branch: str
    path: str
    hash: bytes
    size: int
    commit: str
    join_on: str = ""
    outer_join: bool = False
    group_by: str = ""
    lazy: bool = False
    empty_files: bool = False
    s3: bool = False


@dataclass(frozen=True, slots=True)
class Datum:
    """The unit of work: its id (64 hex characters) and its files in the order of the input's members."""

    id: str
    inputs: tuple[DatumInput, ...]

    def hash(self, salt: str) -> str:
        """The hash by which a datum is skipped: 64 hex characters over the id, the files' hashes and the salt."""
        return ids.datum_hash(self.id, (each.hash for each in self.inputs), salt)


MatchFinder = Callable[[PfsInput], Iterable[GlobMatch]]
"""Finds the matches of a pfs input's glob, in path order, at the commit the job reads."""

InputRow = tuple[DatumInput, ...]
_Indexed = dict[str, tuple[int, InputRow]]
"""Datum id -> its place in the processing order and its files."""


MOST = 2_000_000
"""Datums that a cross or a join may have: their ids, files and hashes are held in memory."""

CancelCheck = Callable[[], None]
"""Called often; may raise to stop the work."""


def expand(tree: Input, find: MatchFinder, check: CancelCheck = lambda: None) -> Iterator[Datum]:
    """Every datum of the input, each once, in the order in which a job processes them. Raises TooMany for more than
    MOST combinations.

    That is path order for a pfs input, nested loops over the sorted members for a cross (the last one varies fastest),
    and id order among equals.
    """
    datums = _Expansion(find, check).of(tree)
    for identity in sorted(datums, key=lambda each: (datums[each][0], each)):
        yield Datum(identity, datums[identity][1])


class _Expansion:
    """The expansion of one input."""

    def __init__(self, find: MatchFinder, check: CancelCheck) -> None:
        self._find = find
        self._check = check

    def of(self, tree: Input) -> _Indexed:
        """The datums of an input."""
        match tree:
            case PfsInput():
                return self._collect(enumerate((each,) for each in _files(tree, self._find)))
            case CronInput():
                return self.of(tree.as_pfs())
            case UnionInput(members):
                # One id is one datum: the first member that has it wins.
                return self._collect(pair for member in members for pair in self.of(member).values())
            case CrossInput(members):
                rows = [_in_id_order(self.of(member)) for member in members]
                _check_number("cross", math.prod(map(len, rows)))
                return self._collect(enumerate(tuple(chain(*parts)) for parts in itertools.product(*rows)))
            case JoinInput(members):
                keyed = self._keyed(members, lambda each: each.join_on)
                _check_number("join", sum(math.prod(len(part) or 1 for part in parts) for parts in keyed))
                return self._collect((0, row) for row in _join(keyed))
            case GroupInput(members):
                groups = self._keyed(members, lambda each: each.group_by)
                return self._collect((0, tuple(chain(*parts))) for parts in groups)

    def _collect(self, rows: Iterable[tuple[int, InputRow]]) -> _Indexed:
        found: _Indexed = {}
        for index, row in rows:
            self._check()
            identity = ids.datum_id((each.name, each.repo, each.branch, each.path) for each in row)
            found.setdefault(identity, (index, row))
        return found

    def _keyed(self, members: Sequence[Input], key: Callable[[DatumInput], str]) -> list[tuple[InputRow, ...]]:
        """The files of each key, by member. Each file of a member's datums counts under its own key, in id order."""
        found: dict[str, list[list[DatumInput]]] = {}
        for position, member in enumerate(members):
            for file in chain(*_in_id_order(self.of(member))):
                found.setdefault(key(file), [[] for _ in members])[position].append(file)
        return [tuple(tuple(part) for part in parts) for parts in found.values()]


def _check_number(kind: str, number: int) -> None:
    if number > MOST:
        raise TooMany(f"the {kind} has {number} datums, and a job may have {MOST}: use fewer, or larger ones")


def _files(leaf: PfsInput, find: MatchFinder) -> Iterator[DatumInput]:
    for match in find(leaf):
        yield DatumInput(
            name=leaf.name,
            project=leaf.project,
            repo=leaf.repo,
            repo_type=leaf.repo_type,
            branch=leaf.branch,
            path=match.path,
            hash=match.hash,
            size=match.size,
            commit=match.commit,
            join_on=globs.substitute(leaf.join_on, match.captures),
            outer_join=leaf.outer_join,
            group_by=globs.substitute(leaf.group_by, match.captures),
            lazy=leaf.lazy,
            empty_files=leaf.empty_files,
            s3=leaf.s3,
        )


def _in_id_order(datums: _Indexed) -> list[InputRow]:
    return [datums[identity][1] for identity in sorted(datums)]


def _join(keyed: Iterable[tuple[tuple[DatumInput, ...], ...]]) -> Iterator[InputRow]:
    for parts in keyed:
        present = [part for part in parts if part]
        complete = len(present) == len(parts)
        for combination in itertools.product(*present):
            # Where a member has nothing under the key, only files of outer-joined inputs make a datum.
            row = combination if complete else tuple(each for each in combination if each.outer_join)
            if row:
                yield row
