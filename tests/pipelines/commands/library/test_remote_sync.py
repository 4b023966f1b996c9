"""`lookalike add` and `sync` of buckets and lists, as people type it, with an S3 server in a process of its own."""

import hashlib
import io
import json
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.analysis.measurement.copy_groups import read_contents
from pipelines.client.commit_history import CommitHistory
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import ingest, originals
from pipelines.library.block_store import BlockDownloads
from pipelines.library.snapshots import LibrarySnapshot
from stages.record.sources import Source
from tests.command import Command
from tests.pipelines.stand_ins import copying_spec, deploy_specs
from tests.s3_server import PAGE, S3Server, named_s3_server
from tests.small_archives import tarred
from tests.stages.serving.segments import write_segment
from tests.stages.serving.web_servers import saying, web

pytestmark = [pytest.mark.usefixtures("own_cache"), pytest.mark.late_alone, pytest.mark.timeout(300)]

HERE = ("--networks", "127.0.0.0/8")


def picture(name: str) -> bytes:
    file = io.BytesIO()
    number = zlib.crc32(name.encode())
    Image.new("RGB", (8, 8), (number & 255, number >> 8 & 255, number >> 16 & 255)).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with named_s3_server() as server:
        yield server


@pytest.fixture
def bucket(s3: S3Server) -> Iterator[str]:
    name = f"photos-{len(s3.client.list_buckets()['Buckets'])}"
    s3.put(name, {f"trip/{each}.png": picture(each) for each in ("a", "b", "c")})
    yield name
    s3.require_rights(False)


@pytest.fixture
def repo(as_user: Connection) -> Connection:
    for repo in ("images", "masks"):
        as_user.client.create_repo(repo, project_name=as_user.project)
    return as_user


def snapshot(repo: Connection, scratch: Path) -> LibrarySnapshot:
    newest = CommitHistory(repo).last("images", 1)
    scratch.mkdir(exist_ok=True)
    return LibrarySnapshot(repo, newest[0].id if newest else "", BlockDownloads(scratch))


def names(repo: Connection, command: Command) -> list[str]:
    return sorted(snapshot(repo, command.directory / "scratch").names())


def last(said: str) -> str:
    return [each for each in said.splitlines() if not each.startswith(("writing", "its jobs"))][-1]


def sync(command: Command, *arguments: str) -> str:
    return last(command.says("sync", *arguments, "--no-wait"))


def test_a_directory_of_a_bucket_is_mirrored(repo: Connection, command: Command, s3: S3Server, bucket: str) -> None:
    (command.directory / "other.png").write_bytes(picture("other"))
    command.says("add", "other.png", "--no-wait")
    url = f"s3://{bucket}/trip/"
    assert sync(command, url) == f"synced {url}: 3 added, 0 changed, 0 removed, 0 unchanged"
    assert sync(command, url) == f"{url}: nothing to change, 3 unchanged"
    s3.put(bucket, {"trip/a.png": picture("new"), "trip/d.png": picture("d"), "elsewhere.png": picture("e")})
    s3.client.delete_object(Bucket=bucket, Key="trip/b.png")
    shown = command.says("sync", url, "--dry-run").splitlines()
    assert shown[-3:] == [
        "would add trip/d.png",
        "would remove trip/b.png",
        f"{url}: would add 1 and remove 1, and ask whether 1 have changed; 1 unchanged",
    ]
    assert sync(command, url) == f"synced {url}: 1 added, 1 changed, 1 removed, 1 unchanged"
    assert names(repo, command) == ["other.png", "trip/a.png", "trip/c.png", "trip/d.png"]
    assert sync(command, url) == f"{url}: nothing to change, 3 unchanged"


def test_a_bucket_that_lost_its_pictures_removes_none(
    repo: Connection, command: Command, s3: S3Server, bucket: str
) -> None:
    url = f"s3://{bucket}/trip"
    sync(command, url)
    for each in "abc":
        s3.client.delete_object(Bucket=bucket, Key=f"trip/{each}.png")
    said = command.run("sync", url, "--no-wait")
    assert said.returncode == 1 and "has none of the 3 pictures that were there" in said.stderr
    assert len(names(repo, command)) == 3
    assert sync(command, url, "--allow-empty") == f"synced {url}: 0 added, 0 changed, 3 removed, 0 unchanged"
    assert names(repo, command) == []


def test_a_revoked_key_and_a_missing_bucket_remove_nothing(
    repo: Connection, command: Command, s3: S3Server, bucket: str
) -> None:
    url = f"s3://{bucket}/trip"
    sync(command, url)
    s3.require_rights(True)
    said = command.run("sync", url, "--no-wait")
    assert said.returncode == 1 and f"{url} cannot be listed" in said.stderr and "AWS_ACCESS_KEY_ID" in said.stderr
    s3.require_rights(False)
    assert "cannot be listed" in command.run("sync", "s3://no-such-bucket/trip", "--no-wait").stderr
    assert len(names(repo, command)) == 3


def test_pictures_that_came_from_elsewhere_stay(
    repo: Connection, command: Command, s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    (command.directory / "trip").mkdir()
    (command.directory / "trip" / "mine.png").write_bytes(picture("mine"))
    command.says("add", "trip", "--no-wait")
    url = f"s3://{bucket}/trip"
    sync(command, url)
    (command.directory / "trip" / "b.png").write_bytes(picture("my own b"))
    command.says("add", "trip", "--yes", "--no-wait")
    for each in "bc":
        s3.client.delete_object(Bucket=bucket, Key=f"trip/{each}.png")
    assert sync(command, url) == f"synced {url}: 0 added, 0 changed, 1 removed, 1 unchanged"
    assert names(repo, command) == ["trip/a.png", "trip/b.png", "trip/mine.png"]


def test_pages_of_listings_and_uploads_in_parts(repo: Connection, command: Command, s3: S3Server) -> None:
    s3.put("many", {f"p/{number:04}.png": picture(f"{number}") for number in range(2 * PAGE + 5)})
    large = picture("x") + bytes(6 << 20)
    tag = s3.put_in_parts("many", "p/large.png", [large[: 5 << 20], large[5 << 20 :]])
    assert tag.endswith('-2"')
    assert sync(command, "s3://many/p/", "--by-reference") == (
        "synced s3://many/p/: 46 added, 0 changed, 0 removed, 0 unchanged"
    )
    assert sync(command, "s3://many/p/") == "s3://many/p/: nothing to change, 46 unchanged"
    library = snapshot(repo, command.directory / "scratch")
    assert len(library.names()) == len(library.at_urls()) == 46
    (block,) = library.holders("p/large.png")
    record = library.records(block)["p/large.png"]
    assert (record.etag, record.sha256, record.size) == (tag, hashlib.sha256(large).hexdigest(), len(large))
    assert b"".join(library.original(block, "p/large.png")) == large


def test_a_list_is_mirrored_unless_a_line_of_it_is_bad(repo: Connection, command: Command) -> None:
    held = {f"/{each}.png": picture(each) for each in "abcd"}
    with web(lambda connection, path: saying(held[path], f'ETag: "{path}"')(connection, path)) as server:
        file = command.directory / "list.txt"

        def listed(letters: str, *more: str) -> None:
            file.write_text("\n".join([*(server.url(f"/{each}.png") for each in letters), *more]))

        listed("abc")
        closed = command.run("add", "list.txt", "--no-wait")
        assert closed.returncode == 1 and "with --networks also from networks that are not public" in closed.stderr
        assert sync(command, "list.txt", *HERE) == "synced list.txt: 3 added, 0 changed, 0 removed, 0 unchanged"
        listed("ab", "oops")
        said = command.run("sync", "list.txt", "--no-wait", *HERE)
        assert "nothing was removed, since list.txt, line 3 names no picture" in said.stdout
        assert said.returncode == 1 and len(names(repo, command)) == 3
        listed("abd")
        assert sync(command, "list.txt", *HERE) == "synced list.txt: 1 added, 0 changed, 1 removed, 2 unchanged"
        (command.directory / "other.txt").write_text(file.read_text())
        sync(command, "other.txt", *HERE)
        listed("ab")  # the other list still has d
        assert sync(command, "list.txt", *HERE) == "list.txt: nothing to change, 2 unchanged"
    assert [each.rpartition("/")[2] for each in names(repo, command)] == ["a.png", "b.png", "d.png"]


def test_options_that_do_not_go_together_are_refused(command: Command, tmp_path: Path) -> None:
    (command.directory / "folder").mkdir()
    assert "--watch is for folders" in command.run("sync", "s3://b/p", "--watch").stderr
    for arguments in (("sync", "folder", "--by-reference"), ("add", "folder", "--by-reference")):
        assert "--by-reference" in command.run(*arguments).stderr
    assert "not a network" in command.run("sync", "s3://b/p", "--networks", "here", "--dry-run").stderr


def test_nothing_stays_at_a_url_that_preprocess_may_not_ask(repo: Connection, command: Command) -> None:
    spec = copying_spec("preprocess", "images")
    deploy_specs(repo, spec)
    with web(saying(picture("a"))) as server:
        url = server.url("/a.png")
        said = command.run("add", url, "--by-reference", *HERE, "--no-wait").stderr
        assert "preprocess may not fetch from 127.0.0.0/8" in said and "nothing was added" in said
        assert "FETCH_FROM=127.0.0.0/8 lookalike deploy --overlay private-urls" in said
        assert names(repo, command) == []
        spec["transform"]["env"]["FETCH_FROM"] = "127.0.0.0/8"
        deploy_specs(repo, spec)
        command.says("add", url, "--by-reference", "--networks", "127.0.0.0/16", "--no-wait")  # a part of it
    assert names(repo, command) == ["127.0.0.1/a.png"]


def test_what_stays_at_its_url_can_be_removed_restored_joined_and_shown(
    repo: Connection, command: Command, s3: S3Server, bucket: str
) -> None:
    scratch = command.directory / "scratch"
    url = f"s3://{bucket}/trip/"
    command.says("add", url, "--by-reference", "--no-wait")
    (block,) = snapshot(repo, scratch).blocks
    assert block.endswith(".urls.jsonl")
    first = CommitHistory(repo).last("images", 1)[0].id

    assert command.says("show", "trip/a.png", "--output", "shown")
    shown = next((command.directory / "shown").iterdir())
    with Image.open(shown) as seen, Image.open(io.BytesIO(picture("a"))) as put:
        assert seen.convert("RGB").getpixel((3, 3)) == put.getpixel((3, 3))

    ingest.remove(repo, ["trip/a.png"])
    s3.client.delete_object(Bucket=bucket, Key="trip/a.png")  # nothing of it is needed
    assert names(repo, command) == ["trip/b.png", "trip/c.png"]
    command.says("restore", "trip/a.png", "--at", first, "--no-wait")
    assert names(repo, command) == ["trip/a.png", "trip/b.png", "trip/c.png"]
    assert "trip/a.png" in command.fails("show", "trip/a.png", "--output", "shown")

    s3.put(bucket, {"more/d.png": picture("d")})
    command.says("add", f"s3://{bucket}/more/", "--by-reference", "--no-wait")
    command.says("compact", "--yes", "--no-wait")
    library = snapshot(repo, scratch)
    assert len(library.blocks) == 1 and len(library.at_urls()) == 4
    for each in ("e", "f"):
        (command.directory / f"{each}.png").write_bytes(picture(each))
    command.says("add", "e.png", "f.png", "--no-wait")
    command.says("compact", "--yes", "--no-wait")
    assert len(snapshot(repo, scratch).blocks) == 2  # one of pictures, one of records
    before = len(CommitHistory(repo).last("images", 100))
    command.run("compact", "--yes", "--no-wait")
    assert len(CommitHistory(repo).last("images", 100)) == before
    command.says("remove", "--purge", "trip/a.png", "--yes", "--no-wait")
    library = snapshot(repo, scratch)
    assert sorted(library.at_urls()) == ["more/d.png", "trip/b.png", "trip/c.png"]
    assert not library.masks

    s3.put(bucket, {"trip/b.png": picture("another")})
    assert "has another file than the one that was added" in command.fails("show", "trip/b.png", "--output", "shown")
    absent: dict[str, str] = {}
    head = CommitHistory(repo).last("images", 1)[0].id
    to = command.directory / "originals"
    wanted = ["trip/b.png", "trip/c.png", "more/d.png"]
    found = originals.fetch(repo, head, wanted, to, scratch, absent=absent)
    assert found.keys() == {"trip/c.png", "more/d.png"} and absent.keys() == {"trip/b.png"}
    assert found["more/d.png"].read_bytes() == picture("d")


def test_an_archive_and_a_page_cannot_stay_where_they_are(repo: Connection, command: Command, s3: S3Server) -> None:
    s3.put("odd", {"p/a.png": b"PK\3\4" + bytes(600), "p/b.png": b"<html>", "p/c.png": picture("c")})
    said = command.run("add", "s3://odd/p/", "--by-reference", "--no-wait", "--json")
    assert said.returncode == 1 and "it is an archive" in said.stderr + said.stdout
    told = json.loads(said.stdout[said.stdout.index("{") :])
    assert told["put"] == 1 and len(told["failures"]) == 2


def test_shards_of_webdataset_give_pictures_and_labels(repo: Connection, command: Command, s3: S3Server) -> None:
    repo.client.create_repo("labels", project_name=repo.project)
    members = {f"{each}{end}": data for each in "ab" for end, data in ((".png", picture(each)), (".cls", b"7"))}
    shard = tarred(members)
    s3.put("shards", {"set/one.tar": shard})
    (command.directory / "two.tar").write_bytes(shard)
    with web(saying(shard)) as server:
        command.says("add", "two.tar", "s3://shards/set/one.tar", server.url("/three.tar"), "--no-wait", *HERE)
    assert names(repo, command) == [f"{tar}/{each}.png" for tar in ("one", "three", "two") for each in "ab"]
    (content,) = Repository(repo, "labels").contents().values()
    assert content.decode().split() == ["source,label", *(f"{each},7" for each in names(repo, command))]
    same = "s3://shards/set/one.tar: nothing to change, 2 unchanged"
    assert same in command.says("sync", "s3://shards/set/one.tar", "--no-wait")
    assert sync(command, "s3://shards/set/one.tar") == same  # the labels are there
    s3.put("shards", {"set/one.tar": tarred({name: data for name, data in members.items() if name[0] == "a"})})
    synced = "synced s3://shards/set/one.tar: 0 added, 0 changed, 1 removed, 1 unchanged"
    assert synced in command.says("sync", "s3://shards/set/one.tar", "--no-wait")
    with web(saying(b"", status="503 Service Unavailable")) as server:
        pass
    assert "cannot be reached" in command.run("add", server.url("/gone.tar"), "--no-wait", *HERE).stderr


def test_the_last_stored_of_equal_files_is_not_removed_by_a_list(
    repo: Connection, command: Command, bucket: str
) -> None:
    for name in ("a", "b"):
        (command.directory / f"{name}.png").write_bytes(picture(name))
    (command.directory / "second.png").write_bytes(picture("b"))
    command.says("add", "a.png", "b.png", "second.png", "--no-wait")
    command.says("add", f"s3://{bucket}/trip/", "--by-reference", "--no-wait")
    (command.directory / "list.txt").write_text("a.png\nb.png\ntrip/c.png\n")
    said = command.run("remove", "--from", "list.txt", "--yes", "--no-wait")
    assert said.returncode == 1 and "1 name on the list could not be removed" in said.stderr
    assert "a.png" in said.stdout and "stay at their URLs" in said.stdout.replace("\n", " ")
    assert names(repo, command) == ["a.png", "second.png", "trip/a.png", "trip/b.png"]
    head = CommitHistory(repo).last("images", 1)[0].id
    with pytest.raises(LookalikeError, match="stay at their URLs and can vanish"):
        ingest.remove_on(repo, ["second.png"], head, "", dict)
    command.says("remove", "second.png", "--no-wait")  # as somebody asks for it by name


def test_the_last_stored_of_files_with_equal_pixels_is_not_removed_by_a_list(
    repo: Connection, command: Command, bucket: str, tmp_path: Path
) -> None:
    """a: pixel-equal to one in the bucket. b: byte-equal. one, two: pixel-equal, both stored. trip/c: at its URL."""
    files = {"a": b"a as TIFF", "b": picture("b"), "one": b"one", "two": b"two"}
    for name, content in files.items():
        (command.directory / f"{name}.png").write_bytes(content)
    command.says("add", *(f"{name}.png" for name in files), "--no-wait")
    command.says("add", f"s3://{bucket}/trip/", "--by-reference", "--no-wait")
    pixels = {"a.png": files["a"], "trip/a.png": picture("a")}, {"one.png": files["one"], "two.png": files["two"]}
    sources = {
        f"{number:064x}": [
            Source(path, hashlib.sha256(content).hexdigest(), pixels=f"{number:064x}") for path, content in each.items()
        ]
        for number, each in enumerate(pixels)
    }
    write_segment(tmp_path / "0", [*sources], np.zeros((len(sources), 4)), sources)
    repo.client.create_repo("index", project_name=repo.project)
    index = Repository(repo, "index").write([PutFile("/0/images.parquet", tmp_path / "0" / "images.parquet")])
    repo.inspect(repo.commit("index", index), pfs_pb2.FINISHED)  # before, no index is read

    head = CommitHistory(repo).last("images", 1)[0].id
    for name in ("a.png", "b.png"):
        with pytest.raises(LookalikeError, match=rf"{name} is the last of exact copies .* can vanish"):
            ingest.remove_on(repo, [name], head, "", partial(read_contents, repo))
    (command.directory / "list.txt").write_text("a.png\nb.png\none.png\ntrip/c.png\n")
    told = json.loads(command.run("remove", "--from", "list.txt", "--yes", "--no-wait", "--json").stdout)
    assert (told["removed"], [*told["missing"]]) == (["one.png", "trip/c.png"], ["a.png", "b.png"])
    (command.directory / "list.txt").write_text("a.png\ntrip/a.png\n")  # all of them
    command.says("remove", "--from", "list.txt", "--yes", "--no-wait")
    assert names(repo, command) == ["b.png", "trip/b.png", "two.png"]
