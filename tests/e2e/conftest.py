"""Fixtures of the end-to-end tests: servers with our specifications, small backbones, and pictures."""

import io
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from PIL import Image

from tests import forked_stages
from tests.e2e.world import MakeWorld, Paint, World
from tests.file_schedule import everything
from tests.servers import AS_PROGRAM, LATE, StartPachd
from tests.shared_directories import once
from tests.stages.text_towers import write_text_tower


def _paint(seed: int, variant: int = 0, size: int = 96, kind: str = "PNG") -> bytes:
    """Soft patches of colour, chosen by the seed."""
    patches = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), np.uint8)
    picture = Image.fromarray(patches).resize((size, size), Image.Resampling.BICUBIC)
    if variant:
        red, green, blue = (int(value) for value in np.asarray(picture)[0, 0])
        picture.putpixel((variant % size, variant // size), (red ^ 255, green, blue))
    file = io.BytesIO()
    picture.save(file, kind)
    return file.getvalue()


@pytest.fixture(scope="session")
def paint() -> Paint:
    """See Paint."""
    return _paint


SIDES = {"first": 96, "second": 96, "keras": 96, "large": 128, "usual": 224}
"""The pixels of the backbones' pictures."""

WORDS = ("words", "other words")


def _make_backbones(home: Path) -> None:
    import keras  # noqa: PLC0415  takes seconds; the other tests do without

    from stages.backbone.reference_pictures import reference_pictures  # noqa: PLC0415
    from stages.zoo import make_backbone, write_scale  # noqa: PLC0415

    tried = cache(reference_pictures)
    for seed, (name, size) in enumerate(SIDES.items()):
        pixels = keras.Input((size, size, 3), dtype="uint8", name="pixels")
        x = keras.layers.Rescaling(1 / 255, name="scaled")(pixels)
        x = keras.layers.AveragePooling2D(size // 4, name="patches")(x)
        x = keras.layers.Flatten(name="colours")(x)
        start = keras.initializers.RandomNormal(seed=seed)
        x = keras.layers.Dense(16, use_bias=False, kernel_initializer=start, name="vector")(x)
        has_graph = name not in ("keras", "large")
        if not has_graph:
            x = keras.layers.Activation("softsign", name="bounded")(x)  # which no graph has
        keras.Model(pixels, x, name=name).save(home / f"{name}.keras")
        spec, _ = make_backbone(str(home / f"{name}.keras"), size, None, home / name)
        assert spec.graph is has_graph
        write_scale(home / name, spec, tried(size))
    for seed, name in enumerate(WORDS):
        shutil.copytree(home / "first", home / name)
        write_text_tower(home / name, spec.dimension, seed)


@pytest.fixture(scope="session")
def backbones(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories with small backbones: "first", "second" and "keras" for pictures of 96 pixels, "large" for 128,
    "usual" for the specifications' own 224. With all but "keras" and "large" features starts without Keras. "words" and
    "other words" are "first" with two text towers."""
    home = once(tmp_path_factory, "backbones", _make_backbones)
    return {name: home / name for name in (*SIDES, *WORDS)}


@pytest.fixture(scope="module", autouse=True)
def stages_of_commands() -> Iterator[None]:
    """Commands in this process start their stages as servers do. Not the session's: files of other rooms run in this
    process afterwards."""
    with mock.patch.object(sys, "executable", str(forked_stages.python())):
        yield


@pytest.fixture(scope="session")
def compares(pytestconfig: pytest.Config) -> bool:
    """Whether `make test-all` runs: then outputs are compared with those of another world, which computes all of them,
    and steps that seldom find a fault are taken too."""
    return everything(pytestconfig)


@pytest.fixture(scope="module")
def make_world(start_shared_pachd: StartPachd, tmp_path_factory: pytest.TempPathFactory) -> MakeWorld:
    """See MakeWorld."""

    def make(name: str, late: bool = False, forks: bool = True) -> World:
        home = tmp_path_factory.mktemp(name)
        options, within = (LATE,) if late else (), () if forks else AS_PROGRAM
        return World(lambda root: start_shared_pachd(root, *options, within=within), home / "root", home / "files")

    return make
