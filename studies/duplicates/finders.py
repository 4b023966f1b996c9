"""Programs that find copies among pictures in files, lookalike and imagededup's methods, and the pairs that each finds.
Owns their use; judges nothing."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from stages.quality.copy_groups import exact_groups
from stages.quality.copy_pairs import MOST_EACH, RadiusPairs
from studies.duplicates import albums
from studies.duplicates.albums import Album
from studies.duplicates.families import ORIGINAL, Member
from studies.kit.environment import SETUPS, cached, ensure, run

LOCK = SETUPS / "copies.lock"
VARIABLE = "LOOKALIKE_IMAGEDEDUP"
"""Names the directory of imagededup's environment, unless the option does."""


@dataclass(frozen=True, slots=True)
class Finder:
    """A program, and the pairs of pictures that it finds by its defaults: their numbers, the smaller one first."""

    name: str
    pairs: frozenset[tuple[int, int]]


def ours(members: Sequence[Member], embed: albums.Embed) -> Finder:
    """The exact and the near copies that lookalike finds among the files of one directory.

    Within a family only pairs with the original count. The library of each change has few pictures that one is near to,
    so all pairs are looked at, however many a picture has in this directory.
    """
    album = albums.opened(members[0].path.parent, embed)
    proposed = _across(albums.candidates(album), album, members)
    number = np.arange(len(proposed.rows)) - np.searchsorted(proposed.queries, proposed.queries)
    pairs: set[tuple[str, str]] = set()
    for part in range(max(1, -(-int(number.max(initial=0) + 1) // MOST_EACH))):
        found = albums.copies(album, albums.only(proposed, number // MOST_EACH == part))
        exact = exact_groups(found)
        pairs |= {*albums.near_paths(found)}
        pairs |= {pair for each in exact for pair in combinations([one.path for one in each.copies[0].sources], 2)}
    return Finder("lookalike", _numbered(pairs, [each.path for each in members]))


def _across(proposed: RadiusPairs, album: Album, members: Sequence[Member]) -> RadiusPairs:
    """The pairs that are not of two copies of one original."""
    of = {each.path.name: each for each in members}
    shown = [[of[source.path] for source in sources] for sources in album.side.sources]
    families = np.array([each[0].family for each in shown])
    originals = np.array([any(one.change == ORIGINAL for one in each) for each in shown])
    one, other = proposed.queries, proposed.rows
    return albums.only(proposed, (families[one] != families[other]) | originals[one] | originals[other])


def place(environment: Mapping[str, str]) -> Path:
    """The directory of imagededup's environment, existing or not."""
    return cached(environment, VARIABLE, "imagededup", LOCK)


def imagededup(paths: Sequence[Path], directory: Path, scratch: Path) -> tuple[list[Finder], str, dict[str, str]]:
    """Its methods at their defaults on files of one directory, its version, and for each method that cannot be used the
    reason. The environment is made if missing. Raises environment.Unavailable."""
    ensure(directory, LOCK, "imagededup", "2.5 GB to download, 6 GB on disk, minutes", VARIABLE)
    out = scratch / "imagededup.json"
    program = [str(directory / "bin" / "python"), str(SETUPS / "copies.py"), str(paths[0].parent), str(out)]
    run(program, "imagededup does not run")
    found = json.loads(out.read_text())
    methods = found["methods"]
    finders = [Finder(name, _numbered(said["pairs"], paths)) for name, said in methods.items() if "reason" not in said]
    return finders, found["version"], {name: said["reason"] for name, said in methods.items() if "reason" in said}


def _numbered(pairs: Iterable[Sequence[str]], paths: Sequence[Path]) -> frozenset[tuple[int, int]]:
    """Pairs of files by the places of these in `paths`."""
    rows = {path.name: row for row, path in enumerate(paths)}
    places = ((rows[one], rows[other]) for one, other in pairs)
    return frozenset((min(each), max(each)) for each in places)
