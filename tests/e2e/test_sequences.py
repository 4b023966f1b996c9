"""Random sequences of changes on a real server: after each, the outputs equal those of a computation from scratch.

LOOKALIKE_SEEDS="3 4 5" tries other sequences than the default ones.
"""

import hashlib
import itertools
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.client.deployment import part_sizes
from stages.record import entry_paths
from tests.e2e.oracle import Oracle, Tree
from tests.e2e.world import MakeWorld, Paint, World
from tests.pipelines.library import picture_contents
from tests.small_archives import zipped

pytestmark = pytest.mark.timeout(900)

USUAL = (pytest.param(1), *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3, 4, 5)))
SEEDS = tuple(pytest.param(int(seed)) for seed in os.environ.get("LOOKALIKE_SEEDS", "").split()) or USUAL

FIRST = ("add_many", "ask")
"""The first steps, so that there is something to change."""

KINDS = (
    *("add", "add_many", "change", "rename", "remove", "duplicate", "add_again", "swap", "spoil", "add_archive"),
    *("ask", "ask_many", "ask_otherwise", "forget"),
)
"""The methods of Person that make a change."""


@dataclass(frozen=True)
class Step:
    """A change, its commits, and the content of the input repos afterwards."""

    kind: str
    commits: list[str]
    images: Tree
    masks: Tree
    queries: Tree


class Person:
    """A user who makes random changes and knows the expected content."""

    def __init__(self, world: World, paint: Paint, seed: str) -> None:
        self.world = world
        self.paint = paint
        self.random = random.Random(seed)
        self.library: Tree = {}
        self.removed: Tree = {}
        self.queries: dict[str, bytes | Tree] = {}
        self.history: list[Step] = []
        self._numbers = itertools.count()

    def do(self, kind: str) -> None:
        """Makes one change, and sometimes waits for its jobs."""
        commits = getattr(self, kind)()
        self.history.append(Step(kind, commits, *map(self.world.content, ("images", "masks", "queries"))))
        assert picture_contents.library(self.world.connection) == self.library, kind
        if self.random.random() < 0.3:
            self.world.settle(*commits)

    def picture(self) -> bytes:
        """One of a few dozen pictures, so that some are repeated."""
        kind = self.random.choice(("PNG", "PNG", "JPEG"))
        return bytes(self.paint(self.random.randrange(16), self.random.randrange(2), 32, kind))

    def name(self, suffix: str = ".png") -> str:
        """A new name."""
        stem = self.random.choice(("a", "b c", "holiday/d", "[é]", "holiday/2026/#f"))
        return f"{stem}{next(self._numbers)}{suffix}"

    def some(self, most: int, suffix: str = ".png") -> list[str]:
        """Names of the library with this suffix, in a random order."""
        names = sorted(name for name in self.library if name.endswith(suffix))
        return self.random.sample(names, min(len(names), self.random.randint(1, most)))

    def _put(self, pictures: Tree) -> list[str]:
        self.library |= pictures
        return [self.world.add(pictures, most_single=2)] if pictures else []

    def add(self) -> list[str]:
        return self._put({self.name(): self.picture() for _ in range(self.random.randint(1, 3))})

    def add_many(self) -> list[str]:
        """Adds more than are put as single files; some may replace others."""
        new = {self.name(): self.picture() for _ in range(2 + self.random.randint(1, 4))}
        return self._put(new | {name: self.picture() for name in self.some(2)})

    def change(self) -> list[str]:
        return self._put({name: self.picture() for name in self.some(2)})

    def rename(self) -> list[str]:
        old = self.some(1, "")
        new = {self.name(Path(name).suffix): self.library[name] for name in old}
        return [*self._drop(old), *self._put(new)]

    def remove(self) -> list[str]:
        return self._drop(self.some(3, ""))

    def _drop(self, names: list[str]) -> list[str]:
        self.removed |= {name: self.library.pop(name) for name in names}
        return [self.world.remove(*names)] if names else []

    def duplicate(self) -> list[str]:
        return self._put({self.name(): self.library[name] for name in self.some(2)})

    def add_again(self) -> list[str]:
        """Adds removed pictures again, unchanged."""
        names = self.random.sample(sorted(self.removed), min(2, len(self.removed)))
        return self._put({name: self.removed.pop(name) for name in names})

    def swap(self) -> list[str]:
        """Swaps the names of pictures."""
        names = self.some(4)
        return self._put(dict(zip(names, [self.library[name] for name in reversed(names)], strict=True)))

    def spoil(self) -> list[str]:
        """Puts a file that is not a picture, in place of a picture or under a new name."""
        name = self.random.choice([*self.some(2), self.name()])
        return self._put({name: self.random.choice((b"", b"no picture", self.picture()[:-9]))})

    def add_archive(self) -> list[str]:
        archive = zipped({f"in/{number}.png": self.picture() for number in range(2)})
        return self._put({self.name(".zip"): archive})

    def _ask(self, entry: str, content: bytes | Tree) -> list[str]:
        self.queries[entry] = content
        return [self.world.query(entry, content)]

    def entry(self, form: str) -> str:
        """A new name of a query entry, in one of two buckets, so that most entries share theirs with another one."""
        names = (form.format(number) for number in self._numbers)
        return next(name for name in names if entry_paths.bucket(name) in ("00", "01"))

    def ask(self) -> list[str]:
        return self._ask(self.entry("query{}.png"), self.picture())

    def ask_many(self) -> list[str]:
        pictures = {f"{number}.png": self.picture() for number in range(self.random.randint(1, 3))}
        return self._ask(self.entry("queries {}"), pictures | {"bad.png": b"no picture"})

    def ask_otherwise(self) -> list[str]:
        """Renames the files of an entry, or replaces it with one of another kind."""
        if not self.queries:
            return []
        entry = self.random.choice(sorted(self.queries))
        content = self.queries[entry]
        if isinstance(content, dict):
            return self._ask(entry, {f"renamed {name}": data for name, data in content.items()})
        return self._ask(entry, {"inside.png": content})

    def forget(self) -> list[str]:
        if not self.queries:
            return []
        entry = self.random.choice(sorted(self.queries))
        del self.queries[entry]
        return [self.world.forget(entry)]


def hashes(trees: Mapping[str, Tree]) -> dict[str, dict[str, str]]:
    """Trees in a form that is readable in a failure."""
    return {
        repo: {path: hashlib.sha256(data).hexdigest()[:16] for path, data in sorted(tree.items())}
        for repo, tree in trees.items()
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_any_sequence_of_changes_equals_a_computation_from_scratch(
    seed: int,
    make_world: MakeWorld,
    backbones: dict[str, Path],
    paint: Paint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(part_sizes, "part", lambda _: 3)  # pictures of a block, so that there are many
    person = Person(make_world(f"sequence-{seed}"), paint, str(seed))
    person.world.deploy()
    person.world.push(backbones["first"])
    for kind in (*FIRST, *random.Random(seed).sample(KINDS, len(KINDS))):
        person.do(kind)
    check(person, Oracle(backbones["first"], tmp_path / "oracle"))


def check(person: Person, oracle: Oracle) -> None:
    """Jobs of several commits may have waited for each other, but each commit must have its own result."""
    for number, step in enumerate(person.history):
        jobs = person.world.settle(*step.commits)
        expected = hashes(oracle.outputs(step.images, step.masks, step.queries))
        for pipeline, job in jobs.items():
            found = hashes({pipeline: person.world.content(pipeline, job.id)})
            assert found[pipeline] == expected[pipeline], (number, step.kind, pipeline)
    assert hashes({pipeline: person.world.content(pipeline) for pipeline in expected}) == expected
