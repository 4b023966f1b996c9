"""A snapshot made from one commit of the index: its files brought here, opened, and joined with the model that made it.

Files are kept by Pachyderm's hash of their content, so only changed segments travel; a thumbnail is read from the
server when it is asked for. TensorFlow is imported and the model loaded in a thread, while the library is brought and
opened. Decides nothing about which commit to open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stages import similarity, thumbnailfiles
from stages.backbonespec import PUSH, BackboneSpec
from stages.contract import StageError
from stages.filecache import FileCache
from stages.knn.settings import Settings
from stages.serving import loading
from stages.serving.library import Library
from stages.serving.loading import Backbones
from stages.serving.mapped import FILES
from stages.serving.originals import Originals
from stages.serving.pachyderm import CommitFacts, FileFacts, Pachyderm
from stages.serving.searching import Searching
from stages.serving.snapshots import Commits, Say, Snapshot
from stages.similarity import Similarity
from stages.thumbnailfiles import Place

if TYPE_CHECKING:
    from stages.embedders import Embedder


class Opening:
    """Opens commits of the index of one Pachyderm."""

    def __init__(
        self,
        server: Pachyderm,
        cache: FileCache,
        settings: Settings,
        environment: Mapping[str, str],
        report: Callable[[str], None] = print,
        backbones: Backbones | None = None,
    ) -> None:
        """settings: of searches; the metric is the index's own unless the environment names one. backbones: those that
        others of this process have loaded."""
        self._server = server
        self._cache = cache
        self._settings = settings
        self._environment = environment
        self._report = report
        self._backbones = backbones or Backbones(cache, environment)

    def snapshot(self, commit: CommitFacts, before: Snapshot | None, say: Say) -> Snapshot | None:
        """The snapshot of a finished commit of the index; None if the library is empty. before: the one in use, whose
        model and unchanged segments are taken over. Raises StageError or PachydermError, with the reason."""
        files = [
            each for each in self._server.files(commit.repo, commit.id, "/*/*") if each.path.rpartition("/")[2] in FILES
        ]
        if not files:
            return None
        made_from = self._server.provenance(commit)
        model = made_from.get("models", "")
        if not model:
            raise StageError(f"commit {commit.id} of index does not tell the model that it was made with: {PUSH}")
        with self._cache.scratch() as scratch, ThreadPoolExecutor(1, "model") as thread:
            spec = loading.described(self._server, model)
            model_loading = self._loading(thread, spec, model, scratch, before, say)
            say(f"bringing the index of commit {commit.id[:12]}")
            directories, keys = self._segments(commit, files, scratch)
            library = Library.open(directories, keys, partial(self._thumbnail, commit))
            _check_model(library, spec)
            if self._settings.backend == "sklearn":  # the import of TensorFlow hides that package for a while
                model_loading.result()
            searching = Searching(
                library,
                self._settings_for(library),
                self._environment,
                self._report,
                before.searching if before is not None else None,
            )
            say(f"loading the model {spec.described}")
            embedder, device = model_loading.result()
        self._cache.trim()
        return Snapshot(
            Commits(self._server.at.project, commit.id, made_from.get("images", ""), model),
            library,
            searching,
            embedder,
            spec,
            self.similarity(library),
            Originals(self._server, made_from.get("images", ""), self._cache),
            device,
        )

    def similarity(self, library: Library) -> Similarity | None:
        """The newest calibration, if it is that of the library's model."""
        newest = self._server.newest("evaluate")
        if newest is None or not self._server.files("evaluate", newest.id, "/calibration.json"):
            return None
        found = similarity.read(b"".join(self._server.read("evaluate", newest.id, "calibration.json")))
        return found if found is not None and found.model == library.facts.model else None

    def _settings_for(self, library: Library) -> Settings:
        named = self._environment.get("METRIC")
        return self._settings if named else replace(self._settings, metric=library.facts.metric)

    def _loading(
        self,
        thread: ThreadPoolExecutor,
        spec: BackboneSpec,
        commit: str,
        scratch: Path,
        before: Snapshot | None,
        say: Say,
    ) -> Future[tuple[Embedder, str]]:
        if before is not None and before.spec == spec:
            same: Future[tuple[Embedder, str]] = Future()
            same.set_result((before.embedder, before.device))
            return same
        say(f"starting TensorFlow for the model {spec.described}")
        return thread.submit(self._backbones.embedder, self._server, spec, commit, scratch / "model")

    def _segments(self, commit: CommitFacts, files: list[FileFacts], scratch: Path) -> tuple[list[Path], list[str]]:
        """The directories of the segments on this machine, and the hashes of their content."""
        by_segment: dict[str, list[FileFacts]] = {}
        for each in files:
            by_segment.setdefault(each.path.partition("/")[0], []).append(each)
        directories = [self._brought(commit, some, scratch / "index" / name) for name, some in by_segment.items()]
        return directories, ["+".join(each.hash for each in some) for some in by_segment.values()]

    def _brought(self, commit: CommitFacts, files: list[FileFacts], directory: Path) -> Path:
        for each in files:
            to = directory / each.path.partition("/")[2]
            loading.brought(self._server, self._cache, commit.repo, commit.id, each, to)
        return directory

    def _thumbnail(self, commit: CommitFacts, segment: str, place: Place) -> bytes:
        """One thumbnail, and nothing else of its file."""
        path = f"{segment}/{thumbnailfiles.DIRECTORY}/{place.part}{thumbnailfiles.SUFFIX}"
        content = b"".join(self._server.read(commit.repo, commit.id, path, place.begin, place.size))
        return thumbnailfiles.check(content, place, path)


def _check_model(library: Library, spec: BackboneSpec) -> None:
    if library.facts.model != spec.sha256:
        raise StageError(
            f"the index was computed with the model {library.facts.described}, and its commit of models holds "
            f"{spec.described} {spec.sha256}: reprocess it with `lookalike deploy --reprocess features`"
        )
