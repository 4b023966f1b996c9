"""Requests that make sense in the current state, chosen by three random numbers. Knows only the reference model."""

from collections.abc import Callable

from tests.localpachd.pfs.reference_model import Key, ReferenceModel

REPOS = "abcdef"
INPUTS = "acef"
NAMES = ("master", "master", "side")
UPSTREAM = (("a",), ("c",), ("a", "c"), (), ("d",))
KINDS = {"move": "create_branch", "rewire": "create_branch"}
"""The requests of choices that have another name."""


class RequestChooser:
    """Turns three numbers into a request that makes sense in the current state; None if none does."""

    def __init__(self, model: ReferenceModel, x: int, y: int, z: int) -> None:
        self.model, self.x, self.y, self.z = model, x, y, z

    def key(self, fits: Callable[[Key], bool] = lambda key: True) -> Key | None:
        found = [key for key in self.model.commits if fits(key)]
        return found[self.x % len(found)] if found else None

    def start(self) -> tuple[object, ...]:
        return INPUTS[self.x % 4], NAMES[self.y % 3]

    def finish(self) -> tuple[object, ...] | None:
        key = self.key(lambda key: self.model.commits[key].open)
        return key and (key, self.y % 4 == 0)

    def move(self) -> tuple[object, ...] | None:
        """Moves an input's branch to another commit, or sometimes an output's, whose provenance stays."""
        key = self.key(lambda key: key[0] in INPUTS or self.y % 3 == 0)
        if key is None:
            return None
        line = self.model.branches.get((key[0], NAMES[self.z % 3]))
        return key[0], NAMES[self.z % 3], key, tuple(line.above) if line else ()

    def rewire(self) -> tuple[object, ...]:
        below = "bdf"[self.x % 3]
        above = (("b",), ("a", "b"), ())[self.y % 3] if below != "b" else UPSTREAM[self.y % 5]
        head = self.key(lambda key: key[0] == below) if self.z % 4 == 0 else None
        return below, NAMES[self.z % 3], head, tuple((each, NAMES[self.y % 3]) for each in above)

    def delete_branch(self) -> tuple[object, ...] | None:
        found = list(self.model.branches)
        return (*found[self.x % len(found)], self.y % 2 == 0) if found else None

    def create_repo(self) -> tuple[object, ...]:
        return (REPOS[self.x % 6],)

    def delete_repo(self) -> tuple[object, ...]:
        return REPOS[self.x % 6], self.y % 2 == 0

    def squash_set(self) -> tuple[object, ...] | None:
        key = self.key(lambda key: bool(self.model.children(key)))
        return key and (key[1],)

    def drop_set(self) -> tuple[object, ...] | None:
        key = self.key(lambda key: self.y % 3 == 0 or not self.model.children(key))
        return key and (key[1],)

    def squash(self) -> tuple[object, ...] | None:
        key = self.key(lambda key: bool(self.model.children(key)))
        return key and (key, self.y % 3 != 0)

    def drop(self) -> tuple[object, ...] | None:
        key = self.key(lambda key: not self.model.children(key))
        return key and (key, self.y % 3 != 0)
