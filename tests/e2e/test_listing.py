"""Pictures of a bucket that the pipelines list and fetch by themselves: the datums of each change."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from pipelines.client.commit_writer import CommitWriter
from pipelines.client.jobs.jobs import ProjectJobs
from stages.datum.file_cache import FileCache
from stages.files.tables.index_table import TABLE, IndexTable
from stages.record.sources import Source
from stages.serving.follow.original_files import FETCHED, OriginalFiles
from stages.serving.follow.pachyderm_client import PachydermAddress, PachydermClient
from tests.conditions import until
from tests.e2e.world import Job, MakeWorld, Paint, World
from tests.s3_server import KEYS, S3Server, s3_server

pytestmark = pytest.mark.timeout(300)

NUMBER = 12
FILES = 4


@dataclass
class Cloud:
    """An object store that can be down, with one bucket."""

    held: ExitStack
    server: S3Server
    bucket: Any
    paint: Paint

    def begin(self, port: int) -> None:
        """Starts it again, with the bucket as it was first."""
        self.held.close()
        self.server = self.held.enter_context(s3_server(port))
        self.bucket = self.server.bucket("bucket")
        self.fill()

    def fill(self) -> None:
        for number in range(NUMBER):
            self.bucket.put(f"photos/{number}.png", self.paint(number))
        self.bucket.put("photos/notes.txt", b"no picture")


@pytest.fixture(scope="module")
def cloud(paint: Paint) -> Iterator[Cloud]:
    with ExitStack() as held:
        server = held.enter_context(s3_server())
        cloud = Cloud(held, server, server.bucket("bucket"), paint)
        cloud.fill()
        yield cloud


@pytest.fixture(scope="module")
def world(make_world: MakeWorld, backbones: dict[str, Path], cloud: Cloud, paint: Paint) -> World:
    """A library with a picture of its own, and the bucket listed."""
    world = make_world("listing")
    world.deploy()
    world.push(backbones["first"])
    world.client.create_secret("bucket", dict(KEYS))
    world.settle(world.add({"mine.png": paint(100)}))
    settings = ("--secret", "bucket", "--endpoint", cloud.server.url, "--buckets", str(FILES))
    world.lookalike("listing", "s3://bucket/photos", *settings)
    return world


def ticked(world: World) -> dict[str, Job]:
    """The jobs of the newest tick of the clock."""
    return world.end(CommitWriter(world.connection, "listing_tick").newest())


def listed(world: World) -> dict[str, Job]:
    """The jobs of a listing now, as `pachctl run cron` starts one. Ticks are files named by the second: another one in
    the second of the last would be the same datum."""
    last = max(world.hashes("listing_tick"))
    until(lambda: f"{datetime.now(UTC):/%Y-%m-%dT%H:%M:%SZ}" > last)
    world.client.run_cron("listing")
    return ticked(world)


def names(world: World) -> set[str]:
    """The names of all pictures in the index."""
    tables = (IndexTable.read(BytesIO(content)) for _, content in world.repo("index").read_all(f"/*/{TABLE}"))
    return {source.path for table in tables for sources in table.sources for source in sources}


def test_a_bucket_becomes_pictures_of_the_library(world: World) -> None:
    jobs = ticked(world)
    files = jobs["fetch"].processed
    assert jobs["listing"].counts == (1, 0, 0)
    assert jobs["fetch"].counts == (files, 0, 0) and 1 < files <= FILES
    assert jobs["preprocess"].counts == (files, 1, 0)
    assert names(world) == {"mine.png", *(f"photos/{number}.png" for number in range(NUMBER))}
    assert "pictures 13 in the index" in " ".join(world.lookalike("status").split())
    assert "fetch: added 12" in world.lookalike("history")


def test_a_tick_without_a_change_computes_nothing(world: World) -> None:
    jobs = listed(world)
    assert jobs["listing"].processed == 1  # of its new tick
    assert {name: job.processed for name, job in jobs.items() if name != "listing" and job.processed} == {}


def test_one_changed_object_is_one_datum_of_each_pipeline(world: World, cloud: Cloud, paint: Paint) -> None:
    cloud.bucket.put("photos/3.png", paint(3, 5))
    jobs = listed(world)
    assert jobs["listing"].counts == (1, 0, 0)
    assert jobs["fetch"].counts[0] == jobs["preprocess"].counts[0] == jobs["features"].counts[0] == 1
    assert jobs["partition"].counts[0] == 1
    assert "fetch: replaced photos/3.png" in world.lookalike("history", "photos/3.png")


def test_a_picture_is_shown_and_followed_to_its_block(world: World, tmp_path: Path, paint: Paint) -> None:
    assert "photos/3.png" in world.lookalike("show", "photos/3.png", "--output", tmp_path)
    told = json.loads(world.lookalike("trace", "--picture", "photos/3.png", "--json"))
    assert "'repo': 'fetch'" in str(told)
    server = PachydermClient(PachydermAddress(world.pachd.address, "default"))
    heads = [CommitWriter(world.connection, "images").newest(), world.repo(FETCHED).good().at]  # type: ignore[union-attr]
    originals = OriginalFiles(server, heads[0], FileCache(tmp_path / "cache"), heads[1])
    content = paint(3, 5)
    found = originals.open(Source("photos/3.png", hashlib.sha256(content).hexdigest()))
    assert b"".join(found.chunks) == content


def test_a_removed_picture_stays_away(world: World) -> None:
    said = world.lookalike("remove", "photos/4.png")
    assert "1 is still in a bucket" in said
    assert "photos/4.png" not in names(world)
    listed(world)
    assert "photos/4.png" not in names(world)
    assert "delete it there" in world.lookalike("remove", "--purge", "photos/5.png", fails=True)


def test_all_is_removed_and_what_the_bucket_has_is_hidden(world: World, cloud: Cloud, paint: Paint) -> None:
    before = names(world)
    assert before == {"mine.png", *(f"photos/{number}.png" for number in range(NUMBER) if number != 4)}
    assert f"from images. {NUMBER - 1} are still in a bucket" in world.lookalike("remove", "--all")
    assert names(world) == set()
    cloud.bucket.put("photos/new.png", paint(50))
    listed(world)
    assert names(world) == {"photos/new.png"}  # and the one that was removed before stays away
    cloud.bucket.delete("photos/new.png")
    listed(world)
    world.lookalike("undo", "--yes")
    assert names(world) == before


def test_an_export_says_what_it_lacks(world: World, tmp_path: Path) -> None:
    assert "without the pictures of listed buckets" in world.lookalike("export", tmp_path / "library.tar")


def test_a_deleted_object_leaves_the_library(world: World, cloud: Cloud) -> None:
    cloud.bucket.delete("photos/7.png")
    jobs = listed(world)
    assert (jobs["fetch"].counts[0], jobs["preprocess"].counts[0]) == (1, 1)
    assert "photos/7.png" not in names(world)


def test_a_server_that_is_down_fails_the_job_and_changes_nothing(world: World, cloud: Cloud, paint: Paint) -> None:
    before = names(world)
    port = int(cloud.server.url.rpartition(":")[2])
    cloud.held.close()
    jobs = listed(world)
    assert jobs["listing"].state == "failure" and jobs["preprocess"].state == "unrunnable"
    assert "s3://bucket/photos cannot be listed" in " ".join(world.lookalike("status").split())
    assert names(world) == before
    cloud.begin(port)
    cloud.bucket.put("photos/3.png", paint(3, 5))
    cloud.bucket.delete("photos/7.png")
    jobs = listed(world)
    assert (jobs["listing"].state, jobs["fetch"].counts[0], jobs["preprocess"].counts[0]) == ("success", 0, 0)


def test_a_deployment_keeps_the_buckets_and_off_takes_them_away(world: World) -> None:
    said = world.lookalike("deploy", "--set", "IMAGE_SIZE=96")
    assert "pipeline listing: unchanged" in said and "pipeline fetch: unchanged" in said
    world.lookalike("listing", "--off")
    pipelines = ProjectJobs(world.connection).pipelines()
    assert not pipelines.keys() & {"listing", "fetch"}
    assert pipelines["preprocess"].details.input.pfs.repo == "images"
    world.settle(world.newest("preprocess"))
    assert names(world) == {"mine.png"}
