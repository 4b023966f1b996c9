"""Owns the measurement of preprocess: pictures a second of one core, from files to packs, and of the machine. That of a
core is in processor time of the stage and its decoders, which does not count the machine's other work."""

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

from benchmarks.kit.report import Line, Result, Row
from benchmarks.kit.stl10_pieces import write_stl10
from benchmarks.races import original
from benchmarks.races.pictures import process, write_block
from pipelines.library.datasets.samples import crop_box
from pipelines.library.datasets.stl10 import UNLABELLED
from stages.backbone.photographs import PHOTOGRAPHS, open_photograph
from stages.datum.contract import DatumInput
from stages.decode.stl10 import RECORD, record_name
from stages.files import blocks
from stages.files.blocks import ByteRange
from stages.preprocess import start


def measure(rounds: int) -> Result:
    """The best of several rounds for each kind of file."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        root = Path(scratch)
        experiment, usual = original.parameters("preprocess"), dict[str, str]()
        large = _large(root / "large")
        kinds: dict[str, tuple[Path, int, float, Mapping[str, str]]] = {
            "96 px JPEG, blocks": (_jpegs(root / "jpeg"), blocks.LIMIT, 1500, experiment),
            "STL-10, one file": (_stl10(root / "stl10"), blocks.LIMIT, 5000, experiment),
            "STL-10, blocks": (_stl10_block(root / "stl10"), blocks.LIMIT, 5000, experiment),
            "12-megapixel JPEG": (large, 1, 40, experiment),
            "12-megapixel JPEG to 224 px": (large, 1, 40, usual),
            "640 × 480 JPEG to 224 px, blocks": (_jpegs(root / "photographs", (640, 480)), blocks.LIMIT, 150, usual),
        }
        rows, lines = [], []
        for name, (path, pictures, goal, environment) in kinds.items():
            taken = [_seconds(path, root / "out", environment) for _ in range(rounds)]
            seconds, wall = (min(each) for each in zip(*taken, strict=True))
            rate = pictures / seconds
            size = path.stat().st_size / pictures
            rows.append(Row("preprocess", name, seconds, rate))
            what = f"preprocess, {name} ({size / 1e6:.2f} MB each)" if pictures == 1 else f"preprocess, {name}"
            met = "yes" if rate >= goal else "no"
            said = f"{rate:,.0f} pictures/s/core; {pictures / wall:,.0f}/s"
            lines.append(Line(what, said, "", "", f"{goal:,.0f} a core", met))
    return Result(tuple(rows), tuple(lines))


def _seconds(path: Path, out: Path, environment: Mapping[str, str]) -> tuple[float, float]:
    """Seconds of processor time, and of time, for one datum after another one, with which the decoders start."""
    stage = start(environment)
    for _ in range(2):
        out.mkdir()
        before, begun = _processor(), time.perf_counter()
        process(stage, out, DatumInput("images", path, path.name, ""))
        wall, after = time.perf_counter() - begun, _processor()
        shutil.rmtree(out)
    return sum(seconds - before.get(each, 0.0) for each, seconds in after.items()), wall


def _processor() -> dict[str, float]:
    """The seconds of processor time of this process and its children, by their numbers."""
    found = {"self": time.process_time()}
    children: list[str] = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            children += (task / "children").read_text().split()
    for child in children:
        with suppress(FileNotFoundError, ProcessLookupError):  # the decoder of an earlier stage
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            found[child] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found


def _jpegs(directory: Path, size: tuple[int, int] = (96, 96)) -> Path:
    directory.mkdir()
    lot = Random(0)
    photographs = [open_photograph(label).convert("RGB") for label in PHOTOGRAPHS]
    spans = {}
    for number in range(blocks.LIMIT):
        photograph = photographs[number % len(photographs)]
        path = directory / f"{number:03}.jpg"
        crop = photograph.crop(crop_box(photograph.size, 0, photograph.width, lot))
        crop.resize(size, Image.Resampling.LANCZOS).save(path, quality=92)
        spans[path.name] = ByteRange(path)
    return write_block(directory, spans)


def _stl10(directory: Path) -> Path:
    write_stl10(directory, blocks.LIMIT, (1, 1))
    return directory / UNLABELLED


def _stl10_block(directory: Path) -> Path:
    records = range(blocks.LIMIT)
    spans = {
        record_name(UNLABELLED, each): ByteRange(directory / UNLABELLED, each * RECORD, RECORD) for each in records
    }
    return write_block(directory, spans)


def _large(directory: Path) -> Path:
    """A photograph scaled to 4,000 × 3,000 pixels, with a camera's noise so that decoding it takes as long as usual."""
    directory.mkdir()
    scaled = np.asarray(open_photograph("rocket").resize((4000, 3000), Image.Resampling.LANCZOS), np.float32)
    noisy = scaled + np.random.default_rng(0).normal(0, 2, (3000, 4000, 1)).astype(np.float32)
    path = directory / "large.jpg"
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(path, quality=85)
    return path
