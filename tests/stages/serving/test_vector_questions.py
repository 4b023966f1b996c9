"""A vector as a question: answered as the picture that it belongs to, over HTTP and from Python."""

from typing import Any

import numpy as np
import pytest

from lookalike import Library, LookalikeError
from stages.serving.follow.snapshots import Snapshot
from tests.stages.serving import services
from tests.stages.serving.services import Service

_BEACH, _OTHER = "trip/south/06.png", "trip/north/07.png"


def _vector(ready: Snapshot, service: Service, path: str) -> list[float]:
    row = ready.library.row(service.id_of(path))
    assert row is not None
    return [float(each) for each in ready.library.vectors(np.array([row]))[0]]


def _found(answer: dict[str, Any]) -> list[tuple[str, float]]:
    return [(each["id"], each["distance"]) for each in answer["neighbors"]]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"k": 3},
        {"metric": "cosine"},
        {"filter": "trip/north/"},
        {"where": "path LIKE 'trip/south/%'"},
        {"max_distance": 1.0},
        {"combine": "all"},
    ],
    ids=lambda options: next(iter(options), "plain"),
)
def test_a_vector_finds_what_its_picture_finds(options: dict[str, Any], ready: Snapshot, service: Service) -> None:
    by_id = service.search({"id": service.id_of(_BEACH), **options}).data
    by_vector = service.search({"vector": _vector(ready, service, _BEACH), **options}).data
    assert _found(by_vector) == _found(by_id) != []
    assert by_vector["pictures"] == []
    assert not any(each["same"] for each in by_vector["neighbors"])  # a vector is not a picture


@pytest.mark.parametrize("combine", ["any", "all"])
def test_a_vector_counts_as_one_more_picture(combine: str, ready: Snapshot, service: Service) -> None:
    mine, other = service.id_of(_BEACH), _vector(ready, service, _OTHER)
    both = service.search({"pictures": [{"id": mine}, {"id": service.id_of(_OTHER)}], "combine": combine}).data
    mixed = service.search({"pictures": [{"id": mine}], "vector": other, "combine": combine}).data
    # With "any" a picture that was asked about comes before a vector's at the same distance.
    assert sorted(_found(mixed)) == sorted(_found(both))
    upload = service.search({"vector": other, "combine": combine}, [services.made(6)]).data
    assert sorted(_found(upload)) == sorted(_found(both))


def test_several_vectors_in_one_call(ready: Snapshot, service: Service) -> None:
    asked = [{"vector": _vector(ready, service, each), "k": 2} for each in (_BEACH, _OTHER)]
    answers = service.search({"requests": asked}).data["answers"]
    assert [each["neighbors"][0]["id"] for each in answers] == [service.id_of(each) for each in (_BEACH, _OTHER)]


@pytest.mark.parametrize(
    ("vector", "says"),
    [
        ([0.5] * 3, "the vector has 3 numbers, and those of the index have 16: ask with a vector of its model"),
        ([], "vector: list should have at least 1 item"),
        ([1e39] * 16, "vector.0: input should be less than or equal to 34"),
        ([3e38] * 16, "float32"),
        (["1"] * 16, "vector.0: input should be a valid number"),
        ("0.5", "vector: input should be a valid list"),
    ],
    ids=["dimension", "empty", "number", "norm", "text", "no list"],
)
def test_other_vectors_are_refused_with_the_reason(vector: Any, says: str, service: Service) -> None:
    refused = service.search({"vector": vector})
    assert 400 <= refused.status < 500
    assert says in refused.data["error"]["message"]


def test_numbers_that_are_not_finite_are_refused(service: Service) -> None:
    for number in ("NaN", "Infinity", "1e400"):
        body = f'{{"vector": [{", ".join([number] * 16)}]}}'.encode()
        refused = service.ask("/search", body, {"Content-Type": "application/json"})
        assert (refused.status, refused.code) == (400, "bad-request")


def test_from_python(ready: Snapshot, service: Service) -> None:
    with Library.open(f"http://127.0.0.1:{service.port}") as library:
        vector = np.array(_vector(ready, service, _BEACH), np.float32)
        found = library.search(vector=vector, k=3, filter="trip/")
        assert found[0].id == service.id_of(_BEACH)
        assert [each.id for each in library.search(service.id_of(_OTHER), vector=vector, k=2)]
        with pytest.raises(LookalikeError, match="the vector has 2 numbers"):
            library.search(vector=[1.0, 2.0])
        with pytest.raises(LookalikeError, match="vector.0"):
            library.search(vector=[float("nan")] * 16)
        with pytest.raises(LookalikeError, match="a NoneType is not a picture"):
            library.search()
