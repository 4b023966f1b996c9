"""The contenders that turn pictures into vectors: `python -m benchmarks.races.forwards NAME DIR`, see
benchmarks.kit.contenders. DIR holds a backbone in models/, packs as preprocess writes them in packs/, and the same
pictures as one array in pictures.npy. `ours` reads the packs and writes to features/."""

import importlib
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kit.contenders import serve
from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE, BackboneSpec, parse_spec
from stages.backbone.embedder import cores
from stages.datum.contract import Datum, DatumInput

Work = Callable[[], object]


def main(name: str, directory: Path) -> None:
    """Serves one contender. Only what it needs is imported, for the rest would count as its memory."""
    serve(lambda: _ours(directory) if name == "ours" else _bare(name, directory))


def _ours(directory: Path) -> Work:
    """The stage, one part or entry after the other as Pachyderm would pass them. The model is loaded before the first
    one and kept."""
    stage = importlib.import_module("stages.features").start({})
    packs = directory / "packs"
    found = (path for kind in ("library", "queries") for path in sorted(packs.glob(f"{kind}/*")))
    parts = [DatumInput("pictures", path, str(path.relative_to(packs)), "") for path in found]
    models = DatumInput(
        "models", directory / "models", "", "kept"
    )  # one commit for all parts, so that it is loaded once

    def compute() -> None:
        for number, part in enumerate(parts, 1):
            stage(Datum({"models": models, "pictures": part}, directory / "features"))
            print(f"{number} of {len(parts)} parts")

    return compute


def _bare(name: str, directory: Path) -> Work:
    """Less than the stage: on one array, without writing anything."""
    devices, backbones = (
        importlib.import_module("stages.backbone.devices"),
        importlib.import_module("stages.backbone.backbones"),
    )
    print(devices.prepare({}))
    spec = parse_spec((directory / "models" / SPEC_FILE).read_bytes())
    model = backbones.load_backbone(directory / "models" / MODEL_FILE, spec)
    pictures = np.load(directory / "pictures.npy")
    way, _, batch = name.partition(":")
    return _WAYS[way](model, spec, pictures, int(batch or spec.batch))


def _embedder(model: Any, spec: BackboneSpec, pictures: Any, _batch: int) -> Work:
    forward = importlib.import_module("stages.backbone.backbones").forward(model)
    embedder = importlib.import_module("stages.backbone.embedder").Embedder(forward, spec)
    return lambda: embedder(pictures)


def _predict(model: Any, _spec: BackboneSpec, pictures: Any, _batch: int) -> Work:
    """As in the article. Without XLA, which Keras did not use by default then and which is slower on the CPU."""
    model.compile(jit_compile=False)
    return lambda: model.predict(pictures)


def _one_by_one(model: Any, _spec: BackboneSpec, pictures: Any, batch: int) -> Work:
    """Each pass on all cores."""
    forward, places = _passes(model, pictures, batch)
    return lambda: [forward(place) for place in places]


def _abreast(model: Any, _spec: BackboneSpec, pictures: Any, batch: int) -> Work:
    """As many passes at once as there are cores. This takes less time where a pass keeps only some of them busy."""
    forward, places = _passes(model, pictures, batch)
    threads = ThreadPoolExecutor(cores())
    return lambda: list(threads.map(forward, places))


def _passes(model: Any, pictures: Any, batch: int) -> tuple[Callable[[int], Any], range]:
    """The bare pass of the pictures from a place on, and the places."""
    tf = importlib.import_module("tensorflow")
    forward = tf.function(lambda some: model(some, training=False), autograph=False)
    shape = (-(-len(pictures) // batch) * batch, *pictures.shape[1:])
    filled = np.zeros(shape, np.uint8)  # whole batches, so that all have one shape
    filled[: len(pictures)] = pictures
    return lambda at: forward(tf.constant(filled[at : at + batch])).numpy(), range(0, len(filled), batch)


_WAYS: dict[str, Callable[[Any, BackboneSpec, Any, int], Work]] = {
    "embedder": _embedder,
    "keras": _predict,
    "bare": _one_by_one,
    "abreast": _abreast,
}


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
