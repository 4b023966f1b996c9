"""The stages on a real GPU, each in its own process: the same answers as on the CPU, and no use of unleased GPUs."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from stages.datum.visible_gpus import gpu_visible
from stages.files import thumbnail_files
from stages.files.tables.image_table import ImageTable
from stages.record.origin import Origin
from stages.record.sources import Source
from tests.stages.file_trees import tree
from tests.stages.image_tables import unseen

NO_GPU = not gpu_visible(os.environ)
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(NO_GPU, reason="no NVIDIA GPU")]
needs_cuml = pytest.mark.skipif(importlib.util.find_spec("cuml") is None, reason="cuML is not installed")


def python(*arguments: str, environment: Mapping[str, str]) -> list[str]:
    """The lines that a Python process prints."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def write_images(table: Path, prefix: str, vectors: NDArray[np.float32], to: Path) -> None:
    """A table and its vectors, as partition and features-queries write them."""
    for each in (table, to):
        each.parent.mkdir(parents=True, exist_ok=True)
    ids = [f"{prefix}{row:0{64 - len(prefix)}x}" for row in range(len(vectors))]
    sources = [(Source(f"{id[-6:]}.jpg", id),) for id in ids]
    images = ImageTable(
        ids=ids,
        sources=sources,
        thumbnail_sizes=[0] * len(ids),
        hashes=[0] * len(ids),
        **unseen(len(ids)),
        origin=Origin("5eed" * 16, "pad", 96, vectors.shape[1]),
    )
    images.write(table)
    np.save(to, vectors)


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A segment of 5,000 pictures, with families of near-duplicates, and an entry of 300."""
    random = np.random.default_rng(0)
    vectors = random.standard_normal((5_000, 256), np.float32)
    vectors[1_000:2_000] = vectors[:50].repeat(20, axis=0) + 1e-4 * vectors[1_000:2_000]
    home = tmp_path_factory.mktemp("features")
    write_images(home / "library" / "a" / "part.parquet", "a", vectors, home / "vectors" / "a" / "part.npy")
    thumbnail_files.write(home / "thumbnails" / "a" / "part.thumbnails", [b""] * len(vectors))
    entry, asked = home / "queries" / "3f" / "some", vectors[900:1_200] * np.float32(1.001)
    write_images(entry / "images.parquet", "b", asked, entry / "vectors.npy")
    return home


def of_index(features: Path) -> list[str]:
    """The inputs of index."""
    beside = (f"--input={kind}={features}::{kind}/a" for kind in ("vectors", "thumbnails"))
    return [f"--input=features={features}::library/a", *beside]


def searched(features: Path, out: Path, environment: Mapping[str, str]) -> dict[str, bytes]:
    """Every file of index and of search, as bytes."""
    python("-m", "stages.index", *of_index(features), f"--out={out / 'index'}", environment=environment)
    bucket = f"--input=queries={features}::queries/3f"
    search = ("-m", "stages.search", f"--input=index={out / 'index'}::a", bucket, f"--out={out / 'search'}")
    python(*search, environment=environment)
    return tree(out)


@needs_cuml
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_index_and_search_write_the_same_bytes_with_cuml(features: Path, tmp_path: Path, metric: str) -> None:
    found = [
        searched(features, tmp_path / backend, {"BACKEND": backend, "METRIC": metric, "K": "5"})
        for backend in ("cuml", "numpy", "auto")
    ]
    assert {"index/a/vectors/00.npy", "search/some/a.parquet"} <= found[0].keys()
    assert found[0] == found[1] == found[2]


@needs_cuml
def test_index_measures_the_recall_of_its_codes_on_the_gpu(features: Path, tmp_path: Path) -> None:
    arguments = [*of_index(features), "--out", str(tmp_path)]
    program = (
        f"from stages.datum import contract; assert contract.run('stages.index', {arguments}) == 0\n"
        "import sys; print('cuml' in sys.modules, 'libcuvs' in open('/proc/self/maps').read())"
    )
    for backend, used in (("cuml", "True True"), ("auto", "False False")):  # its import takes longer than the search
        assert python("-c", program, environment={"BACKEND": backend, "ALGORITHM": "ivfflat"})[-1] == used


def test_a_process_without_a_lease_touches_no_gpu(features: Path, tmp_path: Path) -> None:
    arguments = [*of_index(features), "--out", str(tmp_path)]
    program = (
        f"from stages.datum import contract; assert contract.run('stages.index', {arguments}) == 0\n"
        "print([each for each in ('libcuda.so', '/dev/nvidia') if each in open('/proc/self/maps').read()])"
    )
    assert python("-c", program, environment={"CUDA_VISIBLE_DEVICES": ""})[-1] == "[]"
    seen = "from stages.backbone import devices; print(devices.prepare({}), devices.passes_at_once(3))"
    assert python("-c", seen, environment={"CUDA_VISIBLE_DEVICES": ""})[-1] == "no GPU: computing on the CPU 3"


EMBED = """
import sys
import numpy as np, tensorflow as tf
from pathlib import Path
from stages.backbone import devices
from stages.backbone.backbones import forward, load_backbone
from stages.backbone.backbone_spec import parse_spec
from stages.backbone.embedder import Embedder
from tests.stages.image_tables import unseen
print(devices.prepare({}))
home = Path(sys.argv[1])
spec = parse_spec((home / "backbone.json").read_bytes())
model = load_backbone(home / "backbone.keras", spec)
tiles = np.load(sys.argv[2])
one, two = (Embedder(forward(model), spec, at_once)(tiles) for at_once in (1, 2))
assert np.array_equal(one, two) and np.array_equal(one[5:9], Embedder(forward(model), spec)(tiles[5:9]))
np.save(sys.argv[3], one)
gpus = tf.config.list_physical_devices("GPU")
print(devices.passes_at_once(4), all(map(tf.config.experimental.get_memory_growth, gpus)))
print(tf.config.experimental.get_memory_info("GPU:0")["peak"] > 0)
"""


def test_vectors_on_a_gpu_do_not_depend_on_their_batch_and_memory_grows(
    lite0: Path, tiles: NDArray[np.uint8], tmp_path: Path
) -> None:
    listed = "import tensorflow; print(len(tensorflow.config.list_physical_devices('GPU')))"
    if python("-c", listed, environment={})[-1] == "0":
        pytest.skip("TensorFlow finds no GPU: its CUDA libraries are not installed")
    np.save(tmp_path / "tiles.npy", tiles)
    given = (str(lite0), str(tmp_path / "tiles.npy"))
    said = python("-c", EMBED, *given, str(tmp_path / "gpu.npy"), environment={})
    assert "memory taken: as it grows" in said[0]
    assert said[1:] == ["2 True", "True"]
    on_cpu = EMBED[: EMBED.index("gpus =")]
    python("-c", on_cpu, *given, str(tmp_path / "cpu.npy"), environment={"CUDA_VISIBLE_DEVICES": ""})
    np.testing.assert_allclose(np.load(tmp_path / "gpu.npy"), np.load(tmp_path / "cpu.npy"), atol=1e-4)
