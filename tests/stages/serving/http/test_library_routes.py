"""What the library holds, over HTTP: thumbnails, original files, folders page by page, and traces."""

import base64
import hashlib
import io
import socket
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image

from stages.datum.contract import StageError
from stages.datum.file_cache import FileCache
from stages.files.thumbnail_files import ThumbnailPlace
from stages.record.sources import Source
from stages.serving.follow.original_files import OriginalFiles
from stages.serving.follow.pachyderm_client import Absent, PachydermAddress, PachydermClient, PachydermError
from stages.serving.follow.snapshots import Snapshot, SnapshotState
from stages.serving.search.mapped_library import MappedLibrary
from tests.servers import Localpachd
from tests.stages.orientations import exif, stored
from tests.stages.serving import services
from tests.stages.serving.segments import ids, open_library, write_segment
from tests.stages.serving.services import Service, made

if TYPE_CHECKING:
    from stages.backbone.embedder import Embedder

NOT_THERE = "0" * 64

ODD = 'odd/naïve \udcff "quoted" <b> & ;.png'
"""A path with bytes that are not UTF-8, as Linux allows."""


def test_thumbnails(service: Service) -> None:
    id = service.id_of("trip/north/07.png")
    answer = service.ask(f"/images/{id}")
    assert (answer.status, answer.headers["content-type"]) == (200, "image/jpeg")
    assert Image.open(io.BytesIO(answer.body)).size == (32, 32)
    assert "immutable" in answer.headers["cache-control"]
    for wrong in (NOT_THERE, id[:-1], id + "%00", id + "%0a", "..%2f..%2fetc", "%ff", id.upper(), "x" * 5000):
        for route in ("images", "originals", "previews", "trace"):
            assert service.ask(f"/{route}/{wrong}").status == 404


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (Absent("commit not found"), "gone"),
        (StageError("part0.thumbnails is not the file of thumbnails"), "gone"),
        (PachydermError("Pachyderm does not answer"), "no-pachyderm"),
    ],
)
def test_a_thumbnail_that_cannot_be_read_is_said_and_the_others_are_shown(
    ready: Snapshot, failure: Exception, code: str
) -> None:
    def read(segment: str, place: ThumbnailPlace) -> bytes:
        if (segment, place) == lost:
            raise failure
        return b"jpeg"

    segments = ready.library.segments
    lost = segments[1].name, segments[1].thumbnails[0]
    shown = MappedLibrary(segments, read)
    with services.running(replace(ready, library=shown)) as service:
        answer = service.ask(f"/images/{segments[1].id(0)}")
        assert (answer.status, answer.code) == ({"gone": 404, "no-pachyderm": 503}[code], code)
        assert str(failure) in answer.data["error"]["message"]
        assert service.ask(f"/images/{segments[1].id(1)}").body == b"jpeg"
        assert service.ask(f"/images/{segments[0].id(0)}").body == b"jpeg"


def test_folders_page_by_page(service: Service) -> None:
    top = service.ask("/library").data
    assert top["folders"] == [{"name": "copies", "pictures": 2}, {"name": "trip", "pictures": 40}]
    assert (top["folder"], top["pictures"], top["after"], top["total"]) == ("", [], None, 42)
    assert top["commits"]["index"] == "1" * 32
    seen: list[str] = []
    after = ""
    while True:
        page = service.ask(f"/library?folder=trip/north&limit=7{after}").data
        assert len(page["pictures"]) <= 7 and page["total"] == 20
        seen += [each["path"] for each in page["pictures"]]
        if page["after"] is None:
            break
        after = f"&after={quote(page['after'])}"
    assert seen == [f"trip/north/{seed:02}.png" for seed in range(1, 40, 2)]
    assert all(each["thumbnail"] == f"/images/{each['id']}" for each in page["pictures"])
    assert service.ask("/library?folder=nowhere").data["total"] == 0


def test_a_listed_picture_has_the_facts_of_its_files(ready: Snapshot, tmp_path: Path) -> None:
    names = ids("0", 2)
    sources = {
        names[0]: [Source("a.jpg", "1" * 64, camera="Canon EOS 5D"), Source("b.jpg", "2" * 64)],
        names[1]: [
            Source("c.jpg", "3" * 64, camera="华为 P30", lens="27 mm", latitude=1.5, longitude=-2.0, format="JPEG")
        ],
    }
    vectors = np.ones((2, ready.library.origin.dimension))
    library = open_library([write_segment(tmp_path / "00", names, vectors, sources)])
    with services.running(replace(ready, library=library)) as service:
        listed = service.ask("/library").data["pictures"]
    assert [(each["path"], each["camera"]) for each in listed] == [
        ("a.jpg", "Canon EOS 5D"),
        ("b.jpg", ""),
        ("c.jpg", "华为 P30"),
    ]
    places = [
        [(of["latitude"], of["longitude"], of["lens"], of["format"]) for of in each["sources"]] for each in listed
    ]
    assert places == [[(None, None, "", "")] * 2] * 2 + [[(1.5, -2.0, "27 mm", "JPEG")]]


@pytest.mark.parametrize(
    "wrong", ["limit=0", "limit=501", "limit=x", "limit=1e9", f"limit={'9' * 5000}", "after=nonsense"]
)
def test_a_page_that_cannot_be_listed_is_refused_with_the_reason(service: Service, wrong: str) -> None:
    answer = service.ask(f"/library?{wrong}")
    assert (answer.status, answer.code) == (400, "bad-request")
    assert wrong.partition("=")[0] in answer.data["error"]["message"]


def test_paths_that_are_not_utf8_arrive_as_they_are(embedder: "Embedder", tmp_path: Path) -> None:
    library = services.library(tmp_path / "index", embedder, {ODD: made(1), "other/a.png": made(2)})
    with services.running(services.snapshot(library, embedder, tmp_path / "cache")) as service:
        assert service.search({"k": 1}, [made(1)]).data["neighbors"][0]["sources"][0]["path"] == ODD
        listed = service.ask("/library?folder=odd").data["pictures"]
        assert [each["path"] for each in listed] == [ODD]
        assert service.search({"k": 1, "id": listed[0]["id"]}).data["pictures"][0]["name"] == ODD


def test_originals_without_pachyderm_are_refused_with_the_reason(service: Service) -> None:
    answer = service.ask(f"/originals/{service.id_of('trip/north/07.png')}")
    assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "no-pachyderm", "5")
    assert "does not answer" in answer.data["error"]["message"]


@pytest.fixture(scope="module")
def with_originals(
    localpachd: Localpachd, embedder: "Embedder", tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service whose library's files lie in a real localpachd, but for one."""
    files = {"a/one.png": made(1), "a/two.jpg": services.file(services.drawn(2), "JPEG"), "b/one again.png": made(1)}
    upright = np.asarray(services.drawn(4))
    files["b/turned.tiff"] = services.file(stored(upright, 6), "TIFF", exif=exif(6), compression="tiff_lzw")
    client, project, place = localpachd.client(), "originals-of-a-library", tmp_path_factory.mktemp("originals")
    client.create_project(project)
    client.create_repo("images", project_name=project)
    with client.commit("images", "master", project_name=project) as commit:
        for path, content in files.items():
            client.put_file_bytes(commit, path, content)
    library = services.library(place / "index", embedder, {**files, "a/lost.png": made(3)})
    server = PachydermAddress(localpachd.address, project)
    snapshot = services.snapshot(library, embedder, place / "cache", server=server, images=commit.id)
    with services.running(snapshot) as service:
        yield service


def test_originals_are_the_bytes_that_were_put(with_originals: Service) -> None:
    service = with_originals
    two = service.ask(f"/originals/{service.id_of('a/two.jpg')}")
    assert (two.status, two.headers["content-type"]) == (200, "image/jpeg")
    assert two.body == services.file(services.drawn(2), "JPEG")
    assert two.headers["content-length"] == str(len(two.body))
    assert two.headers["content-disposition"] == "inline; filename*=UTF-8''two.jpg"
    assert "sandbox" in two.headers["content-security-policy"]
    id = service.id_of("a/one.png")
    assert service.ask(f"/originals/{id}?source=0").body == service.ask(f"/originals/{id}?source=1").body == made(1)
    kept = service.ask(f"/originals/{id}?source=1&download=true")
    assert kept.headers["content-disposition"] == "attachment; filename*=UTF-8''one%20again.png"
    for wrong in ("source=2", "source=-1", "source=x", f"source={'9' * 5000}", "download=perhaps"):
        assert service.ask(f"/originals/{id}?{wrong}").code == "bad-request"
    lost = service.ask(f"/originals/{service.id_of('a/lost.png')}")
    assert (lost.status, lost.code) == (404, "gone")
    assert "a/lost.png cannot be found" in lost.data["error"]["message"]


def ranged(service: Service, path: str, range: str, **headers: str) -> tuple[int, str, bytes]:
    """The status, the Content-Range and the bytes of a request for a range."""
    answer = service.ask(
        path, headers={"Range": range, **{name.replace("_", "-"): each for name, each in headers.items()}}
    )
    return answer.status, answer.headers.get("content-range", ""), answer.body


def test_parts_of_originals_thumbnails_and_previews(with_originals: Service) -> None:
    service = with_originals
    id = service.id_of("a/two.jpg")
    for route in ("originals", "images", "previews"):
        path = f"/{route}/{id}"
        for _ in range(2):  # an original is read whole once, then where it is asked for
            whole = service.ask(path)
            size, tag = len(whole.body), whole.headers["etag"]
            assert whole.headers["accept-ranges"] == "bytes"
            assert ranged(service, path, "bytes=0-9") == (206, f"bytes 0-9/{size}", whole.body[:10])
            assert ranged(service, path, "Bytes=10-") == (206, f"bytes 10-{size - 1}/{size}", whole.body[10:])
            assert ranged(service, path, "bytes=-7") == (206, f"bytes {size - 7}-{size - 1}/{size}", whole.body[-7:])
            beyond = (206, f"bytes 5-{size - 1}/{size}", whole.body[5:])
            assert ranged(service, path, f"bytes=5-{size + 100}") == beyond
            assert ranged(service, path, "bytes=0-9", If_Range=tag)[0] == 206
            for whole_again in ("bytes=0-1,4-5", "bytes=9-3", "bytes=-", "pages=1-2", "bytes=x-2", "0-9"):
                assert ranged(service, path, whole_again) == (200, "", whole.body)
            assert ranged(service, path, "bytes=0-9", If_Range='"another"') == (200, "", whole.body)
            for nowhere in (f"bytes={size}-", f"bytes={size + 5}-{size + 9}", "bytes=-0"):
                status, said, _ = ranged(service, path, nowhere)
                assert (status, said) == (416, f"bytes */{size}")
            head = service.ask(path, method="HEAD")
            assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(size))
            assert head.headers["content-type"] == whole.headers["content-type"]
            for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
                same = service.ask(path, headers={"If-None-Match": known})
                assert (same.status, same.body, same.headers["etag"]) == (304, b"", tag)
            assert service.ask(path, headers={"If-None-Match": '"another"'}).body == whole.body
    assert service.ask(f"/originals/{service.id_of('a/lost.png')}", method="HEAD").status == 404


def test_several_originals_are_one_zip(with_originals: Service, tmp_path: Path) -> None:
    service = with_originals
    one, two, lost = (service.id_of(f"a/{name}") for name in ("one.png", "two.jpg", "lost.png"))
    fields = f"id={two}&id={one}:1&id={lost}&id={one}".encode()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = service.ask("/zip", fields, form)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/zip")
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        assert archive.namelist() == ["a/two.jpg", "b/one again.png", "a/one.png", "MISSING.txt"]
        assert archive.testzip() is None
        assert archive.read("b/one again.png") == archive.read("a/one.png") == made(1)
        assert "a/lost.png: a/lost.png cannot be found" in archive.read("MISSING.txt").decode()
    for _ in range(2):
        assert service.ask("/zip", fields, form).body == answer.body
    listed = service.ask("/zip?filter=*.jpg")
    with zipfile.ZipFile(io.BytesIO(listed.body)) as archive:
        assert archive.namelist() == ["a/two.jpg"]
    with zipfile.ZipFile(io.BytesIO(service.ask("/zip?filter=b/").body)) as archive:
        assert archive.namelist() == ["b/one again.png", "b/turned.tiff"]
    for wrong in ("", "filter=&id=x", "folder=a", f"id={one}:2", f"id={one}:x", f"id={one}:-1"):
        assert service.ask(f"/zip?{wrong}").code == "bad-request"
    assert service.ask(f"/zip?id={NOT_THERE}").code == "not-in-library"
    assert service.ask("/zip?filter={a").code == "bad-filter"


def test_a_zip_that_would_be_too_large_is_refused_first(ready: Snapshot, tmp_path: Path) -> None:
    names = ids("0", 3)
    sources = {id: [Source(f"{id[:4]}.jpg", "1" * 64, bytes=1_500_000_000)] for id in names}
    vectors = np.ones((3, ready.library.origin.dimension))
    library = open_library([write_segment(tmp_path / "00", names, vectors, sources)])
    with services.running(replace(ready, library=library)) as service:
        answer = service.ask("/zip?filter=")
        assert (answer.status, answer.code) == (413, "too-large")
        assert answer.data["error"]["message"].startswith("these files have 4.5 GB: one archive holds at most 2,000")


def test_previews_of_originals_are_upright_files_that_browsers_show(with_originals: Service) -> None:
    service = with_originals
    id = service.id_of("b/turned.tiff")
    shown = service.ask(f"/previews/{id}")
    assert (shown.status, shown.headers["content-type"]) == (200, "image/jpeg")
    picture = Image.open(io.BytesIO(shown.body))
    assert (picture.format, picture.size) == ("JPEG", (160, 120))
    assert np.abs(np.asarray(picture) - np.asarray(services.drawn(4), float)).mean() < 4
    assert service.ask(f"/previews/{id}?source=1").code == "bad-request"
    assert service.ask(f"/previews/{NOT_THERE}").code == "not-in-library"
    assert service.ask(f"/previews/{service.id_of('a/lost.png')}").code == "gone"


def test_a_region_of_a_library_picture_is_that_of_its_original(with_originals: Service) -> None:
    service, box = with_originals, [0.1, 0.0, 0.6, 0.5]
    id = service.id_of("b/turned.tiff")
    found = service.search({"id": id, "box": box}).data
    same = service.search({"box": box, "pictures": []}, [services.file(services.drawn(4))]).data
    assert [each["distance"] for each in found["neighbors"]] == [each["distance"] for each in same["neighbors"]]
    assert found["neighbors"][0]["distance"] > 0
    assert (found["pictures"][0]["name"], found["pictures"][0]["known"]) == ("b/turned.tiff", False)
    assert service.search({"id": service.id_of("a/lost.png"), "box": box}).code == "gone"


def test_a_pachyderm_that_does_not_answer_keeps_nothing_but_originals_waiting(ready: Snapshot, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = PachydermClient(PachydermAddress(f"grpc://127.0.0.1:{silent.getsockname()[1]}"))
        originals = OriginalFiles(server, "2" * 32, FileCache(tmp_path))
        with services.running(replace(ready, originals=originals)) as service:
            id = ready.library.id(0)
            with ThreadPoolExecutor(60) as threads:
                asked = [threads.submit(service.ask, f"/originals/{id}") for _ in range(60)]
                connection, _ = silent.accept()
                assert service.ask("/library?folder=trip").status == service.ask("/docs").status == 200
                assert service.search({"k": 1}, [made(1)]).status == service.ask(f"/images/{id}").status == 200
                assert not any(each.done() for each in asked)
                connection.close()
                server.close()
                assert {each.result().code for each in asked} == {"no-pachyderm"}


class Tracer:
    """Makes a page that names what it was asked, and fails for one path."""

    def page(self, id: str, path: str, at: str) -> str:
        if path.startswith("copies"):
            raise RuntimeError("the commit was squashed")
        return f"<!doctype html><style>p {{ color: red }}</style><p>{id} {path} {at}</p>"


def test_traces(ready: Snapshot) -> None:
    with services.running(ready, tracer=Tracer()) as service:
        assert service.ask("/status").data["trace"] is True
        id = service.id_of("trip/north/07.png")
        answer = service.ask(f"/trace/{id}")
        assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert f"<p>{id} trip/north/07.png {'1' * 32}</p>" in answer.body.decode()
        digest = base64.b64encode(hashlib.sha256(b"p { color: red }").digest()).decode()
        policy = answer.headers["content-security-policy"]
        assert (
            f"style-src 'sha256-{digest}'" in policy and "script-src" not in policy and "default-src 'none'" in policy
        )
        assert service.ask(f"/trace/{id}?path=trip/north/07.png").body == answer.body
        assert service.ask(f"/trace/{id}?path=elsewhere").code == "not-in-library"
        assert service.ask(f"/trace/{NOT_THERE}").code == "not-in-library"
        failed = service.ask(f"/trace/{service.id_of('copies/00 smaller.jpg')}")
        assert (failed.status, failed.code) == (502, "not-traced")
        assert failed.data["error"]["message"] == "this picture cannot be traced: the commit was squashed"


def test_a_service_without_a_tracer_names_the_command(service: Service) -> None:
    id = service.id_of("trip/north/07.png")
    answer = service.ask(f"/trace/{id}")
    assert (answer.status, answer.code) == (404, "no-trace")
    assert f"lookalike trace --picture {id} --at {'1' * 32}" in answer.data["error"]["message"]


def test_everything_comes_from_the_snapshot_of_the_moment(ready: Snapshot, service: Service) -> None:
    id = service.id_of("trip/north/07.png")
    with services.running(ready) as other:
        assert other.ask(f"/images/{id}").status == 200
        other.state = SnapshotState("failed", "the model is gone", replace(ready, device="GPU"))
        assert other.ask("/status").data["devices"]["service"] == "GPU"
        assert other.ask(f"/images/{id}").status == 200
        other.state = SnapshotState("empty", "no pictures yet")
        assert (other.ask(f"/images/{id}").status, other.ask(f"/images/{id}").code) == (409, "empty")
