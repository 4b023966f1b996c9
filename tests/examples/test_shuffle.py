"""Files sorted into other directories by links to placeholders: no byte of them passes through the user's code."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Example


def test_shuffle(example: "Example") -> None:
    example.repo("fruits", "pricing")
    example.put(
        "fruits", {"/apple.jpeg": b"\xff\xd8 apple", "/mango.jpeg": b"\xff\xd8 mango", "/notes.txt": "no fruit"}
    )
    example.put("pricing", {"/apple.json": '{"price": 100}', "/mango.json": '{"price": 10}'})
    example.create("shuffle.json")
    assert example.went("shuffle") == ("JOB_SUCCESS", {"processed": 4, "total": 4})
    assert example.data("shuffle") == {
        "/apple/cost.json": b'{"price": 100}',
        "/apple/img.jpeg": b"\xff\xd8 apple",
        "/mango/cost.json": b'{"price": 10}',
        "/mango/img.jpeg": b"\xff\xd8 mango",
    }
    assert example.said("shuffle") == []
    assert example.job("shuffle").stats.download_bytes == 0

    dearer = example.put("pricing", {"/apple.json": '{"price": 120}', "/mango.json": None})
    assert example.went("shuffle", dearer) == ("JOB_SUCCESS", {"processed": 1, "skipped": 2, "total": 3})
    assert example.data("shuffle")["/apple/cost.json"] == b'{"price": 120}'
    assert "/mango/cost.json" not in example.data("shuffle")
