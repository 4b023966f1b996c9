"""The service follows the branch `production` of a real Pachyderm's `select`: forward, back, and to nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stages.datum.file_cache import FileCache
from stages.record.framing import Framing
from stages.serving.answer import upload_decoder
from stages.serving.follow.backbone_pool import BackbonePool
from stages.serving.follow.commit_follower import CommitFollower
from stages.serving.follow.pachyderm_client import PachydermAddress, PachydermClient
from stages.serving.follow.promoted_model import PromotedModel
from stages.serving.follow.promotion_source import PromotionSource
from tests.servers import Localpachd, StartPachd
from tests.stages.models import SmallModel
from tests.stages.serving import models, services
from tests.stages.serving.follow.followers import create_pipeline, followers, until, write_backbone

if TYPE_CHECKING:
    import python_pachyderm

    from stages.backbone.backbone_spec import BackboneSpec

pytestmark = pytest.mark.timeout(300)

_COPY = 'cd "${LOCALPACHD_PFS:-/pfs}" && cp -r %s/. out/'


@dataclass
class World:
    """A Pachyderm whose `select` is computed from `labelled`, that from `images`, `labels` and `models`, and from the
    repo `trained`, which has the files of its models."""

    server: Localpachd
    backbone: Path
    spec: BackboneSpec
    scratch: Path

    @property
    def client(self) -> python_pachyderm.Client:
        """A client of the server."""
        return self.server.client()

    def put(self, repo: str, files: Mapping[str, bytes]) -> str:
        """Puts files in place of all, and waits for the jobs; returns the commit's id."""
        client = self.client
        with client.commit(repo, "master") as commit:
            for path in [each.file.path for each in client.list_file(commit, "/")]:
                client.delete_file(commit, path)
            for path, content in files.items():
                client.put_file_bytes(commit, path, content)
        client.wait_commit(commit.id)
        return str(commit.id)

    def select(self, seed: int, **options: Any) -> str:
        """A commit of select with another model; returns its id."""
        directory = self.scratch / f"model-{seed}{'-'.join(options.values())}"
        if not directory.exists():
            models.write(directory, models.backbone(self.spec), seed, **options)
        return self.put("trained", {f"/{each.name}": each.read_bytes() for each in directory.iterdir()})

    def promote(self, commit: str) -> None:
        """Moves the branch, as `lookalike classify promote` does."""
        self.client.create_branch("select", "production", head_commit=("select", commit))


Follow = Callable[..., CommitFollower[PromotedModel]]


@pytest.fixture(scope="module")
def backbone(small_model: SmallModel, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BackboneSpec]:
    """The directory of a backbone of 32 pixels, and its description."""
    place = tmp_path_factory.mktemp("backbone")
    return place, write_backbone(small_model, place, "small")


@pytest.fixture
def bare(start_pachd: StartPachd, backbone: tuple[Path, BackboneSpec], tmp_path: Path) -> World:
    """A server of the test's own without pipelines."""
    return without_pipelines(start_pachd(tmp_path / "pachd"), backbone, tmp_path)


def without_pipelines(server: Localpachd, backbone: tuple[Path, BackboneSpec], place: Path) -> World:
    (place / "scratch").mkdir()
    return World(server, *backbone, place / "scratch")


@pytest.fixture(scope="module")
def shared(
    start_shared_pachd: StartPachd, backbone: tuple[Path, BackboneSpec], tmp_path_factory: pytest.TempPathFactory
) -> World:
    place = tmp_path_factory.mktemp("promoted")
    return with_pipelines(without_pipelines(start_shared_pachd(place / "pachd"), backbone, place))


@pytest.fixture
def world(shared: World) -> World:
    """A server with the pipelines, on which nothing is promoted; tests share it."""
    if any(each.branch.name == "production" for each in shared.client.list_branch("select")):
        shared.client.delete_branch("select", "production")
    return shared


def with_pipelines(world: World) -> World:
    client = world.client
    for repo in ("images", "labels", "models", "trained"):
        client.create_repo(repo)
    world.put("images", {"/a.jpg": b"a picture"})
    world.put("labels", {"/labels.csv": b"source,label,name\n"})
    world.put("models", {f"/{each.name}": each.read_bytes() for each in world.backbone.iterdir()})
    create_pipeline(client, "labelled", _COPY % "labels", ("images", "labels", "models"))
    create_pipeline(client, "select", _COPY % "trained", ("labelled", "labels", "trained"))
    return world


@pytest.fixture
def follow(
    request: pytest.FixtureRequest, pool: BackbonePool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Follow]:
    """Follows the server of the test."""
    own: World = request.getfixturevalue("bare" if "bare" in request.fixturenames else "world")
    monkeypatch.setattr("stages.serving.follow.promotion_source._LOOK_EVERY", 0.1)
    cache = FileCache(tmp_path / "cache")

    def source(server: PachydermClient, backbones: BackbonePool | None) -> PromotionSource:
        return PromotionSource(server, cache, backbones or pool)

    with followers(own.server, source) as begin:
        yield begin


def served(following: CommitFollower[PromotedModel], commit: str) -> PromotedModel:
    """The model of that commit, once it answers."""
    state = until(following, lambda each: each.snapshot is not None and each.snapshot.commits.select == commit)
    assert (state.kind, state.message) == ("ready", "")
    assert state.snapshot is not None
    return state.snapshot


def test_the_branch_is_followed_forward_and_back(bare: World, follow: Follow) -> None:
    following = follow()
    assert "`lookalike classify promote`" in until(following, lambda each: each.kind == "empty").message
    world = with_pipelines(bare)
    first, second = world.select(1), world.select(2)
    world.promote(first)
    before = served(following, first)
    assert before.classifier.chosen.run == "run-1"
    world.promote(second)
    after = served(following, second)
    assert after.classifier.chosen.run == "run-2"
    assert after.sha256 != before.sha256
    assert after.embedder is before.embedder
    world.promote(first)
    assert served(following, first).sha256 == before.sha256
    world.client.delete_branch("select", "production")
    until(following, lambda each: each.kind == "empty" and each.snapshot is None)


def test_the_commits_of_the_provenance_are_told(world: World, follow: Follow) -> None:
    commit = world.select(1)
    world.promote(commit)
    told = served(follow(), commit).commits
    client = world.client

    def of(repo: str) -> str:
        return str(next(iter(client.inspect_commit((repo, "master")))).commit.id)

    assert (told.project, told.select) == ("default", commit)
    assert (told.labels, told.library, told.model) == (of("labels"), of("images"), of("models"))
    assert told.labelled == of("labelled")
    later = world.put("labels", {"/labels.csv": b"source,label,name\na.jpg,cat,\n"})
    world.promote(later)
    assert served(follow(), later).commits.labels == later


def test_a_commit_without_a_model_leaves_the_one_before_in_use(world: World, follow: Follow) -> None:
    empty, good = world.put("trained", {"/runs.json": b"[]"}), world.select(1)
    following = follow()
    world.promote(empty)
    assert "has no model: promote one with" in until(following, lambda each: each.kind == "failed").message
    world.promote(good)
    before = served(following, good)
    world.promote(empty)
    state = until(following, lambda each: "has no model" in each.message)
    assert (state.kind, state.snapshot) == ("ready", before)
    world.promote(good)
    until(following, lambda each: not each.message)
    assert following.state().snapshot is before


def test_a_branch_that_pachyderm_made_for_a_pipeline_has_no_model(world: World, follow: Follow) -> None:
    world.client.create_branch("select", "production")
    following = follow()
    until(following, lambda each: each.kind == "empty" and "`lookalike classify promote`" in each.message)
    commit = world.select(1)
    world.promote(commit)
    served(following, commit)


def test_a_model_of_another_backbone_is_refused(world: World, follow: Follow) -> None:
    directory = models.write(world.scratch / "other", models.backbone(world.spec), 1)
    content = (directory / "labels.json").read_text().replace(world.spec.sha256, "f" * 64)
    (directory / "labels.json").write_text(content)
    commit = world.put("trained", {f"/{each.name}": each.read_bytes() for each in directory.iterdir()})
    world.promote(commit)
    state = until(follow(), lambda each: each.kind == "failed")
    assert "takes the vectors of small at 32 px " + "f" * 64 in state.message
    assert "`lookalike deploy --reprocess train`" in state.message


def test_a_model_of_pictures_needs_no_backbone(world: World, follow: Follow) -> None:
    commit = world.select(3, takes="pictures")
    world.promote(commit)
    promoted = served(follow(), commit)
    assert promoted.embedder is None
    assert promoted.device == "cpu"
    assert promoted.classifier(np.zeros((1, 32, 32, 3), np.uint8)).shape == (1, 5)


def test_a_backbone_that_is_loaded_is_not_loaded_again(world: World, follow: Follow, tmp_path: Path) -> None:
    cache = FileCache(tmp_path / "cache")
    backbones = BackbonePool(cache, {})
    models_commit = str(next(iter(world.client.inspect_commit(("models", "master")))).commit.id)
    server = PachydermClient(PachydermAddress(world.server.address))
    embedder, _ = backbones.embedder(server, world.spec, models_commit, tmp_path / "place")
    server.close()
    commit = world.select(1)
    world.promote(commit)
    assert served(follow(given=backbones), commit).embedder is embedder


def test_it_is_no_news_beside_a_library_that_nothing_is_promoted(bare: World, follow: Follow) -> None:
    lines: list[str] = []
    following = follow(report=lines.append, optional=True)
    until(following, lambda each: each.kind == "empty")
    world = with_pipelines(bare)
    commit = world.select(1)
    world.promote(commit)
    served(following, commit)
    following.close()
    assert not [line for line in lines if "promote" in line]
    assert lines[-1].endswith(f"the model run-1 with 5 labels of commit {commit[:12]}")


@pytest.mark.only_in_all
def test_requests_go_on_while_models_are_promoted(world: World, follow: Follow) -> None:
    """A load of requests, and promotions on the server meanwhile: no request fails, each names one commit, and its
    probabilities are those of that commit's model."""
    commits = [world.select(seed) for seed in (1, 2, 3)]
    world.promote(commits[0])
    following = follow()
    every: dict[str, PromotedModel] = {}
    contents = [services.made(seed) for seed in range(3)]
    done = threading.Event()

    def ask(number: int) -> list[tuple[str, int, Any]]:
        client, answers = services.Client(service.port), []
        turn = number
        while not done.is_set():
            turn = (turn + 1) % len(contents)
            answer = client.ask("/classify", *services.form(None, [contents[turn]] * 2))
            assert answer.status == 200, answer
            first, second = answer.data["pictures"]
            assert first["labels"] == second["labels"]
            answers.append((answer.data["commits"]["select"], turn, first["labels"]))
        client.close()
        return answers

    every[commits[0]] = served(following, commits[0])
    with services.running(None, promoted=following.state) as service, ThreadPoolExecutor(4) as threads:
        asking = [threads.submit(ask, number) for number in range(4)]
        try:
            for commit in [*commits[1:], *commits[:2], commits[2]]:
                world.promote(commit)
                every[commit] = served(following, commit)
        finally:
            done.set()
        answers = [each for asked in asking for each in asked.result()]
    assert {commit for commit, _, _ in answers} == every.keys()
    for commit, turn, labels in answers:
        promoted = every[commit]
        assert promoted.embedder is not None
        pixels = upload_decoder.decode_upload("", contents[turn], Framing(32, "pad"))[1][None]
        (row,) = promoted.classifier(promoted.embedder(pixels))
        by_label = dict(zip(promoted.classifier.chosen.labels, row.tolist(), strict=True))
        assert {each["label"]: each["probability"] for each in labels} == pytest.approx(by_label, abs=0, rel=1e-7)
