"""Pictures of records, which preprocess fetches in its datum: out of real web servers and a bucket."""

import hashlib
import io
import socket
import threading
from pathlib import Path

import pytest
from PIL import Image

from stages import preprocess
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files import remote_files
from stages.files.packs import read_pack, read_rejections
from stages.record.url_records import UrlRecord, format_records
from tests.buckets import Bucket, serving
from tests.small_archives import zipped
from tests.stages.file_trees import tree
from tests.stages.serving.web_servers import Behave, saying, web

FILE = "%block-0123456789abcdef.urls.jsonl"


def picture(number: int) -> bytes:
    file = io.BytesIO()
    Image.effect_noise((64, 64), 50 + number).convert("RGB").save(file, "PNG")
    return file.getvalue()


PICTURES = {f"/{number}.png": picture(number) for number in range(20)}


def record(url: str, content: bytes, path: str = "") -> UrlRecord:
    name = path or url.rpartition("/")[2]
    return UrlRecord(name, url, "", hashlib.sha256(content).hexdigest(), len(content))


def run(
    to: Path, records: list[UrlRecord], allowed: str = "127.0.0.0/8", name: str = "images", file: str = FILE
) -> dict[str, bytes]:
    given = to / "given"
    given.mkdir(parents=True)
    (to / "out").mkdir()
    (given / file).write_bytes(format_records(records))
    stage = preprocess.start({"IMAGE_SIZE": "64", "FETCH_FROM": allowed})
    stage(Datum({name: DatumInput(name, given / file, file, "")}, to / "out"))
    return tree(to / "out")


def sources(to: Path) -> dict[str, str]:
    packs = (read_pack(file) for file in (to / "out").rglob("*.pack"))
    return {each.path: each.sha256 for pack in packs for row in pack.pictures for each in row.sources}


def rejections(to: Path) -> dict[str, str]:
    return {
        each.source: each.reason
        for file in (to / "out" / "rejected").rglob("*.jsonl")
        for each in read_rejections(file)
    }


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_files, "_FIRST_WAIT", 0.0)


def serve(connection: socket.socket, path: str) -> None:
    known = PICTURES.get(path)
    (saying(known) if known else saying(b"", status="404 Not Found"))(connection, path)


def test_pictures_of_records_are_those_of_files_of_their_own_names(tmp_path: Path) -> None:
    with web(serve) as server:
        records = [record(server.url(path), content, f"shop{path}") for path, content in PICTURES.items()]
        one, other = run(tmp_path / "one", records), run(tmp_path / "other", records)
    assert one == other
    assert sources(tmp_path / "one") == {
        f"shop{path}": hashlib.sha256(content).hexdigest() for path, content in PICTURES.items()
    }


def test_other_bytes_are_rejected_and_never_shown_under_the_old_name(tmp_path: Path) -> None:
    with web(serve) as server:
        good = record(server.url("/1.png"), PICTURES["/1.png"])
        replaced = record(server.url("/2.png"), PICTURES["/3.png"])
        longer = record(server.url("/4.png"), b"x")
        run(tmp_path, [good, replaced, longer])
    assert [*sources(tmp_path)] == ["1.png"]
    found = rejections(tmp_path)
    assert found.keys() == {"2.png", "4.png"}
    assert all("has another file than the one that was added" in each for each in found.values())


def test_what_is_not_a_picture_is_rejected(tmp_path: Path) -> None:
    content = {"/a.zip": zipped({"a.png": PICTURES["/1.png"]}), "/page.png": b"<html>no</html>"}
    with web(lambda connection, path: saying(content[path])(connection, path)) as server:
        run(tmp_path, [record(server.url(path), data) for path, data in content.items()])
    assert rejections(tmp_path).keys() == {"a.zip", "page.png"}


def closing(connection: socket.socket, path: str) -> None:
    connection.close()


def short(connection: socket.socket, path: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nP5")


LOOP = saying(b"", "Location: /again", status="302 Found")
INSIDE = saying(b"", "Location: http://169.254.169.254/latest/meta-data", status="302 Found")


@pytest.mark.parametrize(
    ("behave", "tries", "says"),
    [
        (saying(b"", "Retry-After: 0", status="429 Too Many Requests"), 3, "HTTP 429"),
        (saying(b"", status="503 Service Unavailable"), 3, "HTTP 503"),
        (saying(b"", status="403 Forbidden"), 1, "HTTP 403"),
        (saying(b"", status="404 Not Found"), 1, "HTTP 404"),
        (closing, 3, "does not answer as a web server does"),
        (short, 3, "is cut off"),
        (LOOP, 6, "redirects more than 5 times"),
        (INSIDE, 1, "169.254.169.254 is not on the public internet, so it is not asked for pictures; FETCH_FROM"),
    ],
)
def test_what_may_be_there_later_fails_the_datum_and_names_the_url(
    behave: Behave, tries: int, says: str, tmp_path: Path
) -> None:
    with web(behave) as server:
        with pytest.raises(StageError, match="a.png cannot be fetched") as failure:
            run(tmp_path, [record(server.url("/a.png"), PICTURES["/1.png"])])
        assert says in str(failure.value) and server.url("/a.png") in str(failure.value)
        assert len(server.asked) == tries
    assert not any((tmp_path / "out").rglob("*.pack"))


def test_a_server_that_is_busy_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    busy, lock = [*PICTURES], threading.Lock()

    def behave(connection: socket.socket, path: str) -> None:
        with lock:
            first = path in busy
            busy.remove(path) if first else None
        (saying(b"", "Retry-After: 0", status="429 Too Many Requests") if first else serve)(connection, path)

    with web(behave) as server:
        run(tmp_path, [record(server.url(path), content) for path, content in PICTURES.items()])
    assert len(sources(tmp_path)) == len(PICTURES)


def test_private_addresses_are_refused_unless_allowed(tmp_path: Path) -> None:
    with web(serve) as server:
        with pytest.raises(StageError, match="not on the public internet"):
            run(tmp_path / "public", [record(server.url("/1.png"), PICTURES["/1.png"])], allowed="")
        assert server.asked == []
    with pytest.raises(StageError, match="not a network"):
        run(tmp_path / "bad", [record("http://127.0.0.1/a", b"")], allowed="here")


def test_objects_of_a_bucket_are_fetched(tmp_path: Path) -> None:
    with serving():
        Bucket.held["/photos/a%b c.png"] = PICTURES["/1.png"]
        run(tmp_path / "there", [record("s3://photos/a%25b%20c.png", PICTURES["/1.png"], "a.png")])
        with pytest.raises(StageError, match="there is no such object"):
            run(tmp_path / "gone", [record("s3://photos/gone.png", b"x")])
    assert [*sources(tmp_path / "there")] == ["a.png"]


@pytest.mark.parametrize("name", ["queries", "images"])
def test_only_the_library_has_records(name: str, tmp_path: Path) -> None:
    with web(serve) as server:
        run(tmp_path, [record(server.url("/1.png"), PICTURES["/1.png"])], name=name, file="x.urls.jsonl")
        assert bool(server.asked) == (name == "images")


def test_a_damaged_list_is_rejected(tmp_path: Path) -> None:
    given = tmp_path / FILE
    given.write_bytes(b"{}\n")
    (tmp_path / "out").mkdir()
    preprocess.start({})(Datum({"images": DatumInput("images", given, FILE, "")}, tmp_path / "out"))
    assert "line 1 is not a record" in rejections(tmp_path)[FILE]
