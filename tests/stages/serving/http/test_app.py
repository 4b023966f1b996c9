"""The contract of the service over HTTP: what each route answers, asked of the real application on a real server."""

import csv
import hashlib
import http.client
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
from PIL import Image

from stages.quality.distance_limits import DistanceLimits
from stages.quality.distance_scale import DistanceScale
from stages.quality.similarity import SimilarityCalibration
from stages.record.sources import Source
from stages.serving.follow.snapshots import Snapshot, SnapshotState
from tests.stages.serving import services
from tests.stages.serving.services import Service, drawn, file, made

if TYPE_CHECKING:
    from stages.backbone.embedder import Embedder

FIELDS = {
    *("neighbors", "pictures", "k", "metric", "scale", "combine", "filter", "where", "max_distance", "exact"),
    *("recall", "commits", "model", "devices", "seconds", "text", "without", "unread"),
}
NEIGHBOUR = {
    *("rank", "id", "distance", "likeness", "similarity", "same", "near", "group", "sources", "thumbnail", "original"),
}


def paths(answer: Mapping[str, Any]) -> list[str]:
    """The first source of each neighbour."""
    return [each["sources"][0]["path"] for each in answer["neighbors"]]


def test_an_uploaded_picture_finds_itself_with_everything_about_it(service: Service, ready: Snapshot) -> None:
    answer = service.ask("/search?k=3", made(7), {"Content-Type": "image/png"})
    assert answer.status == 200
    data = answer.data
    assert set(data) == FIELDS
    assert [set(each) for each in data["neighbors"]] == [NEIGHBOUR] * 3
    first, second, third = data["neighbors"]
    assert (first["rank"], first["distance"], first["same"], first["near"], first["group"]) == (1, 0, True, True, 1)
    digest, size = hashlib.sha256(made(7)).hexdigest(), len(made(7))
    source = Source("trip/north/07.png", digest, 160, 120, size)
    unseen = {"brightness": 0.0, "contrast": 0.0, "sharpness": 0.0}
    assert first["sources"] == [{**source._asdict(), "number": 0, "attributes": unseen}]
    assert first["thumbnail"] == f"/images/{first['id']}" and first["original"] == f"/originals/{first['id']}"
    assert (second["rank"], second["same"], third["rank"]) == (2, False, 3)
    assert 0 < second["distance"] <= third["distance"]
    assert first["similarity"] is None
    assert data["pictures"] == [{"id": first["id"], "name": "", "width": 160, "height": 120, "known": True}]
    assert (data["k"], data["metric"], data["combine"], data["filter"]) == (3, "euclidean", "any", "")
    assert (data["max_distance"], data["exact"], data["recall"]) == (None, True, None)
    assert data["commits"] == {"project": "default", "index": "1" * 32, "library": "2" * 32, "model": "3" * 32}
    assert data["model"] == {
        "name": "small",
        "described": "small at 32 px",
        "sha256": ready.spec.sha256,
        "dimension": 16,
        "image_size": 32,
        "fit": "pad",
    }
    assert data["devices"] == {"index": ["cpu"], "service": "cpu"}
    assert set(data["seconds"]) == {"decode", "features", "search"}


def test_an_answer_as_a_table_has_the_same_neighbours(service: Service) -> None:
    asked, kind = json.dumps({"k": 3, "id": service.id_of("trip/north/07.png")}).encode(), "application/json"
    data = service.ask("/search", asked, {"Content-Type": kind}).data
    table = service.ask("/search", asked, {"Content-Type": kind, "Accept": "text/csv"})
    assert (table.status, table.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    rows = list(csv.DictReader(io.StringIO(table.body.decode(), newline="")))
    files = [(each["rank"], each["distance"], source) for each in data["neighbors"] for source in each["sources"]]
    assert [(int(each["rank"]), float(each["distance"]), each["path"]) for each in rows] == [
        (rank, distance, source["path"]) for rank, distance, source in files
    ]
    parquet = service.ask("/search", asked, {"Content-Type": kind, "Accept": "application/vnd.apache.parquet"})
    assert pq.read_table(io.BytesIO(parquet.body))["path"].to_pylist() == [each["path"] for each in rows]
    several = json.dumps({"requests": [{"id": "x"}]}).encode()
    assert service.ask("/search", several, {"Content-Type": kind, "Accept": "text/csv"}).code == "bad-request"
    assert service.ask("/search", b"{}", {"Content-Type": kind, "Accept": "text/csv"}).code == "bad-request"


def test_all_ways_to_ask_for_a_picture_give_the_same_neighbours(service: Service) -> None:
    by_body = service.ask("/search?k=5", made(3), {"Content-Type": "application/octet-stream"}).data
    by_form = service.search({"k": 5}, [made(3)]).data
    by_number = service.search({"k": 5, "pictures": [{"upload": 0}]}, [made(3)]).data
    by_id = service.search({"k": 5, "id": by_body["pictures"][0]["id"]}).data
    assert by_body["neighbors"] == by_form["neighbors"] == by_number["neighbors"] == by_id["neighbors"]
    assert by_id["pictures"][0]["name"] == "trip/north/03.png"
    assert by_form["pictures"][0]["name"] == "0.png"


def test_a_body_in_chunks_of_unknown_length_is_a_body(service: Service) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    pieces = [made(3)[at : at + 1000] for at in range(0, len(made(3)), 1000)]
    connection.request("POST", "/search?k=1", iter(pieces), {"Content-Type": "image/png"})
    response = connection.getresponse()
    assert response.status == 200
    assert paths(json.loads(response.read())) == ["trip/north/03.png"]
    connection.close()


def test_a_new_picture_is_not_known(service: Service) -> None:
    data = service.search({"k": 2}, [made(1000)]).data
    assert data["pictures"][0]["known"] is False
    assert not any(each["same"] for each in data["neighbors"])


def test_a_copy_is_another_source_and_a_near_duplicate_is_in_the_same_group(service: Service) -> None:
    data = service.search({"k": 42}, [made(0)]).data
    first, second = data["neighbors"][:2]
    assert [each["path"] for each in first["sources"]] == ["copies/00 again.png", "trip/south/00.png"]
    assert second["sources"][0]["path"] == "copies/00 smaller.jpg"
    assert (second["same"], second["near"], second["group"]) == (False, True, 1)
    groups = [each["group"] for each in data["neighbors"]]
    assert sorted(set(groups)) == list(range(1, max(groups) + 1))
    assert groups.count(1) == 2
    cosine = {each["id"]: each for each in service.search({"k": 42, "metric": "cosine"}, [made(0)]).data["neighbors"]}
    assert [cosine[each["id"]]["near"] for each in data["neighbors"]] == [each["near"] for each in data["neighbors"]]


def test_the_first_source_is_inside_the_filter(service: Service) -> None:
    for filter, number in (("", 0), ("copies/", 0), ("trip/", 1), ("**/south/*", 1)):
        found = service.search({"k": 1, "filter": filter}, [made(0)]).data["neighbors"][0]
        names = ["copies/00 again.png", "trip/south/00.png"]
        assert [each["path"] for each in found["sources"]] == (names[::-1] if number else names)
        assert [each["number"] for each in found["sources"]] == ([1, 0] if number else [0, 1])
        assert found["original"] == f"/originals/{found['id']}" + "?source=1" * number


def test_k_metric_filter_and_distance(service: Service) -> None:
    assert len({each["group"] for each in service.search({}, [made(5)]).data["neighbors"]}) == 12
    assert len(service.search({"k": 1000}, [made(5)]).data["neighbors"]) == 41
    cosine = service.search({"k": 41, "metric": "cosine"}, [made(5)]).data
    assert cosine["metric"] == "cosine" and cosine["neighbors"][0]["distance"] == 0
    assert max(each["distance"] for each in cosine["neighbors"]) <= 2
    north = service.search({"k": 41, "filter": "trip/north/"}, [made(4)]).data
    assert len(north["neighbors"]) == 20 and all(each.startswith("trip/north/") for each in paths(north))
    pattern = service.search({"k": 41, "filter": "*1?.png"}, [made(4)]).data
    assert sorted(path[-6:] for path in paths(pattern)) == [f"1{digit}.png" for digit in range(10)]
    everything = service.search({"k": 41}, [made(4)]).data
    limit = everything["neighbors"][9]["distance"]
    near = service.search({"k": 41, "max_distance": limit}, [made(4)]).data
    assert near["neighbors"] == [each for each in everything["neighbors"] if each["distance"] <= limit]
    assert near["max_distance"] == limit
    assert service.search({"k": 41, "exact": True}, [made(4)]).data["neighbors"] == everything["neighbors"]
    by_url = service.ask("/search?k=2&filter=trip/&metric=cosine&exact=true&box=0,0,0.5,0.5&max_distance=9", made(4))
    assert by_url.code == "wrong-type"
    typed = {"Content-Type": "image/png"}
    by_url = service.ask("/search?k=2&filter=trip/&metric=cosine&exact=true&box=0,0,0.5,0.5", made(4), typed)
    asked = {"k": 2, "filter": "trip/", "metric": "cosine", "exact": True, "box": [0, 0, 0.5, 0.5]}
    assert by_url.data["neighbors"] == service.search(asked, [made(4)]).data["neighbors"]


def test_no_picture_may_be_an_answer(service: Service) -> None:
    for asked in ({"filter": "nowhere/"}, {"filter": "nowhere/", "metric": "cosine", "exact": True}):
        for files in ([made(1)], [made(1), made(2)]):
            answer = service.search(asked, files)
            assert (answer.status, answer.data["neighbors"]) == (200, [])


def test_a_box_is_searched_as_the_picture_that_it_cuts_out(service: Service) -> None:
    wide = Image.new("RGB", (320, 120))
    wide.paste(drawn(8), (0, 0))
    wide.paste(drawn(9), (160, 0))
    for box, seed in (([0, 0, 0.5, 1], 8), ([0.5, 0, 1, 1], 9)):
        cut = service.search({"box": box, "k": 3}, [file(wide)]).data
        assert cut["neighbors"] == service.search({"k": 3}, [made(seed)]).data["neighbors"]
        assert (cut["pictures"][0]["width"], cut["pictures"][0]["height"]) == (320, 120)
    whole = service.search({"k": 3}, [made(8)]).data["neighbors"]
    assert service.search({"k": 3, "box": [0, 0, 1, 1]}, [made(8)]).data["neighbors"] == whole


def test_several_pictures_together(service: Service) -> None:
    either = service.search({"k": 4, "combine": "any"}, [made(10), made(11)]).data
    assert set(paths(either)[:2]) == {"trip/south/10.png", "trip/north/11.png"}
    assert [each["distance"] for each in either["neighbors"][:2]] == [0, 0]
    both = service.search({"k": 41, "combine": "all"}, [made(10), made(11)]).data
    one, other = (
        {each["id"]: each["distance"] for each in service.search({"k": 41}, [made(seed)]).data["neighbors"]}
        for seed in (10, 11)
    )
    assert {each["id"]: each["distance"] for each in both["neighbors"]} == {id: max(one[id], other[id]) for id in one}
    mixed = {"k": 41, "pictures": [{"upload": 0}, {"id": service.id_of("trip/north/11.png")}], "combine": "all"}
    assert service.search(mixed, [made(10)]).data["neighbors"] == both["neighbors"]
    assert [each["same"] for each in either["neighbors"]] == [True, True, False, False]


def test_boxes_of_one_upload_are_read_by_several_threads(service: Service) -> None:
    """The file is larger than what stays in memory, so all of them read it from one place on disk."""
    noise = np.random.default_rng(1).integers(0, 256, (700, 900, 3), np.uint8)
    large = file(Image.fromarray(noise), compress_level=0)
    assert len(large) > 1 << 20
    boxes = [[at / 40, 0, at / 40 + 0.5, 0.5] for at in range(16)]
    pictures = [{"upload": 0, "box": box} for box in boxes]
    for _ in range(2):
        answer = service.search({"k": 1, "pictures": pictures}, [large])
        assert answer.status == 200, answer.data
        assert len(answer.data["pictures"]) == 16


def test_several_requests_in_one_call_one_of_them_bad(service: Service) -> None:
    good = {"k": 3, "pictures": [{"upload": 0}]}
    bad = {"id": "0" * 64}
    broken = {"pictures": [{"upload": 1}]}
    answer = service.search({"requests": [good, bad, broken, good]}, [made(2), b"not a picture"])
    assert answer.status == 200
    first, second, third, fourth = answer.data["answers"]
    assert first["neighbors"] == fourth["neighbors"] == service.search({"k": 3}, [made(2)]).data["neighbors"]
    assert second["error"]["code"] == "not-in-library" and "0000" in second["error"]["message"]
    assert third["error"]["code"] == "not-a-picture"


def test_the_scale_of_the_model_gives_words_and_leaves_one_metric(
    ready: Snapshot, embedder: "Embedder", tmp_path: Path
) -> None:
    with services.running(ready) as service:
        everything = service.search({"k": 41}, [made(6)]).data["neighbors"]
        assert {each["likeness"] for each in everything} <= {"same picture", "near copy", None}
        assert service.ask("/status").data["metrics"] == ["euclidean", "cosine"]
    far = sorted(each["distance"] for each in everything)
    third, twice = len(far) // 3, 2 * len(far) // 3
    limits = DistanceLimits(0.0, (far[third] + far[third + 1]) / 2, (far[twice] + far[twice + 1]) / 2)
    scale = DistanceScale(embedder.spec.sha256, True, limits, DistanceLimits(0.0, 0.0, 0.0))
    scaled = services.snapshot(ready.library, embedder, tmp_path, scale=scale)
    with services.running(scaled) as service:
        assert service.ask("/status").data["metrics"] == ["euclidean"]
        found = service.search({"k": 41}, [made(6)]).data["neighbors"]
        words = [each["likeness"] for each in found]
        assert words[0] == "same picture"
        assert words[1:] == sorted(words[1:], key=("near copy", "very similar", "similar", "weak").index)
        assert {"very similar", "similar", "weak"} <= set(words)
        for each in found[1:]:
            assert each["likeness"] == limits.likeness(each["distance"])
        by_cosine = service.search({"k": 41, "metric": "cosine"}, [made(6)]).data["neighbors"]
        assert {each["likeness"] for each in by_cosine[1:]} == {"weak"}


def test_similarity_is_there_with_a_calibration_of_the_metric(
    ready: Snapshot, embedder: "Embedder", tmp_path: Path
) -> None:
    calibration = SimilarityCalibration(embedder.spec.sha256, "euclidean", ((0.0, 0.865), (0.1, 0.5), (2.0, 0.0)))
    calibrated = services.snapshot(ready.library, embedder, tmp_path, similarity=calibration)
    with services.running(calibrated) as service:
        assert service.ask("/status").data["calibrated"] is True
        found = service.search({"k": 41}, [made(6)]).data["neighbors"]
        assert found[0]["similarity"] == 100  # the same picture, whatever the calibration says of distance 0
        assert [each["similarity"] for each in found[1:]] == list(
            calibration.per_cent([each["distance"] for each in found[1:]])
        )
        other = service.search({"k": 3, "metric": "cosine"}, [made(6)]).data["neighbors"]
        assert [each["similarity"] for each in other] == [None] * 3


def test_states_before_there_is_a_library(service: Service) -> None:
    with services.running(SnapshotState("loading", "bringing the index")) as other:
        for kind, status in (("loading", 503), ("failed", 503), ("empty", 409)):
            other.state = SnapshotState(kind, f"words for {kind}")  # type: ignore[arg-type]
            answer = other.search({"k": 3}, [made(1)])
            assert (answer.status, answer.data["error"]) == (status, {"code": kind, "message": f"words for {kind}"})
            assert ("retry-after" in answer.headers) == (status == 503)
            for path in ("/library", f"/images/{'0' * 64}", f"/originals/{'0' * 64}", f"/trace/{'0' * 64}"):
                assert other.ask(path).code == kind
            ready = other.ask("/ready")
            assert (ready.status, ready.data["state"]) == (200 if kind == "empty" else 503, kind)
            assert other.ask("/health").status == 200
            known = other.ask("/status").data
            assert (known["state"], known["message"], known["commits"]) == (kind, f"words for {kind}", None)
        other.state = service.state
        assert other.search({"k": 3}, [made(1)]).status == other.ask("/ready").status == 200


def test_status(service: Service) -> None:
    data = service.ask("/status").data
    assert (data["state"], data["pictures"], data["metric"], data["version"]) == ("ready", 41, "euclidean", "2")
    assert data["k"] == {"default": 12, "most": 1000}
    assert (data["trace"], data["follows"], data["calibrated"]) == (False, True, False)
    assert data["limits"] == {"bytes": 64 << 20, "pictures": 16}
    assert data["model"]["name"] == "small" and data["commits"]["index"] == "1" * 32


def test_metrics(service: Service) -> None:
    before = service.metric('lookalike_serve_requests_total{route="/search",status="200"}')
    times = service.metric('lookalike_serve_request_seconds_count{route="/search"}')
    assert service.search({"k": 1}, [made(1)]).status == 200
    assert service.metric('lookalike_serve_requests_total{route="/search",status="200"}') == before + 1
    assert service.metric('lookalike_serve_request_seconds_count{route="/search"}') == times + 1
    service.ask("/nothing/here")
    assert service.metric('lookalike_serve_requests_total{route="none",status="404"}') >= 1
    assert service.metric("lookalike_serve_pictures") == 41
    assert service.metric("lookalike_serve_ready") == 1
    assert service.metric('lookalike_serve_step_seconds_count{step="features"}') >= 1
    assert service.metric('lookalike_serve_waiting{work="search"}') == 0
    labels = f'index="{"1" * 32}",library="{"2" * 32}",model="{"3" * 32}"'
    assert service.metric(f"lookalike_serve_commit_info{{{labels}}}") == 1


def test_everything_else_is_not_found_with_a_reason(service: Service) -> None:
    for path in ("/nothing", "/search/x", "/health/", "/assets/nothing.js", "/assets/../app.py", "/assets/..%2fapp.py"):
        answer = service.ask(path)
        assert (answer.status, answer.code) == (404, "not-found"), path
    assert service.ask("/search").code == "wrong-method"
    assert service.ask("/health", b"x").status == 405
    assert json.loads(service.ask("/library", method="DELETE").body)["error"]["code"] == "wrong-method"


class Broken:
    """An embedder with a fault."""

    def __call__(self, pictures: Any) -> Any:
        raise RuntimeError("something odd")


def test_a_fault_of_our_own_is_told_as_one_and_the_service_goes_on(ready: Snapshot) -> None:
    broken: Any = Broken()
    failed = 'lookalike_serve_requests_total{route="/search",status="500"}'
    with services.running(replace(ready, embedder=broken)) as service:
        before = service.metric(failed)
        for _ in range(3):
            answer = service.search({"k": 1}, [made(1)])
            assert (answer.status, answer.code) == (500, "fault")
            assert "please report it (RuntimeError: something odd)" in answer.data["error"]["message"]
        assert service.search({"id": ready.library.id(0), "k": 1}).status == 200
        service.state = SnapshotState("ready", snapshot=ready)
        assert service.search({"k": 1}, [made(1)]).status == 200
        assert service.metric(failed) == before + 3
