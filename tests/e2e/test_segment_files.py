"""An index on a server, from another pipeline's files of vectors and thumbnails."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from pipelines.client.deployment.deployment import make_repo
from pipelines.client.repository import PutFile
from stages import index
from stages.datum.contract import Datum, DatumInput
from stages.files import thumbnail_files
from stages.files.tables.image_table import ImageTable
from stages.knn.code_index import FEWEST
from stages.record.origin import Origin
from stages.record.sources import Source
from tests.e2e.world import MakeWorld, specs, with_environment
from tests.stages.image_tables import unseen

pytestmark = pytest.mark.timeout(600)

KINDS = ("vectors", "thumbnails")


def written(directory: Path) -> Path:
    """A directory as partition writes it: the segment 0, large enough for codes, in two buckets."""
    random = np.random.default_rng(0)
    for bucket in ("00", "2a"):
        ids = sorted("0" + hashlib.sha256(f"{bucket}/{number}".encode()).hexdigest()[1:] for number in range(FEWEST))
        sources = [[Source(f"{each}.png", each, 96, 96, 100, "")] for each in ids]
        images = ImageTable(
            ids=ids,
            sources=sources,
            thumbnail_sizes=[2] * len(ids),
            hashes=range(len(ids)),
            **unseen(len(ids)),
            origin=Origin("5eed" * 16, "pad", 96, 16),
        )
        for kind in ("library", *KINDS):
            (directory / kind / "0").mkdir(parents=True, exist_ok=True)
        images.write(directory / f"library/0/{bucket}.parquet")
        np.save(directory / f"vectors/0/{bucket}.npy", random.standard_normal((len(ids), 16), np.float32))
        thumbnail_files.write(directory / f"thumbnails/0/{bucket}.thumbnails", [b"tn"] * len(ids))
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    return {f"/{each.relative_to(directory)}": each.read_bytes() for each in directory.rglob("*") if each.is_file()}


def test_a_segment_read_from_pipes_is_that_of_plain_directories(
    make_world: MakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its vectors are pipes on the server, and have to be read once."""
    world, files = make_world("codes"), contents(written(tmp_path / "partition"))
    make_repo(world.connection, "partition")
    (spec,) = (with_environment(each, ALGORITHM="ivfflat") for each in specs() if each.name == "index")
    world.deploy([spec])
    commit = world.repo("partition").write([PutFile(*each) for each in files.items()])
    world.settle(commit)

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    given = {"features": "library", **dict.fromkeys(KINDS, "")}
    inputs = {
        name: DatumInput(name, tmp_path / "partition" / (top or name) / "0", f"{top or name}/0", "")
        for name, top in given.items()
    }
    index.start({"ALGORITHM": "ivfflat"})(Datum(inputs, tmp_path / "out"))
    assert world.content("index") == contents(tmp_path / "out")
    assert "/0/codes.bin" in contents(tmp_path / "out")
