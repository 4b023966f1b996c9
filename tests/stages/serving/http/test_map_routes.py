"""The map over HTTP: clusters and their marks, tiles, parts of it shown and saved, and a library without a map."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from unittest import mock
from urllib.parse import urlencode

import pytest

from stages.serving.follow.map_listings import REPO
from stages.serving.http import map_routes
from tests.servers import Localpachd, StartPachd
from tests.stages.serving import maps, services
from tests.stages.serving.services import Service

if TYPE_CHECKING:
    from stages.serving.follow.snapshots import Snapshot

EAST = "0.1,-1,1,-1,1,1,0.1,1"
"""The outline of the pictures of trip/north."""


def place(path: str) -> maps.Place:
    """North in the east, south in the west, and copies in the middle and in no cluster."""
    if path.startswith("copies"):
        return 0.0, 0.0, -1
    seed = int(path[-6:-4])
    side = 1 if "north" in path else -1
    return side * (0.5 + seed / 1000), seed / 500, side == -1


@pytest.fixture(scope="module")
def pachd(start_shared_pachd: StartPachd, tmp_path_factory: pytest.TempPathFactory) -> Localpachd:
    return start_shared_pachd(tmp_path_factory.mktemp("pachd"))


@pytest.fixture(scope="module")
def mapped(pachd: Localpachd, ready: Snapshot) -> Iterator[Service]:
    with services.running(maps.of(pachd, ready)) as service:
        answer = service.ask("/map")
        few = f"a map needs at least 50 pictures, and the library has {len(ready.library)}: add more"
        assert (answer.status, answer.code) == (409, "no-map") and few in answer.body.decode()
        with mock.patch.object(map_routes, "LEAST", len(ready.library)):
            assert "lookalike map fit" in service.ask("/map").body.decode()
        maps.connect(pachd).client.create_repo(REPO)
        assert service.ask("/map").code == "no-map"
        maps.write(pachd, ready, place)
        yield service


def get(service: Service, path: str, **query: Any) -> Any:
    answer = service.ask(f"{path}?{urlencode(query)}")
    assert answer.status == 200, answer.body
    return answer.data


def test_clusters_have_the_values_that_mark_them(mapped: Service) -> None:
    found = get(mapped, "/map")
    assert found["pictures"] == found["library"] and found["stale"] == ""
    north, south = found["clusters"]
    assert (north["cluster"], north["pictures"], south["cluster"], south["pictures"]) == (0, 20, 1, 19)
    assert north["marks"][0]["column"] == "folder" and north["marks"][0]["value"] == "trip/north"
    assert north["marks"][0]["share"] == 1.0 and north["marks"][0]["lift"] == 2.05
    assert (
        north["x"] > 0.5
        and south["x"] < -0.4
        and {north["id"], south["id"]} <= {each["id"] for each in get(mapped, "/map/pictures")["pictures"]}
    )
    assert get(mapped, "/status")["map"] is True


def test_a_tile_has_the_points_that_filters_admit(mapped: Service) -> None:
    commit = get(mapped, "/map")["commits"]["map"]
    whole = get(mapped, "/map/tiles/0/0/0", commit=commit)
    assert whole["pictures"] == len(whole["points"]) == get(mapped, "/map")["pictures"]
    east = [get(mapped, f"/map/tiles/1/1/{y}") for y in (0, 1)]
    assert {each[3] for tile in east for each in tile["points"]} == {
        each[3] for each in whole["points"] if each[0] >= 0
    }
    found = get(mapped, "/map/tiles/0/0/0", filter="trip/south/")
    assert found["pictures"] == 20 and {each[2] for each in found["points"]} == {1, -1}  # a copy lies in the middle
    assert get(mapped, "/map/tiles/0/0/0", where="width > 1e9")["points"] == []


def test_a_part_of_the_map_is_shown_selected_and_saved(mapped: Service) -> None:
    found = get(mapped, "/map/pictures", outline=EAST)
    assert found["total"] == len(found["ids"]) == 20
    assert all(each["path"].startswith("trip/north/") for each in found["pictures"])
    assert found["ids"] == sorted(found["ids"]) == sorted(get(mapped, "/map/pictures", cluster=0)["ids"])
    assert get(mapped, "/map/pictures", outline=EAST, filter="trip/south/")["total"] == 0
    answer = mapped.ask(f"/map/table?{urlencode({'cluster': 1})}")
    rows = list(csv.DictReader(io.StringIO(answer.body.decode())))
    assert answer.headers["content-disposition"] == 'attachment; filename="map.csv"'
    assert len(rows) == 19 and rows[0].keys() == {"id", "path", "x", "y", "cluster"}
    assert all(float(each["x"]) == pytest.approx(place(each["path"])[0], abs=1e-5) for each in rows)


@pytest.mark.parametrize(
    "path",
    [
        "/map/tiles/1/2/0",
        "/map/tiles/15/0/0",
        "/map/tiles/0/-1/0",
        "/map/tiles/a/0/0",
        "/map/pictures?outline=1,2",
        "/map/pictures?outline=1,2,3,4,5",
        "/map/pictures?outline=0,0,1,1,nan,0",
        "/map/pictures?outline=" + "0," * 700 + "0",
        "/map/pictures?cluster=x",
        "/map/tiles/0/0/0?where=(((",
    ],
)
def test_bad_requests_have_a_reason(mapped: Service, path: str) -> None:
    answer = mapped.ask(path)
    assert answer.status in (400, 422) and answer.data["error"]["message"]


def test_an_older_map_and_a_stale_one(pachd: Localpachd, mapped: Service, ready: Snapshot) -> None:
    before = get(mapped, "/map")["commits"]["map"]
    try:
        maps.write(pachd, ready, place, stale="the layout was computed with another model")
        found = get(mapped, "/map")
        assert mapped.ask(f"/map/tiles/0/0/0?commit={before}").code == "map-moved"
        assert (found["pictures"], found["clusters"]) == (0, []) and "another model" in found["stale"]
    finally:
        maps.write(pachd, ready, place)
    assert get(mapped, "/map")["pictures"] > 0
    with services.running(ready) as service:  # as with --at
        assert service.ask("/map").code == "no-map" and get(service, "/status")["map"] is False
