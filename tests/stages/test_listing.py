"""The stages listing and fetch on moto's S3 server: files by hash, blocks, and what is not there."""

import hashlib
import json
import tarfile
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pipelines.library.remote.picture_fetcher import PictureFetcher
from stages import fetch, listing
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files.url_fetcher import FetchLimits
from stages.record import block_names
from stages.record.pfs_names import MEMBERS_FILE, is_block, unescape
from tests.http_servers import serving
from tests.s3_server import KEYS, S3Server, s3_server

DATE = "Mon, 01 Jan 2024 00:00:00 GMT"
PICTURES = {f"photos/{number}.jpg": b"picture %d" % number for number in range(12)}


@pytest.fixture(scope="module")
def moto() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def bucket(moto: S3Server, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": moto.url}.items():
        monkeypatch.setenv(name, value)
    found = moto.bucket(hashlib.sha256(request.node.name.encode()).hexdigest()[:20])
    for name, content in {**PICTURES, "photos/notes.txt": b"text"}.items():
        found.put(name, content)
    return found


def name_of(bucket: Any) -> str:
    return str(bucket.config["bucket"])


def at(bucket: Any, path: str = "") -> str:
    return f"s3://{name_of(bucket)}{path}"


def listed(out: Path, *urls: str, **variables: str) -> dict[str, bytes]:
    """The files of listing by name."""
    out.mkdir()
    tick = DatumInput("tick", out / "tick", "2026-11-28T00:00:00Z", "")
    listing.start({"SOURCES": " ".join(urls), "BUCKETS": "4", **variables})(Datum({"tick": tick}, out))
    return {each.name: each.read_bytes() for each in out.iterdir()}


def fetched(file: Path, out: Path, **variables: str) -> dict[str, bytes]:
    """The files of fetch by their paths."""
    out.mkdir()
    fetch.start(variables)(Datum({"listing": DatumInput("listing", file, file.name, "")}, out))
    return {str(each.relative_to(out)): each.read_bytes() for each in out.rglob("*") if each.is_file()}


def members(block: Path) -> dict[str, bytes]:
    with tarfile.open(block) as tar:
        return {each.name: tar.extractfile(each).read() for each in tar if each.name != MEMBERS_FILE}  # type: ignore[union-attr]


def test_a_changed_object_changes_one_file(bucket: Any, tmp_path: Path) -> None:
    url = at(bucket, "/photos")
    first = listed(tmp_path / "first", url)
    records = [json.loads(line) for content in first.values() for line in content.splitlines()]
    assert {each["path"] for each in records} == {f"photos/{number}.jpg" for number in range(12)}
    assert all(each["etag"] and each["size"] == len(PICTURES[each["path"]]) for each in records)
    assert listed(tmp_path / "again", f"{url}/", url) == first
    bucket.put("photos/3.jpg", b"another")
    second = listed(tmp_path / "second", url)
    changed = [name for name in first if first[name] != second[name]]
    assert len(first) > 1 and len(changed) == 1 and b"photos/3.jpg" in second[changed[0]]


def test_a_bucket_becomes_a_block_of_a_name_that_stays(bucket: Any, tmp_path: Path) -> None:
    url = at(bucket)
    listed(tmp_path / "listing", url, BUCKETS="1")
    file = tmp_path / "listing" / "0000.urls.jsonl"
    (name,) = first = fetched(file, tmp_path / "first")
    assert is_block(name) and not block_names.is_earlier(name)
    assert members(tmp_path / "first" / name) == {f"{name_of(bucket)}/{each}": data for each, data in PICTURES.items()}
    read = block_names.read_list(partial(lambda content, most: content[:most], first[name]))
    assert read is not None and len(read) == 12
    assert fetched(file, tmp_path / "again") == first
    bucket.put("photos/3.jpg", b"another")
    with pytest.raises(StageError, match=r"photos/3\.jpg has changed since it was listed"):
        fetched(file, tmp_path / "stale")
    bucket.delete(["photos/4.jpg"])
    listed(tmp_path / "listing2", url, BUCKETS="1")
    bucket.delete(["photos/5.jpg"])
    second = fetched(tmp_path / "listing2" / "0000.urls.jsonl", tmp_path / "second")
    rejected = second.pop(next(each for each in second if each.startswith("rejected/images/")))
    assert json.loads(rejected)["source"] == f"{name_of(bucket)}/photos/5.jpg"
    assert "there is no such object" in json.loads(rejected)["reason"]
    assert [*second] == [name] and len(members(tmp_path / "second" / name)) == 10


def test_keys_of_any_characters_are_listed_and_fetched_alike(bucket: Any, tmp_path: Path) -> None:
    """By the pipelines and by the command, by the directory and by the URL of each."""
    ends = ("50%", "50%25", "what?", "a#b", "two words", "a+b", "ä", "%3F?#", "a&b=c")
    content = {f"odd % ?#+ü/{each}.jpg": each.encode() for each in ends}
    for key, data in content.items():
        bucket.put(key, data)
    url = at(bucket, f"/{quote('odd % ?#+ü')}")
    files = listed(tmp_path / "listing", url, BUCKETS="1")
    (block,) = fetched(tmp_path / "listing" / "0000.urls.jsonl", tmp_path / "block")
    assert {unescape(each): data for each, data in members(tmp_path / "block" / block).items()} == content

    fetcher = PictureFetcher(FetchLimits())
    found = list(fetcher.listed(url))
    assert {each.name: fetcher.get(each.url, None)[0] for each in found} == content  # type: ignore[index]
    urls = {each.url for each in found}
    assert urls == {json.loads(line)["url"] for line in files["0000.urls.jsonl"].splitlines()}
    assert all(each.isascii() and not set(each) & set(" ?#") for each in urls)
    for each in found:
        (one,) = fetcher.listed(each.url)
        assert one.version and (one.url, one.name) == (each.url, each.name.rpartition("/")[2])
        assert fetcher.get(one.url, one.version) is None  # it has not changed


def test_a_place_without_pictures_empties_no_library(bucket: Any, tmp_path: Path) -> None:
    with pytest.raises(StageError, match="there is no picture at s3://.*/photoss, so the library stays as it is"):
        listed(tmp_path / "listing", at(bucket, "/photos"), at(bucket, "/photoss"))


def test_a_server_that_is_down_fails_the_datum(bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed(tmp_path / "listing", at(bucket, "/photos"), BUCKETS="1")
    monkeypatch.setattr("stages.files.remote_files._FIRST_WAIT", 0.0)
    monkeypatch.setattr("stages.files.bucket._RETRY", {"max_retries": 0})
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(StageError, match=r"photos/\d+\.jpg was not fetched from s3://"):
        fetched(tmp_path / "listing" / "0000.urls.jsonl", tmp_path / "out")
    with pytest.raises(StageError, match="cannot be listed"):
        listed(tmp_path / "down", at(bucket, "/photos"))


def test_pictures_that_are_all_gone_fail_the_datum(bucket: Any, tmp_path: Path) -> None:
    listed(tmp_path / "listing", at(bucket, "/photos"), BUCKETS="1")
    bucket.delete([*PICTURES])
    with pytest.raises(StageError, match="none of these 12 pictures was fetched"):
        fetched(tmp_path / "listing" / "0000.urls.jsonl", tmp_path / "out")


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({}, "SOURCES names no bucket"),
        ({"SOURCES": "s3://b", "BUCKETS": "0"}, "BUCKETS"),
        ({"SOURCES": "https://example.org/pictures"}, "neither a bucket nor a list"),
    ],
)
def test_a_wrong_set_up_says_what_to_do(environment: dict[str, str], text: str, tmp_path: Path) -> None:
    with pytest.raises(StageError, match=text):
        listing.start(environment)(Datum({"tick": DatumInput("tick", tmp_path, "", "")}, tmp_path))


class Web(BaseHTTPRequestHandler):
    """A list of four pictures: one with an ETag, one with a date alone, one whose server knows no HEAD, one gone."""

    head = staticmethod(lambda path: {"/etag.jpg": ("ETag", '"1"'), "/date.jpg": ("Last-Modified", DATE)}.get(path))

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.reply(405 if self.path == "/plain.jpg" else 404 if self.path == "/gone.jpg" else 200)

    def do_GET(self) -> None:
        self.reply(404 if self.path == "/gone.jpg" else 200)

    def reply(self, status: int) -> None:
        names = ("etag", "date", "plain", "gone")
        lines = "".join(f"http://{self.headers['Host']}/{each}.jpg\n" for each in names)
        body = f"# pictures\n\n{lines}".encode() if self.path == "/list.txt" else b"bytes"
        self.send_response(status)
        for name, value in filter(None, (self.head(self.path), ("Content-Length", str(len(body))))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body if self.command == "GET" else b"")


def test_a_list_names_pictures_of_the_web(tmp_path: Path) -> None:
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Web)) as url:
        with pytest.raises(StageError, match="127.0.0.1 is not on the public internet"):
            listed(tmp_path / "private", f"{url}/list.txt")
        (lines,) = listed(tmp_path / "listing", f"{url}/list.txt", BUCKETS="1", FETCH_FROM="127.0.0.0/8").values()
        stated = {each["path"]: (each["etag"], each["size"]) for each in map(json.loads, lines.splitlines())}
        assert stated == {
            "127.0.0.1/etag.jpg": ('"1"', 5),
            "127.0.0.1/date.jpg": (DATE, 5),
            "127.0.0.1/plain.jpg": ("", -1),
            "127.0.0.1/gone.jpg": ("", -1),
        }
        found = fetched(tmp_path / "listing" / "0000.urls.jsonl", tmp_path / "out", FETCH_FROM="127.0.0.0/8")
    block = next(each for each in found if is_block(each))
    assert set(members(tmp_path / "out" / block)) == {f"127.0.0.1/{each}.jpg" for each in ("etag", "date", "plain")}
    (rejected,) = (json.loads(content) for name, content in found.items() if name != block)
    assert rejected["source"] == "127.0.0.1/gone.jpg" and "HTTP 404" in rejected["reason"]
