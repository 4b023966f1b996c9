"""The features stage: a vector for each picture of the library or of a query entry, with a table of the pictures.

Owns the checks of a datum's set-up, and the life of a loaded model. They come before TensorFlow's import, which takes
seconds: with a model that is missing, damaged or of another size every datum of a job fails, and the right job waits.
So this module imports neither TensorFlow nor NumPy.
"""

from __future__ import annotations

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.features"))

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stages.backbone.backbone_spec import SCALE_FILE, BackboneSpec, read_models
from stages.datum.contract import Datum, DatumInput, StageError, load, spool
from stages.files import pack_tables
from stages.record import entry_paths
from stages.record.pfs_names import TEXTS_FILE

VERSION = 15
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

if TYPE_CHECKING:
    from stages.backbone.feature_extractor import FeatureExtractor
    from stages.backbone.text_tower import TextTower


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads the GPU settings with the first model. The returned object keeps a loaded model between datums."""
    return FeaturesStage(environment)


class FeaturesStage:
    """Computes the vectors of one datum at a time.

    Inputs: `models`, a directory with backbone.keras and backbone.json, lazy or not, or a datum of these two files;
    `pictures`, one of
    /library/<part>: writes library/<bucket>/<part>.npy and .parquet (stages.record.part_names.directory,
    stages.files.tables.index_table); /queries/<entry>: writes vectors.npy, images.parquet, images.thumbnails and, if
    something was rejected, rejected.jsonl to queries/<bucket>/<entry>, with the model's scale.json if it has one."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._commit = ""
        self._scale = b""
        self._embedding: FeatureExtractor | None = None
        self._tower: TextTower | None = None
        self._towers_commit: str | None = None

    def __call__(self, datum: Datum) -> None:
        """Raises StageError if the model is missing, cannot be loaded, or does not fit the pictures."""
        datum.require("features needs models and pictures", "models", "pictures")
        pictures = datum.inputs["pictures"]
        kind, _, name = pictures.repo_path.partition("/")
        if kind not in ("library", "queries") or not name or "/" in name:
            raise StageError(
                f"the input pictures is /{pictures.repo_path}; it must be /library/<part> or /queries/<entry>: "
                "correct its glob in the spec"
            )
        embedding = self._embedding_of(datum.inputs["models"], pictures.path)
        if kind == "library":
            embedding.library(pictures.path, name, datum.out)
        else:
            entry = datum.out / entry_paths.directory(name)
            embedding.query(
                pictures.path, entry, self._text_tower(datum.inputs["models"], pictures.path, embedding.spec)
            )
            if self._scale:
                (entry / SCALE_FILE).write_bytes(self._scale)

    def _embedding_of(self, models: DatumInput, packs: Path) -> FeatureExtractor:
        """The commit's model, which fits the packs; loaded again only for another commit, since its files are pipes."""
        if self._embedding is not None and models.commit and models.commit == self._commit:
            _check_sizes(packs, self._embedding.spec)
        else:
            self._embedding = self._loaded(models.directory, packs)
            self._scale = _scale(models.directory)
            self._towers_commit = None
            self._commit = models.commit
        return self._embedding

    def _text_tower(self, models: DatumInput, packs: Path, spec: BackboneSpec) -> TextTower | None:
        """The commit's text tower, for an entry with texts, if it has one; loaded with the first of these."""
        if not any(packs.glob(f"*.{TEXTS_FILE}")):
            return None
        if self._towers_commit is None or not models.commit:
            self._tower = load("stages.backbone.text_tower").load_text_tower(models.path)
            if self._tower is not None:
                load("stages.backbone.text_points").check(self._tower, spec)
            self._towers_commit = models.commit
        return self._tower

    def _loaded(self, models: Path, packs: Path) -> FeatureExtractor:
        began = time.monotonic()
        file, spec = read_models(models)
        _check_sizes(packs, spec)
        with tempfile.TemporaryDirectory() as scratch:
            file = spool(file, Path(scratch))
            embedder = load("stages.backbone.embedder_factory").embedder(file, spec, self._environment, many=True)
        loaded: FeatureExtractor = load("stages.backbone.feature_extractor").FeatureExtractor(embedder)
        print(f"loaded {spec.name} ({spec.sha256[:16]}) in {time.monotonic() - began:.1f} s")
        return loaded


def _scale(models: Path) -> bytes:
    file = models / SCALE_FILE
    return file.read_bytes() if file.exists() else b""


def _check_sizes(packs: Path, spec: BackboneSpec) -> None:
    wanted = spec.image_size
    for pack in pack_tables.paths(packs):
        side = pack_tables.picture_side(pack)
        if side != wanted:
            raise StageError(
                f"the pictures are {side} × {side} pixels, but the model {spec.name} takes {wanted} × {wanted}: "
                "`lookalike model push MODEL --image-size PIXELS` brings both to one size"
            )
