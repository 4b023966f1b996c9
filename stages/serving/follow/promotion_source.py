"""The promoted classifier as it is followed: the commit of `select` that the branch `production` points at, forward or
back, opened with the backbone whose vectors it takes.

Knows no HTTP, and not how a model is promoted.
"""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stages.classify import classifier_description
from stages.classify.classifier_description import ClassifierDescription
from stages.classify.training.run_records import MODEL
from stages.datum.contract import StageError, load
from stages.datum.file_cache import FileCache
from stages.datum.text_format import counted
from stages.serving.follow import backbone_pool
from stages.serving.follow.backbone_pool import BackbonePool
from stages.serving.follow.commit_follower import NewestCommit
from stages.serving.follow.pachyderm_client import Absent, CommitFacts, PachydermClient
from stages.serving.follow.promoted_model import ModelCommits, PromotedModel
from stages.serving.follow.snapshots import StepReporter

if TYPE_CHECKING:
    from stages.backbone.embedder import Embedder
    from stages.classify.classifier import Classifier

REPO, BRANCH = "select", "production"

PROMOTE = "promote one with `lookalike classify promote`"

_LOOK_EVERY = 2.0
"""Seconds between two looks at the branch: it can move back, for which no call waits."""


class PromotionSource:
    """The promotions of one Pachyderm. See CommitSource."""

    repo = REPO
    name = "the promoted model"
    empty = f"no model is promoted: {PROMOTE}"
    other = f"`pachctl list commit {REPO}@master` lists those that there are"

    def __init__(self, server: PachydermClient, cache: FileCache, backbones: BackbonePool) -> None:
        """backbones: those that others of this process have loaded."""
        self._server = server
        self._cache = cache
        self._backbones = backbones

    def newest(self) -> NewestCommit:
        """The commit that the branch points at, wherever it was before."""
        try:
            head = self._server.head(REPO, BRANCH)
        except Absent:
            head = ""
        if not head:
            return NewestCommit(None, self.empty, "empty")
        found = self._server.commit(REPO, head)
        if found.good:
            return NewestCommit(found)
        if found.error:
            return NewestCommit(
                None, f"the promoted commit {head} of {REPO} failed: {PROMOTE} that has a model", "failed"
            )
        return NewestCommit(None, f"the promoted commit {head} of {REPO} is not finished", "loading")

    def open(self, commit: CommitFacts, before: PromotedModel | None, say: StepReporter) -> PromotedModel | None:
        """The model of a commit; None for an empty one, with which Pachyderm makes the branch for a pipeline that reads
        it. before: the one in use. Raises StageError if the commit has no model, or one that does not fit its backbone;
        and PachydermError."""
        del before  # a backbone that it holds is known to the backbones
        files = {each.path: each for each in self._server.files(REPO, commit.id, "/*")}
        if not files:
            return None
        if not {MODEL, classifier_description.FILE} <= files.keys():
            raise StageError(f"commit {commit.id} of {REPO} has no model: {PROMOTE} that has one")
        made_from = self._server.provenance(commit)
        say(f"bringing the model of commit {commit.id[:12]} of {REPO}")
        with self._cache.scratch() as scratch:
            for name in (MODEL, classifier_description.FILE):
                backbone_pool.fetch_file(self._server, self._cache, REPO, commit.id, files[name], scratch / name)
            described = classifier_description.parse((scratch / classifier_description.FILE).read_bytes())
            embedder, device = self._embedder(
                described, made_from.get(backbone_pool.REPO, ""), scratch / "backbone", say
            )
            say(f"loading the classifier of the run {described.run}")
            backbone_pool.import_devices()
            classifier = load("stages.classify.classifier").open(scratch)
            _warm_up(classifier)
            sha256 = hashlib.sha256((scratch / MODEL).read_bytes()).hexdigest()
        self._cache.trim()
        commits = ModelCommits(
            self._server.at.project,
            commit.id,
            *(made_from.get(repo, "") for repo in ("labelled", "labels", "parameters", "images", backbone_pool.REPO)),
        )
        return PromotedModel(commits, classifier, sha256, embedder, device)

    def commit(self, held: PromotedModel) -> str:
        """The commit of `select`."""
        return held.commits.select

    def described(self, held: PromotedModel) -> str:
        """The run and the number of labels."""
        labels = counted(len(held.classifier.chosen.labels), "label", "labels")
        return f"the model {held.classifier.chosen.run} with {labels}"

    def wait(self, since: str, held: PromotedModel | None, closing: threading.Event) -> PromotedModel | None:
        """Waits until it is time to look again."""
        del since
        closing.wait(_LOOK_EVERY)
        return held

    def _embedder(
        self, described: ClassifierDescription, models: str, directory: Path, say: StepReporter
    ) -> tuple[Embedder | None, str]:
        """The embedder whose vectors a classifier takes, None if it takes pictures; and the kind of device. models: the
        commit of the backbone that the classifier was made with."""
        if described.takes == "pictures":
            say(f"starting {self._backbones.backend_name}")
            return None, self._backbones.prepared()
        if not models:
            raise StageError(f"the promoted commit of {REPO} does not tell the commit of models that it was made with")
        spec = backbone_pool.read_backbone_spec(self._server, models)
        if spec.sha256 != described.origin.model:
            raise StageError(
                f"the promoted classifier takes the vectors of {described.origin.backbone} "
                f"{described.origin.model}, and its commit of models holds {spec.described} {spec.sha256}: compute "
                "it again with `lookalike deploy --reprocess train`"
            )
        self._backbones.check(described.origin, "the promoted classifier")
        if self._backbones.held(spec) is None:
            say(f"starting {self._backbones.backend_name} for the model {spec.described}")
        return self._backbones.embedder(self._server, spec, models, directory)


def _warm_up(classifier: Classifier) -> None:
    """Runs one forward pass, which is slower than all later ones."""
    backbone = classifier.chosen.origin
    if classifier.chosen.takes == "vectors":
        classifier(np.zeros((1, backbone.dimension), np.float32))
    else:
        classifier(np.zeros((1, backbone.image_size, backbone.image_size, 3), np.uint8))
