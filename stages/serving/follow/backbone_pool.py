"""Backbones of the repo models in memory, each loaded once for all that compute with it. Owns the import of Keras.

A backbone stays as long as a snapshot holds its embedder. Decides nothing about which one is needed.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from stages.backbone import keras_import, text_points
from stages.backbone.backbone_spec import (
    MODEL_FILE,
    MOST_BYTES,
    PUSH,
    SCALE_FILE,
    SPEC_FILE,
    TEXT_FILE,
    BackboneSpec,
    parse_spec,
)
from stages.backbone.backends import keras_backend
from stages.datum.contract import StageError, load
from stages.datum.file_cache import FileCache
from stages.quality import distance_scale
from stages.quality.distance_scale import DistanceScale
from stages.record.origin import BACKENDS, Origin
from stages.serving.follow.pachyderm_client import Absent, FileFacts, PachydermClient, PachydermError

if TYPE_CHECKING:  # it imports TensorFlow, and the service listens before that
    from stages.backbone.embedder import Embedder
    from stages.backbone.text_tower import TextTower

REPO = "models"


class BackbonePool:
    """The backbones of one service. May be used from several threads."""

    def __init__(self, cache: FileCache, environment: Mapping[str, str]) -> None:
        self._cache = cache
        self._environment = environment
        self._loaded: WeakValueDictionary[BackboneSpec, Embedder] = WeakValueDictionary()
        self._towers: WeakValueDictionary[str, TextTower] = WeakValueDictionary()  # by the hashes of their files
        self._loading = threading.Lock()
        # Keras has it warn of every model after the fifth, and a service loads one after the other.
        logging.getLogger("tensorflow").setLevel(logging.ERROR)

    @property
    def backend_name(self) -> str:
        """The backend of Keras, for people."""
        return BACKENDS.get(keras_backend.chosen(os.environ), "Keras")

    def check(self, origin: Origin, what: str) -> None:
        """Raises StageError if the vectors of this origin are another backend's than those that this service computes.
        what: is of that origin."""
        if keras_backend.chosen(os.environ) not in ("", origin.backend):
            raise StageError(
                f"{what} has vectors that {BACKENDS.get(origin.backend, origin.backend)} computed, and this service "
                f"computes on {self.backend_name}: equal pictures would have different vectors. Start the service with "
                f"{keras_backend.VARIABLE}={origin.backend}"
            )

    def held(self, spec: BackboneSpec) -> Embedder | None:
        """The embedder of a backbone that is loaded."""
        return self._loaded.get(spec)

    def embedder(
        self, server: PachydermClient, spec: BackboneSpec, commit: str, directory: Path
    ) -> tuple[Embedder, str]:
        """The embedder of a backbone of a commit of models, and the kind of its device. directory: for its file."""
        with self._loading:
            found = self._loaded.get(spec)
            if found is None:
                try:
                    entry = server.file(REPO, commit, MODEL_FILE)
                except Absent as error:
                    raise StageError(f"commit {commit} of models does not hold {MODEL_FILE}: {PUSH}") from error
                file = fetch_file(server, self._cache, REPO, commit, entry, directory / MODEL_FILE)
                made: Embedder = load("stages.backbone.embedder_factory").embedder(file, spec, self._environment)
                made.warm_up()
                self._loaded[spec] = found = made
            return found, found.device

    def text_tower(self, server: PachydermClient, spec: BackboneSpec, commit: str, directory: Path) -> TextTower | None:
        """The text tower of a commit of models, whose backbone is given; None if it has none. directory: for its
        file. Raises StageError for one that is damaged, or not the backbone's."""
        entries = server.files(REPO, commit, f"/{TEXT_FILE}")
        if not entries:
            return None
        with self._loading:
            found = self._towers.get(entries[0].hash)
            if found is None:
                file = fetch_file(server, self._cache, REPO, commit, entries[0], directory / TEXT_FILE)
                found = load("stages.backbone.text_tower").read_text_tower(file)
                found.warm_up()
                self._towers[entries[0].hash] = found
            text_points.check(found, spec)
            return found

    def prepared(self) -> str:
        """The kind of device that computes, once Keras is set up without any backbone."""
        with self._loading:
            devices = import_devices()
            devices.prepare(self._environment)
            return str(devices.kind())


def import_devices() -> ModuleType:
    """The module of devices, with Keras imported without chatter."""
    with keras_import.quiet():
        return load("stages.backbone.devices")


def read_backbone_spec(server: PachydermClient, commit: str) -> BackboneSpec:
    """The backbone of a commit of models. Raises StageError if there is none."""
    found = server.files(REPO, commit, f"/{SPEC_FILE}")
    if not found:
        raise StageError(f"commit {commit} of models does not hold a backbone: {PUSH}")
    if found[0].size > MOST_BYTES:
        raise StageError(f"{SPEC_FILE} in the repo models is not a description of a backbone: {PUSH}")
    return parse_spec(b"".join(server.read(REPO, commit, SPEC_FILE)))


def read_scale(server: PachydermClient, commit: str, spec: BackboneSpec) -> DistanceScale | None:
    """The scale of distances of the backbone of a commit of models; None if it has none."""
    if not server.files(REPO, commit, f"/{SCALE_FILE}"):
        return None
    return distance_scale.read(b"".join(server.read(REPO, commit, SCALE_FILE)), spec.sha256)


def fetch_file(server: PachydermClient, cache: FileCache, repo: str, commit: str, entry: FileFacts, at: Path) -> Path:
    """A file of a commit on this machine, kept by its content."""

    def fetch(to: Path) -> None:
        with to.open("wb") as file:
            for piece in server.read(repo, commit, entry.path):
                file.write(piece)
            if file.tell() != entry.size:
                raise cut_off(repo, entry.path)

    cache.place(entry.hash, entry.size, at, fetch)
    return at


def cut_off(repo: str, path: str) -> PachydermError:
    """The error of a file or directory of which less came than the server has."""
    return PachydermError(f"the server sent /{path} of {repo} cut off: try again")
