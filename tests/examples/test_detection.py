"""Objects found in frames by processes that keep a model in memory: datum batching with a lazy input."""

import io
import json
import shutil

import pytest
from PIL import Image
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.examples.example import Example


def frame(left: int, level: int = 200) -> bytes:
    """A dark frame with a bright patch in it, 5 wide, 6 high."""
    made = Image.new("L", (40, 30), 20)
    made.paste(level, (left, 10, left + 5, 16))
    file = io.BytesIO()
    made.save(file, "PNG")
    return file.getvalue()


def boxes(example: Example, commit: str = "") -> dict[str, list[int] | None]:
    return {path: json.loads(text)["box"] for path, text in example.files("detections", commit).items()}


def test_detection(example: Example) -> None:
    example.repo("frames", "model")
    example.put("frames", {f"/video/{number}.png": frame(number) for number in range(6)})
    example.put("model", {"/detector.json": '{"threshold": 128}', "/readme": "not read"})
    example.create("detect.json")
    assert example.went("detections") == ("JOB_SUCCESS", {"processed": 6, "total": 6})
    assert boxes(example) == {f"/video/{number}.json": [number, 10, number + 5, 16] for number in range(6)}
    texts = example.files("detections").values()
    listed = example.client.list_datum("detections", example.job("detections").job.id, project_name=example.project)
    assert {json.loads(text)["datum"] for text in texts} == {each.datum.id for each in listed}
    # Two datum sets, two processes, and the model was read once in each.
    assert example.log("detections").count("started") == 2
    assert example.log("detections").count("loaded 128") == 2

    # A broken frame fails alone, with the reason in its log.
    broken = example.put("frames", {"/video/broken.png": "not a picture", "/video/6.png": frame(6)})
    assert example.went("detections", broken) == ("JOB_FAILURE", {"processed": 1, "failed": 1, "total": 8})
    assert any("UnidentifiedImageError" in line for line in example.log("detections"))
    (failed,) = [
        each
        for each in example.client.list_datum("detections", broken, project_name=example.project)
        if each.state == pps_pb2.FAILED
    ]
    assert [file.file.path for file in failed.data] == ["/video/broken.png", "/"]

    # No job builds on a failed one: the good frame is processed again.
    fixed = example.put("frames", {"/video/broken.png": frame(30)})
    assert example.went("detections", fixed) == ("JOB_SUCCESS", {"processed": 2, "skipped": 6, "total": 8})
    assert boxes(example)["/video/broken.json"] == [30, 10, 35, 16]

    # Another model affects every frame and replaces every result.
    strict = example.put("model", {"/detector.json": '{"threshold": 220}'})
    assert example.went("detections", strict) == ("JOB_SUCCESS", {"processed": 8, "total": 8})
    assert set(map(str, boxes(example).values())) == {"None"}


@pytest.mark.skipif(shutil.which("pachctl") is None, reason="pachctl is not on the PATH")
def test_a_shell_script_asks_for_its_datums(example: Example) -> None:
    example.repo("frames")
    example.put("frames", {f"/video/{number}": str(number) for number in range(5)})
    example.create("shell.yaml", words={"PACHCTL": shutil.which("pachctl") or ""})

    assert example.went("copies") == ("JOB_SUCCESS", {"processed": 5, "total": 5})
    assert sorted(example.files("copies").values()) == ["0", "1", "2", "3", "4"]
