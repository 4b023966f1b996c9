"""IDX files: pictures with labels of their own, packed or not, and every damage with its reason."""

import gzip
import hashlib
import io
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pipelines.analysis.classifiers import label_plan
from pipelines.analysis.classifiers.label_plan import LabelPlan
from pipelines.errors import LookalikeError
from pipelines.library import picture_sources, queries
from pipelines.library.picture_hashes import PictureHashes
from stages.files import blocks

PIXELS = np.random.default_rng(0).integers(0, 256, (3, 5, 4), np.uint8)
IMAGES = b"\0\0\x08\x03" + struct.pack(">3I", *PIXELS.shape) + PIXELS.tobytes()
LABELS = b"\0\0\x08\x01" + struct.pack(">I", 3) + bytes((7, 0, 7))
TRAIN, TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


def write(directory: Path, **files: bytes) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name.replace("_", "-").replace("-gz", ".gz")).write_bytes(content)
    return directory


def plan(*arguments: Path, files: tuple[Path, ...] = ()) -> LabelPlan:
    return label_plan.plan(arguments, picture_sources.find(arguments, beside=label_plan.LABELS_FILE.__eq__), files)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_each_record_is_a_picture_with_its_label(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    end = "" if pack is bytes else "_gz"
    write(tmp_path / "digits", **{f"train_images_idx3_ubyte{end}": pack(IMAGES)}, train_labels_idx1_ubyte=LABELS)
    top = f"digits/{TRAIN}{end.replace('_', '.')}"
    made = plan(tmp_path / "digits")
    assert made.of == {f"{top}/000000.pgm": "7", f"{top}/000001.pgm": "0", f"{top}/000002.pgm": "7"}
    for source, wanted in zip(made.sources, PIXELS, strict=True):
        content = b"".join(blocks.content(source.span))
        assert len(content) == source.size
        assert made.pictures[source.name] == {source.name: hashlib.sha256(content).hexdigest()}
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(content))), wanted)


def test_pictures_and_labels_are_found_as_files_too(tmp_path: Path) -> None:
    pictures = write(tmp_path / "a", train_images_idx3_ubyte=IMAGES) / TRAIN
    labels = write(tmp_path / "b", train_labels_idx1_ubyte=LABELS, other=LABELS)
    for given in (labels / TRAIN_LABELS, labels / "other"):
        assert plan(pictures, given).of == {f"{TRAIN}/00000{at}.pgm": str(digit) for at, digit in enumerate((7, 0, 7))}


def test_a_csv_file_takes_the_place_of_their_labels(tmp_path: Path) -> None:
    write(tmp_path, train_images_idx3_ubyte=IMAGES)
    (tmp_path / "mine.csv").write_text(f"source,label\n{TRAIN}/000001.pgm,round\n")
    assert plan(tmp_path / TRAIN, files=(tmp_path / "mine.csv",)).of == {f"{TRAIN}/000001.pgm": "round"}


def test_without_labels_they_are_pictures_and_their_labels_are_not(tmp_path: Path) -> None:
    found = picture_sources.find(
        [write(tmp_path / "d", train_images_idx3_ubyte=IMAGES, train_labels_idx1_ubyte=LABELS)]
    )
    assert [each.name for each in found.sources] == [f"d/{TRAIN}/00000{at}.pgm" for at in range(3)]
    assert found.left_out == ["1 file that is not a picture: 1 without extension"]


def test_a_query_is_not_a_file_of_many(tmp_path: Path) -> None:
    write(tmp_path / "d", train_images_idx3_ubyte=IMAGES)
    with pytest.raises(LookalikeError, match="searched for: pictures in the IDX format: `lookalike add` adds"):
        queries.find([tmp_path / "d" / TRAIN])


def test_records_of_one_file_have_hashes_of_their_own(tmp_path: Path) -> None:
    hashes = PictureHashes(tmp_path / "kept")
    found = picture_sources.find([write(tmp_path / "d", train_images_idx3_ubyte=IMAGES)]).sources
    assert len({hashes.file(each) for each in found}) == len({hashes.file(each) for each in found[::-1]}) == 3


@pytest.mark.parametrize(
    ("images", "labels", "said"),
    [
        (IMAGES[:-1], LABELS, "is truncated: its header says 3 pictures of 4 × 5, 76 bytes; it has 75"),
        (IMAGES[:9], LABELS, "is truncated: it ends inside its header"),
        (IMAGES + b"x", LABELS, "is damaged: more follows: its header says 3 pictures of 4 × 5, 76 bytes; it has 77"),
        (b"\0\0\x0d\x03" + IMAGES[4:], LABELS, "begins with 00 00 0d 03, not with 00 00 08 03: only pictures of one"),
        (b"", LABELS, "begins with nothing, not with 00 00 08 03"),
        (IMAGES[:12] + bytes(4), LABELS, "is damaged: its pictures have 0 × 5 pixels"),
        (gzip.compress(IMAGES)[:-12], LABELS, "is damaged or truncated: "),
        (gzip.compress(IMAGES + bytes(1 << 22)), LABELS, "is damaged: more follows"),
        (IMAGES, None, f"has no labels: put {TRAIN_LABELS} beside it, name that file too, or give a CSV file with"),
        (IMAGES, b"source,label\n", f"{TRAIN_LABELS} is not a file of labels in the IDX format: it must begin 00 00"),
        (IMAGES, LABELS[:-1], f"{TRAIN_LABELS} is truncated: its header says 3 labels, 11 bytes; it has 10"),
        (IMAGES, LABELS[:4] + struct.pack(">I", 2) + b"ab", f"has 3 pictures, but .*{TRAIN_LABELS} has 2 labels"),
        (IMAGES, gzip.compress(LABELS)[:-9], f"{TRAIN_LABELS} cannot be read: Compressed file ended"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_with_the_reason(images: bytes, labels: bytes | None, said: str, tmp_path: Path) -> None:
    write(tmp_path / "d", train_images_idx3_ubyte=images)
    if labels is not None:
        write(tmp_path / "d", train_labels_idx1_ubyte=labels)
    with pytest.raises(LookalikeError, match=said):
        plan(tmp_path / "d")
