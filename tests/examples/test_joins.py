"""Files of two repos joined by a part of their names, and those without a counterpart."""

import json

from tests.examples.example import Example


def store(name: str, zipcode: str) -> str:
    return json.dumps({"name": name, "address": {"zipcode": zipcode}})


STORES = {
    "/STOREID1.txt": store("North", "10"),
    "/STOREID2.txt": store("South", "20"),
    "/STOREID5.txt": store("Far", "10"),
}
ORDERS = {
    "/ORDER1_STOREID1.txt": "tea\n",
    "/ORDER2_STOREID1.txt": "milk\n",
    "/ORDER3_STOREID2.txt": "nuts\n",
    "/ORDER4_STOREID7.txt": "lost\n",
}


def test_inner_join(example: Example) -> None:
    example.repo("stores", "purchases")
    example.put("stores", STORES)
    example.put("purchases", ORDERS)
    example.create("inner_join.json", "reduce_inner.json")
    assert example.went("inner_join") == ("JOB_SUCCESS", {"processed": 3, "total": 3})
    assert example.files("inner_join") == {
        "/10/ORDER1_STOREID1.txt": "North\ntea\n",
        "/10/ORDER2_STOREID1.txt": "North\nmilk\n",
        "/20/ORDER3_STOREID2.txt": "South\nnuts\n",
    }
    assert example.went("reduce_inner") == ("JOB_SUCCESS", {"processed": 2, "total": 2})
    assert example.files("reduce_inner") == {"/10.txt": "North\ntea\nNorth\nmilk\n", "/20.txt": "South\nnuts\n"}

    opened = example.put("stores", {"/STOREID7.txt": store("New", "20")})
    assert example.went("inner_join", opened) == ("JOB_SUCCESS", {"processed": 1, "skipped": 3, "total": 4})
    assert example.went("reduce_inner", opened) == ("JOB_SUCCESS", {"processed": 1, "skipped": 1, "total": 2})
    assert example.files("reduce_inner")["/20.txt"] == "South\nnuts\nNew\nlost\n"


def test_outer_join(example: Example) -> None:
    example.repo("stores", "returns")
    example.put("stores", STORES)
    example.put("returns", ORDERS)
    example.create("outer_join.json")
    assert example.went("outer_join") == ("JOB_SUCCESS", {"processed": 5, "total": 5})
    assert example.files("outer_join") == {
        "/10/ORDER1_STOREID1.txt": "North\ntea\n",
        "/10/ORDER2_STOREID1.txt": "North\nmilk\n",
        "/10/STOREID5.txt": "Far\n",
        "/20/ORDER3_STOREID2.txt": "South\nnuts\n",
        "/UNKNOWN/ORDER4_STOREID7.txt": "no such store\nlost\n",
    }
    # Once there is such a store the two are one datum; the datum of the lone return is gone, and its output with it.
    opened = example.put("stores", {"/STOREID7.txt": store("New", "20"), "/STOREID5.txt": None})
    assert example.went("outer_join", opened) == ("JOB_SUCCESS", {"processed": 1, "skipped": 3, "total": 4})
    assert [*example.files("outer_join")] == [
        "/10/ORDER1_STOREID1.txt", "/10/ORDER2_STOREID1.txt", "/20/ORDER3_STOREID2.txt", "/20/ORDER4_STOREID7.txt",
    ]  # fmt: skip
