"""A small backbone, a library computed with it, and a service that answers from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stages.datum.file_cache import FileCache
from stages.quality.distance_limits import DistanceLimits
from stages.quality.distance_scale import DistanceScale
from stages.serving.follow.backbone_pool import BackbonePool
from tests import servers
from tests.stages.models import SmallModel
from tests.stages.serving import copies, services
from tests.stages.serving.copies import ARCHIVE, GROUPS, NEAR, PACKED, SINGLE, CopyWorld

if TYPE_CHECKING:  # TensorFlow takes seconds, and most tests do without
    from stages.backbone.embedder import Embedder
    from stages.backbone.text_tower import TextTower
    from stages.serving.follow.snapshots import Snapshot
    from tests.stages.serving.services import Service


@pytest.fixture(scope="session", autouse=True)
def _shared_services() -> Iterator[None]:
    with services.sharing():
        yield


@pytest.fixture(scope="session")
def embedder(small_model: SmallModel) -> Embedder:
    """A backbone of 32 pixels and 16 dimensions that takes 8 pictures in each forward pass."""
    from stages.backbone.backbone_spec import WeightsOrigin  # noqa: PLC0415
    from stages.backbone.backbones import describe, forward  # noqa: PLC0415
    from stages.backbone.embedder import Embedder  # noqa: PLC0415

    model = small_model(32, 16)
    spec = describe(model, "small", "avg", WeightsOrigin("made by a test", "0" * 64))
    return Embedder(forward(model), replace(spec, batch=8, sha256="5eed" * 16))


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> BackbonePool:
    """The backbones that followers load, which stay in memory for the next test."""
    kept = BackbonePool(FileCache(tmp_path_factory.mktemp("models")), {})
    kept._loaded = {}  # type: ignore[assignment]  # in place of weak references
    return kept


@pytest.fixture(scope="session")
def stock() -> dict[str, bytes]:
    """The files of the library, by path: 40 pictures in two folders, a copy of one, and a near-duplicate of it."""
    files = {f"trip/{'north' if seed % 2 else 'south'}/{seed:02}.png": services.made(seed) for seed in range(40)}
    near = services.file(services.drawn(0), "JPEG", quality=60)
    return files | {"copies/00 again.png": services.made(0), "copies/00 smaller.jpg": near}


@pytest.fixture(scope="session")
def ready(embedder: Embedder, stock: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A snapshot of that library."""
    root = tmp_path_factory.mktemp("library")
    return services.snapshot(services.library(root / "index", embedder, stock), embedder, root / "cache")


@pytest.fixture(scope="session")
def service(ready: Snapshot) -> Iterator[Service]:
    """A service that answers from it."""
    with services.running(ready) as running:
        yield running


@pytest.fixture(scope="session")
def tower(tmp_path_factory: pytest.TempPathFactory) -> TextTower:
    """A text tower of random weights in the real layout, for that library."""
    from stages.backbone.text_tower import read_text_tower  # noqa: PLC0415
    from tests.stages.text_towers import write_text_tower  # noqa: PLC0415

    return read_text_tower(write_text_tower(tmp_path_factory.mktemp("models"), 16))


@pytest.fixture(scope="session")
def worded(ready: Snapshot, tower: TextTower) -> Snapshot:
    """The library with a model that has words, and a scale between pictures."""
    limits = DistanceLimits(changed=1.0, very_similar=10.0, similar=100.0)
    return replace(ready, words=tower, scale=DistanceScale(ready.spec.sha256, False, limits, limits))


@pytest.fixture(scope="session")
def texts(worded: Snapshot) -> Iterator[Service]:
    """A service that answers from it."""
    with services.running(worded) as running:
        yield running


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CopyWorld]:
    """A library with copies, on a server of its own."""
    place = tmp_path_factory.mktemp("copies")
    server = servers.start(place / "pachd")
    made = copies.make(server, place)
    made.fill()
    yield made
    server.kill()


@pytest.fixture
def full(filled: CopyWorld) -> CopyWorld:
    """The same with all pictures and groups again, whatever a test before has removed."""
    if filled.names() != {*SINGLE, *PACKED, ARCHIVE} or filled.groups != (GROUPS, NEAR):
        filled.fill()
    filled.settle()
    return filled
