"""The features stage: a vector for each picture of the library or of a query entry, with a table of the pictures.

Owns the files that it writes and the life of a loaded model. Knows nothing about how a model computes.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.contract
    from stages import contract

    raise SystemExit(contract.run("stages.features"))

import io
import sys
import tempfile
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

# Keras imports scikit-learn, and with it SciPy's statistics, for wrappers that no backbone uses: a fifth of the time
# that every job waits for TensorFlow.
_HIDDEN = "sklearn" not in sys.modules
if _HIDDEN:
    sys.modules["sklearn"] = None  # type: ignore[assignment]  # makes its import fail

from stages import devices
from stages.backbones import load_backbone
from stages.backbonespec import MODEL_FILE, PUSH, SPEC_FILE, parse_spec
from stages.contract import Datum, Input, StageError, spool
from stages.embedders import Embedder
from stages.packs import Pixels, read_packs, read_rejections, write_rejections
from stages.parameters import integer
from stages.sources import Source, unite
from stages.tables.images import Images, write_images

if _HIDDEN:
    del sys.modules["sklearn"]

_THUMBNAIL_QUALITY = 85
_BATCHES_PER_LINE = 20  # of progress


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads SEGMENT_DIGITS and the GPU settings. The returned object keeps a loaded model between datums."""
    segment_digits = integer(environment, "SEGMENT_DIGITS", default=1, lowest=1, highest=8)
    print(devices.prepare(environment))
    return Features(segment_digits)


@dataclass(frozen=True)
class _Picture:
    pixels: Pixels  # (H, W, 3), a view of its pack
    sources: tuple[Source, ...]


class Features:
    """Computes the vectors of one datum at a time.

    Inputs: `models`, a directory with backbone.keras and backbone.json, lazy or not; `pictures`, one of
    /library/<part>: writes library/<segment>/<part>.npy and .parquet for each segment with pictures of the part;
    /queries/<entry>: writes vectors.npy, images.parquet and, if something was rejected, rejected.jsonl to
    queries/<entry>.
    """

    def __init__(self, segment_digits: int) -> None:
        self._segment_digits = segment_digits
        self._commit = ""
        self._embedder: Embedder | None = None

    def __call__(self, datum: Datum) -> None:
        """Raises StageError if the model is missing, cannot be loaded, or does not fit the pictures."""
        for name in ("models", "pictures"):
            if name not in datum.inputs:
                raise StageError(f"the input {name} is missing: features needs models and pictures")
        pictures = datum.inputs["pictures"]
        kind, _, name = pictures.repo_path.partition("/")
        if kind not in ("library", "queries") or not name or "/" in name:
            raise StageError(
                f"the input pictures is /{pictures.repo_path}; it must be /library/<part> or /queries/<entry>: "
                "correct its glob in the spec"
            )
        embedder = self._embedder_of(datum.inputs["models"])
        if kind == "library":
            self._library(embedder, pictures.path, name, datum.out)
        else:
            _query(embedder, pictures.path, datum.out / "queries" / name)

    def _embedder_of(self, models: Input) -> Embedder:
        """The commit's model, loaded again only for another commit, since its files are pipes."""
        if self._embedder is None or not models.commit or models.commit != self._commit:
            self._embedder, self._commit = _load(models.path), models.commit
        return self._embedder

    def _library(self, embedder: Embedder, packs: Path, part: str, out: Path) -> None:
        vectors, images = _embed(embedder, _united(packs, embedder.spec.image_size))
        segments = [id[: self._segment_digits] for id in images.ids]
        for segment in sorted(set(segments)):
            rows = slice(bisect_left(segments, segment), bisect_right(segments, segment))
            target = out / "library" / segment
            _write(target / f"{part}.npy", vectors[rows], target / f"{part}.parquet", images.part(rows))


def _query(embedder: Embedder, packs: Path, out: Path) -> None:
    vectors, images = _embed(embedder, _united(packs, embedder.spec.image_size))
    _write(out / "vectors.npy", vectors, out / "images.parquet", images)
    rejected = [each for path in sorted(packs.glob("*.rejected.jsonl")) for each in read_rejections(path)]
    if rejected:
        write_rejections(out / "rejected.jsonl", rejected)


def _load(directory: Path) -> Embedder:
    began = time.monotonic()
    paths = {path.name: path for path in directory.iterdir()}
    if not {MODEL_FILE, SPEC_FILE} <= paths.keys():
        raise StageError(f"the repo models does not hold a backbone: {PUSH}")
    spec = parse_spec(paths[SPEC_FILE].read_bytes())
    with tempfile.TemporaryDirectory() as scratch:
        file = spool(paths[MODEL_FILE], Path(scratch))
        if file != paths[MODEL_FILE]:
            file = file.rename(Path(scratch) / MODEL_FILE)
        embedder = Embedder(load_backbone(file, spec), spec, devices.passes_at_once())
    print(f"loaded {spec.name} ({spec.sha256[:16]}) in {time.monotonic() - began:.1f} s")
    return embedder


def _united(directory: Path, image_size: int) -> dict[str, _Picture]:
    """The distinct pictures of all packs by id, in ascending order; one in several packs has all its sources."""
    found: dict[str, _Picture] = {}
    for pack in read_packs(directory):
        height, width = pack.pixels.shape[1:3]
        if (height, width) != (image_size, image_size):
            raise StageError(
                f"the pictures are {width} × {height} pixels, but the model in the repo models takes {image_size} × "
                f"{image_size}: set IMAGE_SIZE={image_size} in the specs of preprocess and deploy them, or push a "
                "model of the pictures' size (lookalike model push --image-size)"
            )
        for pixels, picture in zip(pack.pixels, pack.pictures, strict=True):
            before = found.get(picture.id)
            # Equal ids mean equal pixels, so any of the packs will do.
            found[picture.id] = _Picture(pixels, unite(picture.sources, before.sources if before else ()))
    return dict(sorted(found.items()))


def _embed(embedder: Embedder, pictures: Mapping[str, _Picture]) -> tuple[NDArray[np.float32], Images]:
    spec = embedder.spec
    ids, values = list(pictures), [each.pixels for each in pictures.values()]
    vectors, thumbnails = np.empty((len(ids), spec.dimension), np.float32), list[bytes]()
    batches = (np.stack(values[begin : begin + spec.batch]) for begin in range(0, len(ids), spec.batch))
    for number, some in enumerate(embedder.stream(batches), 1):
        begin, end = len(thumbnails), len(thumbnails) + len(some)
        vectors[begin:end] = some
        thumbnails += [_thumbnail(pixels) for pixels in values[begin:end]]  # while the next batch is computed
        if number % _BATCHES_PER_LINE == 0 or end == len(ids):
            print(f"  {end} of {len(ids)} pictures")
    images = Images(
        ids=ids,
        sources=[each.sources for each in pictures.values()],
        thumbnails=thumbnails,
        model=spec.sha256,
        image_size=spec.image_size,
        dimension=spec.dimension,
    )
    return vectors, images


def _thumbnail(pixels: Pixels) -> bytes:
    """A JPEG file, whose bytes depend on the pixels and on Pillow's libjpeg alone."""
    file = io.BytesIO()
    Image.fromarray(np.asarray(pixels)).save(file, "JPEG", quality=_THUMBNAIL_QUALITY)
    return file.getvalue()


def _write(vectors_file: Path, vectors: NDArray[np.float32], images_file: Path, images: Images) -> None:
    vectors_file.parent.mkdir(parents=True, exist_ok=True)
    np.save(vectors_file, vectors)
    write_images(images, images_file)
