"""The beginner's tutorial: outlines of pictures, one datum each, and a sheet of all. docs/tutorial.md takes the same
steps with pachctl."""

import io
import re
import shutil
from importlib import resources
from pathlib import Path

import grpc
import pytest
from PIL import Image, ImageChops
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2

from tests import transcripts
from tests.examples.example import Example

CODE = Path(__file__).with_name("opencv")
DOCUMENTS = Path(__file__).resolve().parents[2] / "docs"
ROW, COLUMN = 124, 184
"""The height of a row of the sheet and the width of a column, with the gap."""


def photograph(name: str) -> bytes:
    """A photograph that comes with scikit-image."""
    return (resources.files("skimage") / "data" / name).read_bytes()


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def bright(data: bytes) -> float:
    """The share of a picture's pixels that are bright."""
    histogram = opened(data).convert("L").histogram()
    return sum(histogram[128:]) / sum(histogram)


def changes(example: Example, repo: str) -> dict[str, str]:
    """How the head of a repo differs from its parent: "+", "-", or both by the path of each file."""
    found: dict[str, str] = {}
    for change in example.client.diff_file(example.at(repo), "/"):
        for sign, info in (("+", change.new_file), ("-", change.old_file)):
            if info.file_type == pfs_pb2.FILE:
                found[info.file.path] = found.get(info.file.path, "") + sign
    return found


def states(example: Example, pipeline: str, job: str) -> dict[str, str]:
    """The state of each datum of a job by the path of its first file."""
    datums = example.client.list_datum(pipeline, job, project_name=example.project)
    return {each.data[0].file.path: pps_pb2.DatumState.Name(each.state) for each in datums}


def test_walk_of_the_tutorial(example: Example, tmp_path: Path) -> None:
    code = tmp_path / "code"
    shutil.copytree(CODE, code)
    words = {"/code/": f"{code}/"}
    first_picture(example, words)
    second = more_pictures(example)
    sheet(example, words)
    third = change_of_several_files(example, second)
    branches(example, second, third)
    bad = failing_code(example)
    new_code(example, words, code / "edges.py")
    assert progress(example) == documented_progress()
    template(example, code)
    removal(example, bad, third)


def first_picture(example: Example, words: dict[str, str]) -> None:
    """A repo, a file in it, and a pipeline that reads it."""
    example.repo("images")
    original = photograph("chelsea.png")
    example.put("images", {"/chelsea.png": original})
    (file,) = example.client.list_file(example.at("images"), "/")
    assert (file.file.path, file.file_type, file.size_bytes) == ("/chelsea.png", pfs_pb2.FILE, len(original))
    assert example.data("images") == {"/chelsea.png": original}

    example.create("edges.json", words=words)
    assert example.went("edges") == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    (info,) = example.client.inspect_pipeline("edges", project_name=example.project)
    assert info.state == pps_pb2.PIPELINE_RUNNING
    outlines = opened(example.data("edges")["/chelsea.png"])
    assert (outlines.mode, outlines.size) == ("L", opened(original).size)
    assert example.log("edges") == ["chelsea.png: 451 x 300"]


def more_pictures(example: Example) -> str:
    """Two files in one commit, which is returned: only their datums are processed."""
    commit = example.put("images", {f"/{name}": photograph(name) for name in ("coffee.png", "rocket.jpg")})
    assert example.went("edges", commit) == ("JOB_SUCCESS", {"processed": 2, "skipped": 1, "total": 3})
    assert states(example, "edges", commit) == {
        "/chelsea.png": "SKIPPED",
        "/coffee.png": "SUCCESS",
        "/rocket.jpg": "SUCCESS",
    }
    assert [*example.data("edges")] == ["/chelsea.png", "/coffee.png", "/rocket.png"]
    return commit


def sheet(example: Example, words: dict[str, str]) -> None:
    """The second pipeline: outlines above, pictures below, as in the document's picture."""
    example.create("montage.json", words=words)
    assert example.went("montage") == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    made = opened(example.data("montage")["/montage.png"])
    assert made.size == (3 * COLUMN, 2 * ROW)
    tile = made.crop((0, ROW, COLUMN - 4, 2 * ROW - 4))
    picture = opened(photograph("chelsea.png")).convert("RGB").resize(tile.size)
    assert ImageChops.difference(tile, picture).getbbox() is None
    with Image.open(DOCUMENTS / "tutorial-montage.png") as shown:
        differences = ImageChops.difference(made, shown.convert("RGB")).convert("L").tobytes()
    assert sum(differences) / len(differences) < 8


def change_of_several_files(example: Example, second: str) -> str:
    """One file added and one deleted in one commit, which is returned."""
    commit = example.put("images", {"/horse.png": photograph("horse.png"), "/rocket.jpg": None})
    assert example.went("edges", commit) == ("JOB_SUCCESS", {"processed": 1, "skipped": 2, "total": 3})
    assert example.went("montage", commit) == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    assert changes(example, "images") == {"/horse.png": "+", "/rocket.jpg": "-"}
    assert changes(example, "edges") == {"/horse.png": "+", "/rocket.png": "-"}
    found = example.client.glob_file(example.at("images"), "/*.png")
    assert [each.file.path for each in found] == ["/chelsea.png", "/coffee.png", "/horse.png"]
    assert [*example.data("edges", second)] == ["/chelsea.png", "/coffee.png", "/rocket.png"]
    members = [each.commit.repo for each in example.client.inspect_commit(commit) if each.commit.id == commit]
    assert sorted(f"{repo.name} {repo.type}" for repo in members) == [
        "edges meta", "edges user", "images user", "montage meta", "montage user",
    ]  # fmt: skip
    return commit


def branches(example: Example, second: str, third: str) -> None:
    """A branch at an older commit, and `master` moved back to it."""
    client, project = example.client, example.project
    after = example.data("montage", third)
    client.create_branch("images", "before", head_commit=example.at("images", commit=second), project_name=project)
    heads = {each.branch.name: each.head.id for each in client.list_branch("images", project_name=project)}
    assert heads == {"before": second, "master": third}
    client.create_branch("images", "master", head_commit=example.at("images", "before"), project_name=project)
    assert example.went("edges") == ("JOB_SUCCESS", {"processed": 1, "skipped": 2, "total": 3})
    assert example.went("montage") == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    assert [*example.data("edges")] == ["/chelsea.png", "/coffee.png", "/rocket.png"]
    assert example.data("montage") != after


def failing_code(example: Example) -> str:
    """A file that fails its datum, in a commit that is returned, and its removal."""
    bad = example.put("images", {"/notes.txt": "not a picture\n"})
    assert example.went("edges", bad) == ("JOB_FAILURE", {"failed": 1, "total": 4})
    assert example.log("edges")[-1] == "PIL.UnidentifiedImageError: cannot identify image file '/pfs/images/notes.txt'"
    assert example.job("montage", bad).state == pps_pb2.JOB_UNRUNNABLE
    good = example.put("images", {"/notes.txt": None})
    assert example.went("edges", good) == ("JOB_SUCCESS", {"skipped": 3, "total": 3})
    assert example.went("montage", good)[0] == "JOB_SUCCESS"
    return bad


def new_code(example: Example, words: dict[str, str], file: Path) -> None:
    """An update alone skips all datums, with reprocessing none."""
    before = example.data("edges")
    file.write_text(file.read_text().replace("FIND_EDGES", "CONTOUR"))
    example.create("edges.json", words=words, update=True)
    assert example.went("edges") == ("JOB_SUCCESS", {"skipped": 3, "total": 3})
    assert example.data("edges") == before
    example.create("edges.json", words=words, update=True, reprocess=True)
    assert example.went("edges") == ("JOB_SUCCESS", {"processed": 3, "total": 3})
    assert example.went("montage") == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    after = example.data("edges")
    assert after.keys() == before.keys()
    assert all(bright(before[path]) < 0.5 < bright(data) for path, data in after.items())
    versions = example.client.list_pipeline(history=-1)
    assert [each.version for each in versions if each.pipeline.name == "edges" and _own(example, each)] == [3, 2, 1]


def template(example: Example, code: Path) -> None:
    """A pipeline from a template."""
    example.render("edges.jsonnet", suffix="emboss", filter="EMBOSS", code=str(code))
    assert example.went("edges-emboss") == ("JOB_SUCCESS", {"processed": 3, "total": 3})
    embossed, contours = (example.data(name) for name in ("edges-emboss", "edges"))
    assert embossed.keys() == contours.keys()
    assert not [path for path in embossed if embossed[path] == contours[path]]


def removal(example: Example, bad: str, third: str) -> None:
    """The set that failed is squashed, and the newest one dropped."""
    before = example.data("images")
    example.client.squash_commit(bad)
    commits = [each.commit.id for each in example.client.list_commit("images", project_name=example.project)]
    assert len(commits) == 4 and bad not in commits and third in commits
    with pytest.raises(grpc.RpcError, match="not found"):
        example.data("images", bad)
    mistake = example.put("images", {"/mistake.txt": "a mistake\n"})
    example.client.drop_commit(mistake)
    assert example.data("images") == before


def progress(example: Example) -> list[tuple[str, str]]:
    """The counts and the state of each job of `edges`, the newest first, as pachctl words them."""
    jobs = example.client.list_job(pipeline_name="edges", project_name=example.project, history=-1)
    return [
        _counted(
            f"{each.data_processed} + {each.data_skipped} / {each.data_total}",
            pps_pb2.JobState.Name(each.state).removeprefix("JOB_").lower(),
        )
        for each in jobs
    ]


def documented_progress() -> list[tuple[str, str]]:
    """The same, as the tutorial shows it."""
    steps = transcripts.steps((DOCUMENTS / "tutorial.md").read_text(encoding="utf-8"))
    (table,) = (step.output for step in steps if step.command == "pachctl list job -p edges --history all")
    return [_counted(row["PROGRESS"], row["STATE"].partition(":")[0]) for row in transcripts.rows(table)[1:]]


def _counted(progress: str, state: str) -> tuple[str, str]:
    """Without the skipped datums of a failed job, which only a quick localpachd counts; see Example.went."""
    return re.sub(r"\+ \d+", "+ ?", progress) if state == "failure" else progress, state


def _own(example: Example, info: pps_pb2.PipelineInfo) -> bool:
    return bool(info.pipeline.project.name == example.project)


def test_code_that_only_an_image_has(example: Example) -> None:
    example.repo("images")
    example.put("images", {"/chelsea.png": photograph("chelsea.png")})
    example.create("edges.json", words={"/code/": "/in-the-image/"})
    assert example.went("edges")[0] == "JOB_FAILURE"
    assert "can't open file '/in-the-image/edges.py'" in example.log("edges")[-1]


def test_pictures_of_two_projects(example: Example) -> None:
    example.repo("images")
    horse = photograph("horse.png")
    example.put("images", {"/here.png": horse, "/both.png": horse})
    staging = f"{example.project}-staging"
    example.client.create_project(staging)
    example.client.create_repo("images", project_name=staging)
    with example.client.commit("images", "master", project_name=staging) as commit:
        for name in ("there", "both"):
            example.client.put_file_bytes(commit, f"/{name}.png", photograph("coins.png"))
    example.create("edges-union.json", words={"STAGING": staging})
    # A datum's identity does not include the project: of two files with one name, the first member's counts.
    assert example.went("edges") == ("JOB_SUCCESS", {"processed": 3, "total": 3})
    assert [*example.data("edges")] == ["/both.png", "/here.png", "/there.png"]
