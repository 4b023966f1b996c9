"""Outlines of pictures, and a sheet of both: one datum for each file, and one for everything."""

import io

from PIL import Image

from tests.examples.example import Example


def picture(colour: str) -> bytes:
    """A square of this colour on white."""
    made = Image.new("RGB", (60, 40), "white")
    made.paste(colour, (20, 10, 40, 30))
    file = io.BytesIO()
    made.save(file, "PNG")
    return file.getvalue()


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def brightest(area: Image.Image) -> int:
    """The highest value in a picture of mode L."""
    return max(area.tobytes())


def test_edges_and_montage(example: Example) -> None:
    example.repo("images")
    example.put("images", {"/liberty.png": picture("green")})
    example.create("edges.json")
    assert example.went("edges") == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    first = example.job("edges").job.id
    outlines = opened(example.data("edges")["/liberty.png"])
    assert (outlines.mode, outlines.size) == ("L", (60, 40))
    assert brightest(outlines.crop((18, 8, 42, 32))) > 0 == brightest(outlines.crop((22, 12, 38, 28)))

    second = example.put("images", {"/AT-AT.png": picture("red"), "/kitten.png": picture("blue")})
    example.create("montage.json")
    assert example.went("edges", second) == ("JOB_SUCCESS", {"processed": 2, "skipped": 1, "total": 3})
    assert example.went("montage") == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    sheet = example.data("montage")["/montage.png"]
    assert opened(sheet).size == (6 * 32, 30)

    third = example.put("images", {"/liberty.png": None, "/kitten.png": picture("black")})
    assert example.went("edges", third) == ("JOB_SUCCESS", {"processed": 1, "skipped": 1, "total": 2})
    assert example.went("montage", third) == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    assert [*example.data("edges")] == ["/AT-AT.png", "/kitten.png"]
    assert opened(example.data("montage")["/montage.png"]).size == (4 * 32, 30)

    fourth = example.put("images", {"/kitten.png": picture("blue"), "/liberty.png": picture("green")})
    assert example.went("montage", fourth) == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    assert example.data("montage")["/montage.png"] == sheet
    assert [*example.data("edges", first)] == ["/liberty.png"]  # history stays


def test_pictures_of_two_projects(example: Example) -> None:
    example.repo("images")
    example.put("images", {"/here.png": picture("green"), "/both.png": picture("green")})
    staging = f"{example.project}-staging"
    example.client.create_project(staging)
    example.client.create_repo("images", project_name=staging)
    with example.client.commit("images", "master", project_name=staging) as commit:
        for name in ("there", "both"):
            example.client.put_file_bytes(commit, f"/{name}.png", picture("red"))
    example.create("edges-union.json", words={"STAGING": staging})
    # A datum's identity does not include the project: of two files with one name, the first member's counts.
    assert example.went("edges") == ("JOB_SUCCESS", {"processed": 3, "total": 3})
    assert [*example.data("edges")] == ["/both.png", "/here.png", "/there.png"]
