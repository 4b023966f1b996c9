"""The service follows the commits of a real Pachyderm's index: what it takes, what it keeps, and what it says."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
import python_pachyderm

from stages.datum.contract import StageError
from stages.datum.file_cache import FileCache
from stages.knn.search_settings import SearchSettings
from stages.record.sources import Source
from stages.serving.follow import segment_fetcher
from stages.serving.follow.backbone_pool import BackbonePool
from stages.serving.follow.commit_follower import CommitFollower
from stages.serving.follow.copy_listings import CopyListings
from stages.serving.follow.index_source import IndexSource
from stages.serving.follow.original_files import SourceGoneError
from stages.serving.follow.pachyderm_client import Absent, PachydermAddress, PachydermClient
from stages.serving.follow.snapshots import Snapshot
from tests import conditions
from tests.servers import Localpachd, StartPachd
from tests.stages.models import SmallModel
from tests.stages.serving.follow.followers import DIMENSION, create_pipeline, followers, until, write_backbone
from tests.stages.serving.segments import PARTS, ids, write_segment

if TYPE_CHECKING:
    from stages.backbone.backbone_spec import BackboneSpec

pytestmark = pytest.mark.timeout(300)

ORIGINAL = b"\xff\xd8\xff\xe0 the original"
_COPY = 'cd "${LOCALPACHD_PFS:-/pfs}" && test ! -e features/fails && cp -r features/index/. out/'


@dataclass
class World:
    """A Pachyderm with `images`, `models`, and an `index` that is copied from `features`, whose directory `index` has
    its segments."""

    server: Localpachd
    models: dict[str, Path]
    specs: dict[str, BackboneSpec]
    scratch: Path

    @property
    def client(self) -> python_pachyderm.Client:
        """A client of the server."""
        return self.server.client()

    def put(self, repo: str, root: Path, below: str = "") -> str:
        """Puts all files of a directory in one commit, in place of what is there; returns its id."""
        client = self.client
        with client.commit(repo, "master") as commit:
            client.delete_file(commit, f"{below}/")
            for path in sorted(each for each in root.rglob("*") if each.is_file()):
                client.put_file_bytes(commit, f"{below}/{path.relative_to(root)}", path.read_bytes())
        return str(commit.id)

    def change(self, segments: dict[str, int], model: str = "first", name: str = "") -> str:
        """Puts an index of segments with so many pictures, and waits until its job has ended; returns its commit."""
        root = self.scratch / (name or f"{len(list(self.scratch.iterdir()))}")
        spec = self.specs[model]
        facts = {
            "model": spec.sha256, "image_size": spec.image_size, "dimension": DIMENSION, "backbone": spec.described
        }  # fmt: skip
        for segment, count in segments.items():
            random = np.random.default_rng(ord(segment))
            write_segment(root / segment, ids(segment, count), random.normal(size=(count, DIMENSION)), facts=facts)
        root.mkdir(exist_ok=True)
        return self.ended(self.put("features", root, "/index"))

    def ended(self, commit: str) -> str:
        """The commit set, once it has ended."""
        self.client.wait_commit(commit)
        return commit

    def push(self, model: str) -> str:
        """Puts a backbone."""
        return self.ended(self.put("models", self.models[model]))


Follow = Callable[..., CommitFollower[Snapshot]]
Backbones: TypeAlias = "tuple[dict[str, Path], dict[str, BackboneSpec]]"


@pytest.fixture(scope="module")
def backbones(small_model: SmallModel, tmp_path_factory: pytest.TempPathFactory) -> Backbones:
    """Two backbones of 32 pixels: their directories and descriptions."""
    places = {name: tmp_path_factory.mktemp(name) for name in ("first", "second")}
    specs = {name: write_backbone(small_model, place, name, seed) for seed, (name, place) in enumerate(places.items())}
    return places, specs


@pytest.fixture
def bare(start_pachd: StartPachd, backbones: Backbones, tmp_path: Path) -> World:
    """A server of the test's own with repos and no commits."""
    return with_repos(start_pachd(tmp_path / "pachd"), backbones, tmp_path)


def with_repos(server: Localpachd, backbones: Backbones, place: Path) -> World:
    (place / "scratch").mkdir()
    made = World(server, *backbones, place / "scratch")
    for repo in ("images", "models", "features"):
        made.client.create_repo(repo)
    return made


@pytest.fixture(scope="module")
def world(start_shared_pachd: StartPachd, backbones: Backbones, tmp_path_factory: pytest.TempPathFactory) -> World:
    """A server with repos, a backbone, a picture and the pipeline index, to which each test adds commits of its own."""
    place = tmp_path_factory.mktemp("followed")
    return with_pipeline(with_repos(start_shared_pachd(place / "pachd"), backbones, place))


def with_pipeline(world: World) -> World:
    client = world.client
    with client.commit("images", "master") as commit:
        client.put_file_bytes(commit, "/trip/a.jpg", ORIGINAL)
    world.push("first")
    create_pipeline(client, "index", _COPY, ("features", "images", "models"))
    return world


@pytest.fixture
def follow(request: pytest.FixtureRequest, pool: BackbonePool, tmp_path: Path) -> Iterator[Follow]:
    """Follows the server of the test."""
    own: World = request.getfixturevalue("bare" if "bare" in request.fixturenames else "world")
    cache, settings = FileCache(tmp_path / "cache"), SearchSettings(backend="numpy")

    def source(server: PachydermClient, _: object) -> IndexSource:
        return IndexSource(server, cache, settings, {}, lambda _: None, pool, CopyListings(server))

    with followers(own.server, source) as begin:
        yield begin


def served(following: CommitFollower[Snapshot], commit: str) -> Snapshot:
    """The snapshot of that commit, once it answers."""
    state = until(following, lambda each: each.snapshot is not None and each.snapshot.commits.index == commit)
    assert state.kind == "ready"
    assert state.snapshot is not None
    return state.snapshot


def test_a_new_index_is_taken_and_what_has_not_changed_is_kept(world: World, follow: Follow) -> None:
    first = world.change({"0": 5, "a": 7})
    following = follow()
    before = served(following, first)
    assert len(before.library) == 12
    assert before.device == "cpu"
    conditions.until(lambda: before.library.attributes.facets.cache_info().currsize)  # made while it answers
    assert before.library.attributes.facets("", "", ()) and before.library.attributes.facets.cache_info().hits
    assert before.commits.model == next(iter(world.client.inspect_commit(("models", "master")))).commit.id
    second = world.change({"0": 5, "a": 7, "f": 3})
    after = served(following, second)
    assert len(after.library) == 15
    assert len(before.library) == 12
    assert after.embedder is before.embedder
    kept = [one.key == other.key for one, other in zip(before.library.segments, after.library.segments, strict=False)]
    assert kept == [True, True]
    point = after.library.vectors(np.array([14]))
    assert after.searching.search(point, 1, known=[14]).topk.rows[0, 0] == 14


def test_a_change_brings_its_segment_alone_and_leaves_no_old_vectors(
    world: World, follow: Follow, tmp_path: Path
) -> None:
    following = follow()
    first = world.change({"0": 5, "a": 7})
    before = served(following, first)
    files = tmp_path / "cache" / "files"
    for path in files.glob("*/*"):
        os.utime(path, (0, 0))
    asked: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("files", "read", "archive"):
            patch.setattr(PachydermClient, name, noted(getattr(PachydermClient, name), asked))
        second = world.change({"0": 5, "a": 8})
        after = served(following, second)
    assert after.library.segments[0] is before.library.segments[0]
    assert [each for each in asked if each.startswith(("0", "/0"))] == []
    assert {"a/images.parquet", "/a/vectors/*"} <= {*asked}
    server = PachydermClient(PachydermAddress(world.server.address))
    (zero, old), (same, new) = (
        segment_fetcher.list_segments(server, server.commit("index", each)) for each in (first, second)
    )
    kept = {path.name: path.stat().st_mtime for path in files.glob("*/*")}
    assert old.together not in kept and zero.together == same.together
    opened = [*(file.hash for each in (same, new) for file in each.files), same.together, new.together]
    assert all(kept[each] > 0 for each in opened)
    buckets = [each.hash for each in server.files("index", second, "/0/vectors/*")]
    assert len(buckets) == PARTS and not any(kept[each] for each in buckets)
    server.close()


def noted(call: Callable[..., Any], to: list[str]) -> Callable[..., Any]:
    """A call of the server with a repo, a commit and a path, which is noted."""

    def calling(server: PachydermClient, repo: str, commit: str, path: str, *others: Any) -> Any:
        to.append(path)
        return call(server, repo, commit, path, *others)

    return calling


def test_another_model_comes_with_its_index(bare: World, follow: Follow) -> None:
    world, following = with_pipeline(bare), follow()
    before = served(following, world.change({"0": 5}))
    world.push("second")
    until(following, lambda state: "was computed with the model" in state.message)
    assert following.state().snapshot is before
    after = served(following, world.change({"0": 6}, "second"))
    assert after.spec == world.specs["second"]
    assert after.embedder is not before.embedder


def test_an_index_of_another_backend_is_refused_with_the_variable_to_set(
    world: World, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    world.change({"0": 5})
    state = until(follow(), lambda each: each.kind == "failed")
    assert state.message.endswith(
        "the index has vectors that TensorFlow computed, and this service computes on JAX: equal pictures would have "
        "different vectors. Start the service with KERAS_BACKEND=tensorflow"
    )


def test_an_empty_library_listens_and_pictures_come(world: World, follow: Follow) -> None:
    following = follow()
    world.change({})
    state = until(following, lambda each: each.kind == "empty")
    assert "lookalike add DIRECTORY" in state.message
    served(following, world.change({"3": 2}))


def test_a_failed_job_leaves_the_index_before_in_use(world: World, follow: Follow) -> None:
    following = follow()
    good = world.change({"0": 5})
    before = served(following, good)
    client = world.client
    with client.commit("features", "master") as commit:
        client.put_file_bytes(commit, "/fails", b"")
    world.ended(commit.id)
    until(following, lambda state: "failed" in state.message)
    assert following.state().snapshot == before
    with client.commit("features", "master") as commit:
        client.delete_file(commit, "/fails")
    served(following, world.ended(commit.id))


def test_the_library_of_a_fixed_commit_stays(world: World, follow: Follow) -> None:
    first = world.change({"0": 5})
    world.change({"0": 6})
    assert len(served(follow(at=first), first).library) == 5
    state = until(follow(at="f" * 32), lambda each: each.kind == "failed")
    assert "has no commit" in state.message


def test_a_server_that_goes_away_is_followed_again(bare: World, follow: Follow, start_pachd: StartPachd) -> None:
    world, following = with_pipeline(bare), follow()
    before = served(following, world.change({"0": 5}))
    port = world.server.address.rpartition(":")[2]
    world.server.kill()
    until(following, lambda state: "trying again" in state.message)
    assert following.state().snapshot == before
    world.server = start_pachd(world.scratch.parent / "pachd", "--port", port)
    served(following, world.change({"0": 5, "1": 1}))
    assert following.state().message == ""


def test_what_is_missing_is_said(bare: World, follow: Follow) -> None:
    following = follow()
    state = until(following, lambda each: each.kind == "failed")
    assert "has no pipeline index: create the pipelines with `lookalike deploy`" in state.message
    with_pipeline(bare)
    served(following, bare.change({"0": 2}))


def test_a_calibration_and_groups_of_copies_are_taken_without_a_new_index(
    world: World, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stages.serving.follow.index_source._LOOK_EVERY", 0.5)
    following = follow()
    before = served(following, world.change({"0": 5}))
    assert before.similarity is None and before.copies is None
    client = world.client
    client.create_repo("evaluate")
    spec = world.specs["first"]
    facts = {"model": spec.sha256, "metric": "euclidean"}
    calibration = {"facts": facts, "knots": [[0.0, 1.0], [2.0, 0.1]]}
    with client.commit("evaluate", "master") as commit:
        client.put_file_bytes(commit, "/calibration.json", json.dumps(calibration).encode())
    state = until(following, lambda each: each.snapshot is not None and each.snapshot.similarity is not None)
    assert state.snapshot is not None
    assert state.snapshot.library is before.library
    client.create_repo("duplicates")
    with client.commit("duplicates", "master"):
        pass
    copies = until(following, lambda each: each.snapshot is not None and each.snapshot.copies is not None).snapshot
    assert copies is not None and copies.copies is not None
    assert copies.library is before.library
    assert copies.copies.newest().lines == {"exact": [], "near": []}
    client.delete_repo("duplicates")
    client.delete_repo("evaluate")


def test_one_thumbnail_is_read_when_it_is_asked_for_and_no_file_of_them_before(
    world: World, follow: Follow, tmp_path: Path
) -> None:
    """Those of the other parts may be damaged or missing, and those of the commit that is served stay its own."""
    first = world.change({"0": 9, "a": 7}, name="first")
    library = served(follow(), first).library
    held = sorted(path.name for path in (world.scratch / "first" / "a" / "thumbnails").iterdir())
    assert held == [f"part{number}.thumbnails" for number in range(PARTS)]
    sizes = {path.stat().st_size for path in (world.scratch / "first").glob("*/thumbnails/*")}
    kept = {path.stat().st_size for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    assert kept and not kept & sizes
    asked: list[tuple[str, int, int | None]] = []
    read = PachydermClient.read

    def counted(
        server: PachydermClient, repo: str, commit: str, path: str, offset: int = 0, most: int | None = None
    ) -> Any:
        asked.append((path, offset, most))
        return read(server, repo, commit, path, offset, most)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PachydermClient, "read", counted)
        assert library.thumbnail(13) == b"jpeg of " + library.id(13).encode()
    assert asked == [("a/thumbnails/part1.thumbnails", 72, 72)]
    with world.client.commit("features", "master") as commit:
        world.client.put_file_bytes(commit, "/index/0/thumbnails/part0.thumbnails", b"")
        world.client.delete_file(commit, "/index/0/thumbnails/part1.thumbnails")
    damaged = served(follow(), world.ended(commit.id)).library
    assert damaged.thumbnail(2) == b"jpeg of " + damaged.id(2).encode()
    with pytest.raises(StageError, match=r"0/thumbnails/part0\.thumbnails is not the file of thumbnails"):
        damaged.thumbnail(0)
    with pytest.raises(Absent):
        damaged.thumbnail(1)
    assert library.thumbnail(0) == b"jpeg of " + library.id(0).encode()


def test_originals_are_those_of_the_commit_that_made_the_index(world: World, follow: Follow) -> None:
    snapshot = served(follow(), world.change({"0": 5}))
    client = world.client
    with client.commit("images", "master") as commit:
        client.delete_file(commit, "/trip/a.jpg")
    world.ended(commit.id)
    digest = hashlib.sha256(ORIGINAL).hexdigest()
    found = snapshot.originals.open(Source("trip/a.jpg", digest, 1, 1, len(ORIGINAL), ""))
    assert b"".join(found.chunks) == ORIGINAL
    assert found.media_type == "image/jpeg"
    with pytest.raises(SourceGoneError, match=r"none\.jpg"):
        snapshot.originals.open(Source("trip/none.jpg", digest, 1, 1, 1, ""))
