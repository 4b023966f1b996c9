"""Word count in three steps: pages fetched, words counted page by page, sums of everything."""

from tests.examples.example import Example


def test_scraper_map_reduce(example: Example) -> None:
    example.repo("urls")
    example.put("urls", {"/pets": "cat.html\ndog.html\n", "/hats": "hats.html\n"})
    example.create("scraper.json", "map.json", "reduce.json")
    assert example.went("scraper") == ("JOB_SUCCESS", {"processed": 2, "total": 2})
    assert [*example.files("scraper")] == ["/hats/hats.html", "/pets/cat.html", "/pets/dog.html"]
    assert example.went("map") == ("JOB_SUCCESS", {"processed": 3, "total": 3})
    assert example.files("map")["/pets-cat/the"] == "3\n"
    assert example.went("reduce") == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    sums = {"a": 2, "and": 2, "cat": 1, "dog": 2, "hat": 2, "mat": 1, "the": 4}
    assert example.files("reduce") == {f"/{word}": f"{count}\n" for word, count in sums.items()}

    # One more page in an existing directory: its sibling is not counted again, and the new page is one datum.
    more = example.put("urls", {"/hats": "hats.html\ncat.html\n"})
    assert example.went("scraper", more) == ("JOB_SUCCESS", {"processed": 1, "skipped": 1, "total": 2})
    assert example.went("map", more) == ("JOB_SUCCESS", {"processed": 1, "skipped": 3, "total": 4})
    assert example.went("reduce", more) == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    assert example.files("reduce")["/the"] == "7\n"

    # A missing page: the exit status is an accepted one, and the pages fetched before it count.
    gone = example.put("urls", {"/pets": "dog.html\nunicorn.html\ncat.html\n"})
    assert example.went("scraper", gone) == ("JOB_SUCCESS", {"processed": 1, "skipped": 1, "total": 2})
    assert [path for path in example.files("scraper") if path.startswith("/pets")] == ["/pets/dog.html"]
    assert example.went("map", gone) == ("JOB_SUCCESS", {"skipped": 3, "total": 3})
    assert example.went("reduce", gone) == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    assert example.files("reduce")["/the"] == "4\n"
