"""A library of pictures that stay at their URLs: its index is that of one that holds them, and what happens when their
server is busy, loses one or has another."""

import hashlib
import socket
import threading
from pathlib import Path

import pytest

from pipelines.client.repository import PutFile
from pipelines.library import ingest
from stages.datum.file_cache import FileCache
from stages.files.blocks import RecordBlock
from stages.record.sources import Source
from stages.record.url_records import UrlRecord
from stages.serving.follow.original_files import OriginalFiles, SourceGoneError
from stages.serving.follow.pachyderm_client import PachydermAddress, PachydermClient
from tests.conditions import until
from tests.e2e.world import MakeWorld, Paint, World, specs, with_environment
from tests.s3_server import named_s3_server
from tests.stages.serving.web_servers import Web, saying, web

pytestmark = pytest.mark.timeout(600)


class Shop:
    """A web server with pictures. status: what it answers instead for some paths."""

    def __init__(self, pictures: dict[str, bytes]) -> None:
        self.held = pictures
        self.status: dict[str, str] = {}
        self._lock = threading.Lock()

    def behave(self, connection: socket.socket, path: str) -> None:
        with self._lock:
            status, content = self.status.get(path[1:]), self.held.get(path[1:], b"")
        (saying(b"", status=status) if status else saying(content))(connection, path)


def record(server: Web, name: str, content: bytes) -> UrlRecord:
    return UrlRecord(f"shop/{name}", server.url(f"/{name}"), "", hashlib.sha256(content).hexdigest(), len(content))


def deploy(world: World, **environment: str) -> None:
    world.deploy(with_environment(each, **environment) if each.name == "preprocess" else each for each in specs())


def put(world: World, *records: UrlRecord) -> str:
    block = RecordBlock(tuple(sorted(records)))
    return world.repo("images").write([PutFile(f"/{block.name}", block.pieces())])


def test_what_may_be_there_later_fails_its_datum_and_another_picture_is_rejected(
    make_world: MakeWorld, paint: Paint
) -> None:
    pictures = {f"{number}.png": paint(number) for number in range(3)}
    shop, world = Shop(dict(pictures)), make_world("busy")
    preprocess = next(each for each in specs() if each.name == "preprocess")
    world.client.create_repo("images")
    with web(shop.behave) as server:
        records = [record(server, *each) for each in pictures.items()]
        world.deploy([with_environment(preprocess, FETCH_FROM="127.0.0.0/8")])
        shop.status["1.png"] = "503 Service Unavailable"
        busy = world.end(put(world, *records))["preprocess"]
        assert (busy.state, busy.failed) == ("failure", 1)
        logs = "".join(each.message for each in world.client.get_pipeline_logs("preprocess"))
        assert "shop/1.png cannot be fetched from" in logs and server.url("/1.png") in logs
        assert sum("GET /1.png" in each for each in server.asked) >= 6  # three times in each try of the datum
        shop.status.clear()
        done = world.settle(world.add({"own.png": paint(9)}))["preprocess"]
        assert done.counts == (2, 0, 0)  # the next commit tries the failed one again

        # Computed again, what has gone fails its datum, and what is another picture is left out.
        before = world.newest("preprocess")
        shop.held["2.png"], shop.status["0.png"] = paint(77), "404 Not Found"
        world.deploy([with_environment(preprocess, FETCH_FROM="127.0.0.0/8", PART="399")])
        until(lambda: world.newest("preprocess") != before)
        gone = world.end(world.newest("preprocess"))["preprocess"]
        assert (gone.state, gone.failed) == ("failure", 1)
        shop.status.clear()
        world.settle(world.add({"more.png": paint(10)}))
        rejected = b"".join(data for path, data in world.content("preprocess").items() if "/rejected/" in path)
        assert b"shop/2.png" in rejected and rejected.count(b"has another file") == 1


@pytest.mark.only_in_all
def test_a_library_by_reference(
    make_world: MakeWorld, backbones: dict[str, Path], paint: Paint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FETCH_FROM", "127.0.0.0/8")
    pictures = {f"{number}.png": paint(number) for number in range(6)}
    shop, world = Shop(dict(pictures)), make_world("references")
    with web(shop.behave) as server:
        records = [record(server, *each) for each in pictures.items()]
        deploy(world, FETCH_FROM="127.0.0.0/8")
        world.settle(world.push(backbones["first"]))
        first = put(world, *records[:4])
        assert world.settle(first)["preprocess"].counts == (1, 0, 0)

        world.settle(put(world, *records[4:]))
        world.settle(world.add({"own.png": paint(9)}))
        whole = make_world("stored")
        whole.deploy()
        whole.settle(whole.push(backbones["first"]))
        named = {f"shop/{name}": content for name, content in pictures.items()}
        whole.settle(whole.add({**named, "own.png": paint(9)}))
        assert world.hashes("index") == whole.hashes("index")

        # A removed one is masked: nothing is fetched.
        asked = len(server.asked)
        world.settle(ingest.remove(world.connection, ["shop/0.png"]).commit)
        whole.settle(whole.remove("shop/0.png"))
        assert world.hashes("index") == whole.hashes("index") and len(server.asked) == asked

        # The originals are read from their URLs, and only the very ones are given.
        head = next(world.client.list_commit("images")).commit.id
        originals = OriginalFiles(
            PachydermClient(PachydermAddress(world.pachd.address, "default")), head, FileCache(tmp_path / "cache")
        )
        source = Source("shop/1.png", records[1].sha256)
        assert b"".join(originals.open(source).chunks) == pictures["1.png"]
        shop.held["1.png"] = paint(77)
        with pytest.raises(SourceGoneError, match="has another file than the one that was added"):
            originals.open(source)
        shop.status["1.png"] = "404 Not Found"
        with pytest.raises(SourceGoneError, match="HTTP 404"):
            originals.open(source)
        # A trace finds the file of records, and an export says that it holds no more than these.
        traced = world.lookalike("trace", "--picture", "shop/2.png", "--json")
        assert first[:12] in traced and ".urls.jsonl" in traced
        assert "5 pictures stay at their URLs" in world.lookalike("export", "library.tar")


def test_the_key_of_a_bucket_is_a_secret_of_pachyderms(make_world: MakeWorld, paint: Paint) -> None:
    world = make_world("bucket")
    with named_s3_server() as s3:
        s3.put("photos", {"a.png": paint(1)})
        world.client.create_secret("lookalike-buckets", {"access-key": "key", "secret-key": "secret"})
        world.lookalike("deploy", "--overlay", "by-reference")
        digest = hashlib.sha256(paint(1)).hexdigest()
        done = world.end(put(world, UrlRecord("a.png", "s3://photos/a.png", "", digest, len(paint(1)))))["preprocess"]
        assert (done.state, done.counts) == ("success", (1, 0, 0))
        assert any(path.startswith("/library/") for path in world.content("preprocess"))
