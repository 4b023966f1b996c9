"""Random histories of blocks, single files and masks: the live pictures alone decide the index, to the byte, and only
new pictures are decoded and go through the backbone."""

import itertools
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.client.repository import DeleteFile, PutFile
from stages.record import masks, pfs_names
from tests.e2e.world import MakeWorld, Paint, World, library_specs
from tests.small_archives import tarred

pytestmark = pytest.mark.timeout(600)

SEEDS = (pytest.param(1), *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3, 4)))

Tree = dict[str, bytes]

NEW = {"put_block": 1, "put_single": 1, "replace_single": 1, "replace_masked": 1}
"""The datums of preprocess, and of features, of each change that brings pictures; others have none."""


class MaskedLibrary:
    """A library that is changed at random, as plain files, and what should be in it."""

    def __init__(self, world: World, paint: Paint, seed: int) -> None:
        self.world = world
        self._random = random.Random(seed)
        self._paint = paint
        self._numbers = itertools.count()
        self.blocks: dict[str, Tree] = {}
        self.masks: dict[str, set[str]] = {}
        self.single: Tree = {}

    @property
    def live(self) -> Tree:
        """The pictures by true name."""
        shown = (
            (name, data)
            for block, pictures in self.blocks.items()
            for name, data in pictures.items()
            if name not in self.masks.get(block, ())
        )
        return {**dict(shown), **self.single}

    def put_block(self) -> str:
        pictures = {f"é/{next(self._numbers)}.png": self._picture() for _ in range(4)}
        name = pfs_names.block_name(f"{next(self._numbers):016x}")
        self.blocks[name] = pictures
        return self._images(PutFile(f"/{name}", block(pictures)))

    def put_single(self) -> str:
        return self._put(f"{next(self._numbers)}.png")

    def replace_single(self) -> str:
        return self._put(self._random.choice(sorted(self.single)))

    def delete_single(self) -> str:
        name = self._random.choice(sorted(self.single))
        del self.single[name]
        return self._images(DeleteFile(f"/{name}"))

    def replace_masked(self) -> str:
        """A picture of a block lives on as a file of its own."""
        _, name = self._mask_one()
        return self._put(name)

    def mask(self) -> str:
        return self._mask_one()[0]

    def mask_all(self) -> str:
        name = self._random.choice(sorted(self.blocks))
        return self._masked(name, set(self.blocks[name]))

    def lift(self) -> str:
        """Names of pictures that are files of their own by now stay masked."""
        name = self._random.choice(sorted(self.masks))
        return self._masked(name, self.masks[name] & self.single.keys())

    def mask_unknown(self) -> str:
        return self._masked(pfs_names.block_name("f" * 16), {"nobody.png"})

    def delete_block(self) -> str:
        """Its mask stays."""
        name = self._random.choice(sorted(self.blocks))
        del self.blocks[name]
        return self._images(DeleteFile(f"/{name}"))

    def _picture(self) -> bytes:
        """One of few, so that some are in several blocks, and some differ in bytes alone."""
        seed, kind = self._random.randrange(9), self._random.choice(("PNG", "BMP"))
        return bytes(self._paint(seed, 0, 96, kind))

    def _put(self, name: str) -> str:
        self.single[name] = self._picture()
        return self._images(PutFile(f"/{pfs_names.escape_component(name)}", self.single[name]))

    def _images(self, edit: PutFile | DeleteFile) -> str:
        return self.world.repo("images").write([edit])

    def _mask_one(self) -> tuple[str, str]:
        name, picture = self._random.choice(
            [
                (name, each)
                for name, pictures in sorted(self.blocks.items())
                for each in pictures
                if each not in self.masks.get(name, ())
            ]
        )
        return self._masked(name, self.masks.get(name, set()) | {picture}), picture

    def _masked(self, name: str, hidden: set[str]) -> str:
        self.masks[name] = hidden
        path = masks.path(name)
        edit = PutFile(path, masks.content(hidden)) if hidden else DeleteFile(path)
        return self.world.repo(masks.REPO).write([edit])


def block(pictures: Tree) -> bytes:
    """A block with a list of its pictures."""
    members = {pfs_names.escape_path(name): data for name, data in pictures.items()}
    return tarred({pfs_names.MEMBERS_FILE: b"{}\n", **members})


@pytest.mark.parametrize("seed", SEEDS)
def test_an_index_is_that_of_the_live_pictures_after_any_history(
    seed: int, make_world: MakeWorld, backbones: dict[str, Path], paint: Paint
) -> None:
    library = MaskedLibrary(make_world(f"masked-{seed}"), paint, seed)
    fresh = make_world(f"unmasked-{seed}")
    for world in (library.world, fresh):
        world.deploy(library_specs())
    library.world.settle(library.put_block())  # there is nothing to deal before the first model
    for world in (library.world, fresh):
        world.settle(world.push(backbones["first"]))
    for kind in ("put_block", "put_single"):
        changed(library, kind)
    kinds = ["mask", "mask", "lift", "mask_all", "mask_unknown", "replace_masked", "replace_single", "put_block"]
    random.Random(seed).shuffle(kinds)
    kinds.insert(kinds.index("lift"), "mask")
    for number, kind in enumerate([*kinds, "put_single", "delete_single", "delete_block", "lift"]):
        changed(library, kind)
        if number % 4 == 3:
            path = f"/{pfs_names.block_name('e' * 16)}"
            fresh.settle(fresh.repo("images").write([PutFile(path, block(library.live))]))
            assert library.world.hashes("index") == fresh.hashes("index"), kind


def changed(library: MaskedLibrary, kind: str) -> None:
    """Makes a change, and compares the datums that were computed."""
    change: Callable[[], str] = getattr(library, kind)
    jobs = library.world.settle(change())
    for pipeline in ("preprocess", "features"):
        assert (jobs[pipeline].processed if pipeline in jobs else 0) == NEW.get(kind, 0), (kind, pipeline)
        assert pipeline in jobs or kind in ("mask", "mask_all", "lift", "mask_unknown")
    assert jobs["partition"].processed <= 2
