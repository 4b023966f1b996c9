"""Files sorted into other directories by links to placeholders: the user's code reads none of their bytes."""

from tests.examples.example import Example


def test_shuffle(example: Example) -> None:
    example.repo("fruits", "pricing")
    example.put(
        "fruits", {"/apple.jpeg": b"\xff\xd8 apple", "/mango.jpeg": b"\xff\xd8 mango", "/notes.txt": "not a fruit"}
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
    assert example.log("shuffle") == []
    assert example.job("shuffle").stats.download_bytes == 0

    dearer = example.put("pricing", {"/apple.json": '{"price": 120}', "/mango.json": None})
    assert example.went("shuffle", dearer) == ("JOB_SUCCESS", {"processed": 1, "skipped": 2, "total": 3})
    assert example.data("shuffle")["/apple/cost.json"] == b'{"price": 120}'
    assert "/mango/cost.json" not in example.data("shuffle")
