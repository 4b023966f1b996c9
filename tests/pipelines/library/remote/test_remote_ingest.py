"""Pictures at URLs put into a library on a real server, out of real web servers and a bucket: what is fetched, what is
fetched again, and what is left when something breaks."""

import random
import socket
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from pipelines.client.commit_history import CommitHistory
from pipelines.client.server.connection import Connection
from pipelines.library import ingest
from pipelines.library.block_store import BlockDownloads
from pipelines.library.remote import host_queue
from pipelines.library.remote.fetch_journal import FetchJournal
from pipelines.library.remote.picture_fetcher import PictureFetcher
from pipelines.library.remote.picture_lists import ListProblem
from pipelines.library.remote.picture_urls import PictureUrl
from pipelines.library.remote.remote_ingest import RemoteIngest, RemoteResult
from pipelines.library.snapshots import LibrarySnapshot
from tests.buckets import Bucket, serving
from tests.conditions import until
from tests.pipelines import forked_writers
from tests.pipelines.forked_writers import HERE
from tests.stages.serving.web_servers import Web, saying, web

pytestmark = pytest.mark.late_alone


class Site:
    """Pictures by path, with their versions; `broken` says how often a path fails before it is sent, and how."""

    def __init__(self, pictures: Iterable[str] = (), validators: bool = True) -> None:
        self.held = {path: f"P5 1 1 255\n{path}".encode() for path in pictures}
        self.validators = validators
        self.broken: dict[str, list[str]] = {}
        self.sent = Counter[str]()

    def behave(self, connection: socket.socket, path: str) -> None:
        faults = self.broken.get(path, [])
        fault = faults.pop(0) if faults else ""
        data = self.held.get(path)
        if fault == "cut":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\nP5")
        elif fault == "throttled":
            saying(b"", "Retry-After: 0", status="429 Too Many Requests")(connection, path)
        elif fault == "redirected":
            saying(b"", f"Location: {path}", status="302 Found")(connection, path)
        elif fault == "closed" or data is None:
            connection.close() if fault else saying(b"", status="404 Not Found")(connection, path)
        else:
            self.sent[path] += 1
            saying(data, *([f'ETag: "{hash(data)}"'] if self.validators else []))(connection, path)


@pytest.fixture
def library(connection: Connection) -> Connection:
    for repo in ("images", "masks"):
        connection.client.create_repo(repo, project_name=connection.project)
    return connection


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_queue, "_FIRST_WAIT", 0.0)


def put(
    library: Connection, journal: Path, pictures: Iterable[PictureUrl | ListProblem], lot: int = 100
) -> tuple[RemoteResult, list[tuple[str, str]]]:
    failures: list[tuple[str, str]] = []
    opened = FetchJournal(journal)
    try:
        silent = lambda held: lambda _: None  # noqa: E731
        fetcher = PictureFetcher(HERE)
        run = RemoteIngest(library, opened, fetcher, silent, lambda *each: failures.append(each), lot=lot)
        return run.run(pictures), failures
    finally:
        opened.close()


def at(server: Web, paths: Iterable[str]) -> Iterator[PictureUrl]:
    return (PictureUrl(server.url(path), f"site{path}") for path in paths)


def names(library: Connection, tmp_path: Path) -> set[str]:
    directory = tmp_path / "blocks"
    directory.mkdir(exist_ok=True)
    newest = CommitHistory(library).commits("images")
    return LibrarySnapshot(library, newest[-1].id if newest else "", BlockDownloads(directory)).names()


def test_a_second_run_fetches_what_is_missing_or_has_changed(library: Connection, tmp_path: Path) -> None:
    paths = [f"/{number}.pgm" for number in range(5)]
    site = Site(paths)
    with web(site.behave) as server:
        result, failures = put(library, tmp_path / "journal", at(server, [*paths, "/gone.pgm"]))
        assert (result.put, result.unchanged, failures) == (5, 0, [(server.url("/gone.pgm"), f"{failures[0][1]}")])
        assert "HTTP 404" in failures[0][1]
        assert names(library, tmp_path) == {f"site{path}" for path in paths}
        site.held["/1.pgm"] = b"P5 1 1 255\nchanged"
        ingest.remove(library, ["site/2.pgm"])
        result, _ = put(library, tmp_path / "journal", at(server, paths))
    assert (result.put, result.replaced, result.unchanged) == (2, 1, 3)
    assert names(library, tmp_path) == {f"site{path}" for path in paths}


@pytest.mark.parametrize("validators", [True, False])
def test_what_has_not_changed_is_not_put_again(library: Connection, tmp_path: Path, validators: bool) -> None:
    site = Site(["/a.pgm"], validators)
    with web(site.behave) as server:
        for _ in range(2):
            result, _ = put(library, tmp_path / "journal", at(server, ["/a.pgm"]))
    assert (result.put, result.unchanged, result.commits) == (0, 1, {})


def test_a_library_that_has_a_picture_already_keeps_it(library: Connection, tmp_path: Path) -> None:
    with web(Site(["/a.pgm"]).behave) as server:
        put(library, tmp_path / "journal", at(server, ["/a.pgm"]))
        result, _ = put(library, tmp_path / "another", at(server, ["/a.pgm"]))
    assert (result.put, result.unchanged) == (0, 1)


def test_faults_that_pass_lose_nothing(library: Connection, tmp_path: Path) -> None:
    chance = random.Random(0)
    paths = [f"/{number}.pgm" for number in range(120)]
    site = Site(paths)
    for path in paths:
        site.broken[path] = chance.choices(["cut", "throttled", "redirected", "closed"], k=chance.randrange(3))
    with web(site.behave) as server:
        result, failures = put(library, tmp_path / "journal", at(server, paths), lot=50)
    assert (result.put, failures) == (120, [])
    assert len(result.commits) >= 2
    assert names(library, tmp_path) == {f"site{path}" for path in paths}


def test_a_bucket_is_listed_and_what_has_not_changed_is_not_asked_for(library: Connection, tmp_path: Path) -> None:
    with serving():
        for name, content in {"p/a.jpg": b"one", "p/sub/b.png": b"two", "p/c.txt": b"no", "q.jpg": b"three"}.items():
            Bucket.held[f"/photos/{name}"] = content
        fetcher = PictureFetcher(HERE)

        def listed(url: str) -> list[PictureUrl]:
            return list(fetcher.listed(url))

        assert [each.name for each in listed("s3://photos/p/")] == ["p/a.jpg", "p/sub/b.png"]
        assert [each.name for each in listed("s3://photos/p")] == ["p/a.jpg", "p/sub/b.png"]
        assert [each.name for each in listed("s3://photos/q.jpg")] == ["q.jpg"]
        assert len(listed("s3://photos")) == 3
        result, failures = put(library, tmp_path / "journal", listed("s3://photos"))
        assert (result.put, failures) == (3, [])
        Bucket.held["/photos/p/a.jpg"] = b"new"
        result, _ = put(library, tmp_path / "journal", listed("s3://photos"))
        assert (result.put, result.replaced, result.unchanged) == (1, 1, 2)
        missing = PictureUrl("s3://photos/no.jpg", "no.jpg")
        assert put(library, tmp_path / "journal", [missing])[1] == [("s3://photos/no.jpg", "there is no such object")]
    assert names(library, tmp_path) == {"photos/p/a.jpg", "photos/p/sub/b.png", "photos/q.jpg"}


def test_pictures_that_a_list_holds_are_put(library: Connection, tmp_path: Path) -> None:
    held = [PictureUrl(f"a#{n}", f"a/{n}.pgm", {}, b"P5 1 1 255\n%d" % n) for n in range(25)]
    result, failures = put(library, tmp_path / "journal", held, lot=10)
    assert (result.put, len(result.commits), failures) == (25, 3, [])
    held[3] = PictureUrl("a#3", "a/3.pgm", {}, b"P5 1 1 255\nx")
    result, _ = put(library, tmp_path / "journal", held)
    assert (result.put, result.replaced, result.unchanged) == (1, 1, 24)


def test_each_failure_has_its_reason(library: Connection, tmp_path: Path) -> None:
    with web(Site(["/a.pgm", "/b.pgm"]).behave) as server:
        urls: list[PictureUrl | ListProblem] = [
            ListProblem("list.csv, line 7", "it has no URL"),
            PictureUrl(server.url("/a.pgm"), "one.pgm"),
            PictureUrl(server.url("/b.pgm"), "one.pgm"),
            PictureUrl(server.url("/a.pgm"), "one.pgm"),
            PictureUrl("http://10.0.0.1/a.pgm", "private.pgm"),
        ]
        result, failures = put(library, tmp_path / "journal", urls)
    assert result.put == 1
    assert dict(failures) == {
        "list.csv, line 7": "it has no URL",
        server.url("/b.pgm"): f"{server.url('/a.pgm')} has the same name, one.pgm",
        "http://10.0.0.1/a.pgm": "10.0.0.1 is not on the public internet, so it is not asked for pictures",
    }
    assert result.failures.total() == 3


def test_a_broken_off_run_keeps_what_it_has_put(
    library: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [f"/{number}.pgm" for number in range(40)]
    site = Site(paths)

    class Stop(Exception):
        pass

    def stopping(server: Web) -> Iterator[PictureUrl]:
        for number, each in enumerate(at(server, paths)):
            if number == 30:
                raise Stop
            yield each

    with web(site.behave) as server:
        with monkeypatch.context() as patch, pytest.raises(Stop):
            patch.setattr(host_queue, "WINDOW", 8)
            put(library, tmp_path / "journal", stopping(server), lot=10)
        there = names(library, tmp_path)
        assert 10 <= len(there) < 40
        before = Counter(site.sent)
        result, failures = put(library, tmp_path / "journal", at(server, paths), lot=10)
    assert failures == []
    assert names(library, tmp_path) == {f"site{path}" for path in paths}
    assert result.unchanged >= len(there)
    assert before.total() >= len(there)


def test_a_killed_run_is_gone_on_with(library: Connection, tmp_path: Path) -> None:
    paths = [f"/{number}.pgm" for number in range(60)]
    site, enough = Site(paths), threading.Event()

    def behave(connection: socket.socket, path: str) -> None:
        if site.sent.total() >= 25 and not enough.is_set():
            site.sent["stopped"] += 1
            enough.wait(60)
        site.behave(connection, path)

    with web(behave) as server:
        with forked_writers.start("urls", library, tmp_path / "journal", server.url("")) as process:
            until(lambda: site.sent["stopped"] >= 1 and len(names(library, tmp_path)) >= 10)
            process.kill()
        enough.set()
        there = names(library, tmp_path)
        assert 10 <= len(there) < 60
        result, failures = put(library, tmp_path / "journal", at(server, paths), lot=10)
    assert (failures, result.put + result.unchanged) == ([], 60)
    assert result.unchanged >= 10 and names(library, tmp_path) == {f"site{path}" for path in paths}
