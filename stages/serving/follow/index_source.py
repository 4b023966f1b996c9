"""The index as it is followed: its newest good commit as a snapshot, with its segments brought here, the model that
made it, and the calibration that belongs to it.

A thumbnail is read from the server when it is asked for. TensorFlow is imported and the model loaded in a thread, while
the library is brought and opened.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stages.backbone.backbone_spec import PUSH, BackboneSpec
from stages.datum.contract import StageError
from stages.datum.file_cache import FileCache
from stages.datum.text_format import counted
from stages.files import thumbnail_files
from stages.files.thumbnail_files import ThumbnailPlace
from stages.knn.search_settings import SearchSettings
from stages.quality import similarity
from stages.quality.similarity import SimilarityCalibration
from stages.serving.follow import backbone_pool, copy_listings, segment_fetcher
from stages.serving.follow.backbone_pool import BackbonePool
from stages.serving.follow.commit_follower import NewestCommit
from stages.serving.follow.copy_listings import CopyListings
from stages.serving.follow.map_listings import MapListings
from stages.serving.follow.original_files import FETCHED, OriginalFiles
from stages.serving.follow.pachyderm_client import Absent, CommitFacts, PachydermClient, PachydermError, Unreachable
from stages.serving.follow.segment_fetcher import SegmentFetcher, SegmentListing
from stages.serving.follow.snapshots import Snapshot, SnapshotCommits, StepReporter
from stages.serving.search.mapped_library import MappedLibrary
from stages.serving.search.search_engine import SearchEngine

if TYPE_CHECKING:
    from stages.backbone.embedder import Embedder


REPO, VECTORS = "index", "vector-index"
"""The indexes that can be followed: that of the model, and that of vectors that people have put."""

_LOOK_EVERY = 30.0
"""Seconds for which one call waits for a new commit. Between two calls the calibration and the copies are looked at."""


class IndexSource:
    """The index of one Pachyderm. See CommitSource."""

    name = "the index"
    empty = "the library is empty: add pictures with `lookalike add DIRECTORY`"
    other = "`lookalike history` lists those that it can be asked at"

    def __init__(
        self,
        server: PachydermClient,
        cache: FileCache,
        settings: SearchSettings,
        environment: Mapping[str, str],
        report: Callable[[str], None] = print,
        backbones: BackbonePool | None = None,
        copies: CopyListings | None = None,
        repo: str = REPO,
    ) -> None:
        """settings: of searches; the metric is the index's own unless the environment names one. backbones: those that
        others of this process have loaded. copies: the groups of copies, None for a library of an earlier moment. repo:
        REPO or VECTORS."""
        self.repo = repo
        self._server = server
        self._cache = cache
        self._settings = settings
        self._environment = environment
        self._report = report
        self._listings = copies
        self._maps = None if copies is None else MapListings(server)
        self._backbones = backbones or BackbonePool(cache, environment)
        self._together: frozenset[str] = frozenset()  # the kept vectors of the snapshot that was made last

    def newest(self) -> NewestCommit:
        """The newest good commit."""
        head: CommitFacts | None = None
        finished = ""
        try:
            for each in self._server.commits(self.repo):
                head = head or each
                finished = finished or (each.id if each.finished else "")
                if each.good:
                    failed = f"the newest commit of {self.repo} failed: {head.error}" if head.error else ""
                    return NewestCommit(each, failed, since=finished)
        except Absent as error:
            fix = "create the pipelines with `lookalike deploy`"
            if self.repo == VECTORS:
                fix = "put vectors with `lookalike vectors add`, which creates it"
            raise StageError(f"project {self._server.at.project} has no pipeline {self.repo}: {fix}") from error
        if head is None:
            raise StageError(f"the pipeline {self.repo} has no commit yet: add pictures with `lookalike add DIRECTORY`")
        if head.error:
            return NewestCommit(
                None, f"the index could not be computed: {head.error}; see `lookalike status`", "failed", finished
            )
        return NewestCommit(
            None, "the index is being computed for the first time: see `lookalike status`", since=finished
        )

    def open(self, commit: CommitFacts, before: Snapshot | None, say: StepReporter) -> Snapshot | None:
        """The snapshot of a finished commit of the index; None if the library is empty. before: the one in use, whose
        model and unchanged segments are taken over. Raises StageError or PachydermError, with the reason."""
        segments = segment_fetcher.list_segments(self._server, commit)
        if not segments:
            return None
        made_from = self._server.provenance(commit)
        model = made_from.get("models", "")
        if not model:
            raise StageError(f"commit {commit.id} of index does not tell the model that it was made with: {PUSH}")
        with self._cache.scratch() as scratch, ThreadPoolExecutor(1, "model") as thread:
            spec = backbone_pool.read_backbone_spec(self._server, model)
            load = partial(self._loading, thread, spec, model, scratch, before, say)
            # The index, once it is here, tells whose vectors it has.
            loaded = load() if self.repo == REPO else None
            say(f"bringing the index of commit {commit.id[:12]}")
            held = before.library.segments if before is not None else ()
            opened = SegmentFetcher(self._server, self._cache, commit, segments, scratch / "index").opened(held)
            library = MappedLibrary(opened, partial(self._thumbnail, commit))
            is_foreign = self.repo == VECTORS and library.origin.model != spec.sha256
            if not is_foreign:
                _check_model(library, spec)
                self._backbones.check(library.origin, "the index")
                loaded = loaded or load()
            if loaded and self._settings.backend == "sklearn":  # whose package the import of TensorFlow hides
                loaded()
            searching = SearchEngine(
                library,
                self._settings_for(library),
                self._environment,
                self._report,
                before.searching if before is not None else None,
            )
            say(
                f"loading the model {spec.described}"
                if not is_foreign
                else f"the vectors are of {library.origin.named}"
            )
            embedder, device = loaded() if loaded else (None, "cpu")
            words = None if is_foreign else self._backbones.text_tower(self._server, spec, model, scratch / "words")
        self._keep(segments)
        return Snapshot(
            SnapshotCommits(self._server.at.project, commit.id, made_from.get("images", ""), model),
            library,
            searching,
            embedder,
            spec,
            None if is_foreign else backbone_pool.read_scale(self._server, model, spec),
            self._similarity(library),
            OriginalFiles(self._server, made_from.get("images", ""), self._cache, made_from.get(FETCHED, "")),
            device,
            self._copies(),
            words,
            self._maps,
        )

    def commit(self, held: Snapshot) -> str:
        """The commit of the index."""
        return held.commits.index

    def described(self, held: Snapshot) -> str:
        """The number of pictures."""
        return counted(len(held.library), "picture", "pictures")

    def wait(self, since: str, held: Snapshot | None, closing: threading.Event) -> Snapshot | None:
        """Waits for the next finished commit; without one for a while, looks for another calibration and for copies.
        What filters need of a new snapshot is made first, while it answers already."""
        if held is not None and not closing.is_set():
            held.library.attributes.prepare()
        if closing.is_set() or self._server.next_finished(self.repo, since, _LOOK_EVERY) is not None or held is None:
            return held
        similarity, copies = self._similarity(held.library), self._copies()
        if similarity == held.similarity and copies is held.copies:
            return held
        return replace(held, similarity=similarity, copies=copies)

    def _copies(self) -> CopyListings | None:
        try:
            return self._listings if self._server.newest(copy_listings.REPO) is not None else None
        except Unreachable:
            raise
        except PachydermError:  # a token that may not read them
            return None

    def _similarity(self, library: MappedLibrary) -> SimilarityCalibration | None:
        """The newest calibration, if it is that of the library's model."""
        newest = self._server.newest("evaluate")
        if newest is None or not self._server.files("evaluate", newest.id, "/calibration.json"):
            return None
        found = similarity.read(b"".join(self._server.read("evaluate", newest.id, "calibration.json")))
        return found if found is not None and found.model == library.origin.model else None

    def _settings_for(self, library: MappedLibrary) -> SearchSettings:
        named = self._environment.get("METRIC")
        return self._settings if named else replace(self._settings, metric=library.metric)

    def _loading(
        self,
        thread: ThreadPoolExecutor,
        spec: BackboneSpec,
        commit: str,
        scratch: Path,
        before: Snapshot | None,
        say: StepReporter,
    ) -> Callable[[], tuple[Embedder | None, str]]:
        """Begins to load a model; what it returns waits until that is done, and gives the model and its device."""
        if before is not None and before.spec == spec and before.embedder is not None:
            same = before.embedder, before.device
            return lambda: same
        say(f"starting {self._backbones.backend_name} for the model {spec.described}")
        return thread.submit(self._backbones.embedder, self._server, spec, commit, scratch / "model").result

    def _keep(self, segments: Sequence[SegmentListing]) -> None:
        """Keeps longest what the next start opens, and no vectors of segments that have changed since."""
        together = frozenset(each.together for each in segments)
        self._cache.drop(self._together - together)
        for each in segments:
            self._cache.renew([*(file.hash for file in each.files), each.together])
        self._cache.trim()
        self._together = together

    def _thumbnail(self, commit: CommitFacts, segment: str, place: ThumbnailPlace) -> bytes:
        """One thumbnail, and nothing else of its file."""
        path = f"{segment}/{thumbnail_files.DIRECTORY}/{place.part}{thumbnail_files.SUFFIX}"
        content = b"".join(self._server.read(commit.repo, commit.id, path, place.begin, place.size))
        return thumbnail_files.check(content, place, path)


def _check_model(library: MappedLibrary, spec: BackboneSpec) -> None:
    if library.origin.model != spec.sha256:
        raise StageError(
            f"the index was computed with the model {library.origin.described}, and its commit of models holds "
            f"{spec.described} {spec.sha256}: reprocess it with `lookalike deploy --reprocess features`"
        )
