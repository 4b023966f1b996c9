"""The coding of the pictures in packs by measurement: `python -m studies.packs --help`.

Every coder is tried on the same normalised pictures: its bytes, its time beside the forward pass, what it changes of
the vectors, and whether the right pictures are found with them.
"""

import argparse
import ctypes
import hashlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image

from benchmarks.kit import program, report
from benchmarks.kit.report import aligned
from stages.backbone.photographs import PHOTOGRAPHS, open_photograph
from stages.files import coded_pictures
from stages.record.framing import PAD, Framing, PictureSquare, Pixels, unpadded
from studies.duplicates import bursts, lookalikes
from studies.kit import wheels
from studies.kit.environment import Unavailable
from studies.quality import PACKAGES, SETS, own
from studies.sets import photographs
from studies.sets.framing import normalised
from studies.sets.labelled import Labelled
from studies.sets.pooled import POOLINGS, Pooled, unit
from studies.sets.precision import Judged, by_chance, judge
from studies.sets.ways import DEFAULT, Vectors

UNLABELLED: dict[str, Callable[[Path], Iterator[Image.Image]]] = {
    "coins": lambda _: iter(lookalikes.scripted("coins").pictures),
    "pages": lambda _: iter(lookalikes.scripted("pages, one column").pictures),
    "desktops": lambda _: iter(lookalikes.scripted("desktops, one dialog").pictures),
    "bursts": lambda found: bursts.moved(photographs.every(found)),
    "photographs": lambda found: iter(photographs.every(found).values()),
}
"""Pictures in which nothing is searched for: their bytes, and what their vectors become."""

_FORCE_NONE = "JSIMD_FORCENONE"
"""The variable for which libjpeg-turbo uses no vector instructions."""

_LEVEL = 3  # of zstd
_PNG = 6
_FASTEST, _DEFAULT = 0, 4  # methods of WebP


@dataclass(frozen=True, slots=True)
class Coder:
    """A way to code a picture of uint8 (height, width, 3). exact: the pixels come back as they were."""

    encode: Callable[[Pixels], bytes]
    decode: Callable[[bytes, tuple[int, int]], Pixels]  # the bytes, and the picture's (width, height)
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Coded:
    """A set's pictures by one coder. encoded, decoded: processor seconds, of all. sizes: bytes of each."""

    sizes: NDArray[np.int64]
    encoded: float
    decoded: float
    pixels: Pixels


def _saved(pixels: Pixels, format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format, **options)
    return file.getvalue()


def _opened(content: bytes, _: tuple[int, int]) -> Pixels:
    with Image.open(io.BytesIO(content)) as picture:
        return np.asarray(picture.convert("RGB"))


def _compressed(content: bytes) -> bytes:
    made: bytes = pa.Codec("zstd", _LEVEL).compress(content, asbytes=True)
    return made


def _expanded(content: bytes, size: tuple[int, int]) -> Pixels:
    width, height = size
    length = width * height * 3
    bare = pa.decompress(content, decompressed_size=length, codec="zstd", asbytes=True)
    return np.frombuffer(bare, np.uint8).reshape(height, width, 3)


def _differences(pixels: Pixels) -> bytes:
    """As PNG's filters, each value without what its neighbours let expect: red and blue without green, then the
    differences down and across, of which cumulative sums are the way back."""
    green = pixels[..., 1]
    planes = np.stack([pixels[..., 0] - green, green, pixels[..., 2] - green])
    down = np.diff(planes, axis=1, prepend=np.uint8(0))
    return _compressed(np.diff(down, axis=2, prepend=np.uint8(0)).tobytes())


def _summed(content: bytes, size: tuple[int, int]) -> Pixels:
    width, height = size
    planes = _expanded(content, size).reshape(3, height, width)
    red, green, blue = planes.cumsum(axis=2, dtype=np.uint8).cumsum(axis=1, dtype=np.uint8)
    return np.stack([red + green, green, blue + green], axis=-1)


def _jpeg(quality: int, subsampling: str = "4:4:4", **options: Any) -> Coder:
    return Coder(
        partial(_saved, format="JPEG", quality=quality, subsampling=subsampling, **options), _opened, exact=False
    )


OURS = "as packs hold them"

CODERS: dict[str, Coder] = {
    OURS: Coder(coded_pictures.encode, _opened, exact=False),
    "zstd": Coder(lambda pixels: _compressed(pixels.tobytes()), _expanded),
    "differences, zstd": Coder(_differences, _summed),
    "PNG": Coder(partial(_saved, format="PNG", compress_level=_PNG), _opened),
    "WebP lossless, fastest": Coder(partial(_saved, format="WEBP", lossless=True, method=_FASTEST, quality=0), _opened),
    "WebP lossless": Coder(partial(_saved, format="WEBP", lossless=True, method=_DEFAULT, quality=50), _opened),
    "WebP 95": Coder(partial(_saved, format="WEBP", quality=95), _opened, exact=False),
    **{f"JPEG {quality}": _jpeg(quality, optimize=True) for quality in (85, 90, 92, 94, 96, 98)},
    "JPEG 94, fixed tables": _jpeg(94),
    "JPEG 94, 4:2:0": _jpeg(94, "4:2:0", optimize=True),
}
"""Pillow has no setting for WebP's near lossless."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the coders that the arguments (the command line's by default) name, and prints the tables; 1 if the
    wheels cannot be had."""
    given = _parse(arguments)
    program.exit_on_sigterm()
    surroundings, used, code = report.machine(), report.versions((*PACKAGES, "pyarrow")), report.commit()
    try:
        found = wheels.unpacked(given.wheels or wheels.place(os.environ)) if given.sets else Path()
        labelled = [SETS[name](found) for name in given.sets if name in SETS] + [own(each) for each in given.own]
        if given.pictures:
            labelled = [each.fewer(given.pictures) for each in labelled]
        others = {name: list(UNLABELLED[name](found))[: given.pictures] for name in given.sets if name in UNLABELLED}
        print(report.place(surroundings, used, code))
        with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
            model = Vectors(Path(scratch)).backbone(DEFAULT.backbone, DEFAULT.size)
            measure(labelled, others, {name: CODERS[name] for name in given.coders}, model)
        if given.instructions:
            print("\n".join(("", *without_instructions(given.coders))))
    except (Unavailable, OSError) as error:
        print(f"studies.packs: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def measure(
    labelled: Sequence[Labelled],
    others: Mapping[str, Sequence[Image.Image]],
    coders: Mapping[str, Coder],
    model: Pooled,
) -> None:
    """Prints a table of bytes and times, one of precision, and one of the vectors' changes, a row for each coder."""
    squares = {each.name: _squares(each.images) for each in labelled} | {
        name: _squares(pictures) for name, pictures in others.items()
    }
    before = {name: _vectors(model, np.stack([each.pixels for each in some])) for name, some in squares.items()}
    raw = {each.name: judge(before[each.name], each) for each in labelled}
    bare = _processor(lambda: model.bare(np.stack([each.pixels for each in next(iter(squares.values()))])))
    names = list(squares)
    sizes = [("bytes a picture", *names, "mean", "encoding, ms", "decoding, ms", "of the forward pass")]
    right = [("precision@1", *raw, "mean")]
    changes = [("change of the vectors: mean, largest", *names)]
    right.append(_precision("raw", raw, raw))
    for name, coder in coders.items():
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        coded = {each: coded_by(coder, some) for each, some in squares.items()}
        count = sum(len(each.sizes) for each in coded.values())
        encoding, decoding = (sum(getattr(each, kind) for each in coded.values()) for kind in ("encoded", "decoded"))
        means = [each.sizes.mean() for each in coded.values()]
        share = decoding / count / (bare / len(next(iter(squares.values()))))
        times = (f"{1e3 * encoding / count:.2f}", f"{1e3 * decoding / count:.2f}", f"{share:.1%}")
        sizes.append((name, *(f"{each:,.0f}" for each in means), f"{np.mean(means):,.0f}", *times))
        if not coder.exact:
            after = {each: _vectors(model, found.pixels) for each, found in coded.items()}
            right.append(_precision(name, {each.name: judge(after[each.name], each) for each in labelled}, raw))
            moved = (np.linalg.norm(after[each] - before[each], axis=1) for each in names)
            changes.append((name, *(f"{each.mean():.3f}, {each.max():.3f}" for each in moved)))
    for table in (sizes, right, changes):
        print(f"\n{aligned(table)}", flush=True)


def coded_by(coder: Coder, squares: Sequence[PictureSquare]) -> Coded:
    """The pictures, coded without their padding and framed again. Raises ValueError if a coder that is said to be exact
    changes a pixel."""
    bare = [np.ascontiguousarray(unpadded(each)) for each in squares]
    contents: list[bytes] = []
    encoded = _processor(lambda: contents.extend(map(coder.encode, bare)))
    back: list[PictureSquare] = []
    framing = Framing(len(squares[0].pixels), PAD)
    decoded = _processor(
        lambda: back.extend(
            framing.frame(coder.decode(content, each.size)) for content, each in zip(contents, squares, strict=True)
        )
    )
    pixels = np.stack([each.pixels for each in back])
    if coder.exact and not np.array_equal(pixels, np.stack([each.pixels for each in squares])):
        raise ValueError("the pixels are not as they were")
    return Coded(np.asarray([len(each) for each in contents]), encoded, decoded, pixels)


def _squares(pictures: Sequence[Image.Image]) -> list[PictureSquare]:
    return [normalised(each, DEFAULT.size) for each in pictures]


def _vectors(model: Pooled, pixels: Pixels) -> NDArray[np.float32]:
    return unit(model(pixels)[POOLINGS.index(DEFAULT.pooling)])


def _processor(work: Callable[[], object]) -> float:
    """The seconds of processor that a piece of work takes, in all threads."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _precision(name: str, judged: Mapping[str, Judged], raw: Mapping[str, Judged]) -> tuple[str, ...]:
    """A row of precision@1, each with the probability by chance if it differs from that of raw pixels."""
    cells = []
    for each, verdict in judged.items():
        chance = by_chance(verdict, raw[each])
        cells.append(f"{verdict.first.mean():.3f}" + (f" ({chance:.2f})" if chance < 1 else ""))
    return (name, *cells, f"{np.mean([each.first.mean() for each in judged.values()]):.4f}")


def digest(coder: Coder, squares: Sequence[PictureSquare]) -> str:
    """A hash of all coded bytes and of all decoded pixels."""
    found = hashlib.sha256()
    for each in squares:
        content = coder.encode(np.ascontiguousarray(unpadded(each)))
        found.update(content + coder.decode(content, each.size).tobytes())
    return found.hexdigest()


def _digests(names: Sequence[str]) -> None:
    """Prints the digest of each coder, and the seconds that it takes, of photographs and drawings that need no wheel,
    with vector instructions or, if libjpeg-turbo's variable says so, without: libwebp has no variable."""
    if os.environ[_FORCE_NONE] == "1":
        ctypes.c_void_p.in_dll(ctypes.CDLL(_libwebp()), "VP8GetCPUInfo").value = ctypes.cast(
            _no_feature, ctypes.c_void_p
        ).value
    drawn = lookalikes.scripted("coins").pictures[::4]
    squares = _squares([*drawn, *(open_photograph(each).convert("RGB") for each in list(PHOTOGRAPHS)[:4])])
    for name, coder in ((name, CODERS[name]) for name in names):
        found: list[str] = []
        taken = _processor(lambda coder=coder: found.append(digest(coder, squares)))  # type: ignore[misc]
        print(name, found[0], f"{taken:.2f}", sep="\t")


_no_feature = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda _: 0)
"""Says of every set of vector instructions that the processor has none."""


def _libwebp() -> str:
    """The library that Pillow has loaded."""
    Image.init()
    return next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libwebp-" in line)


def without_instructions(names: Sequence[str]) -> Iterator[str]:
    """Whether each coder gives the same bytes and pixels with the processor's vector instructions and without."""
    rows = []
    for value in ("0", "1"):
        command = [sys.executable, "-c", f"from studies.packs import _digests; _digests({list(names)!r})"]
        environment = {**os.environ, _FORCE_NONE: value}
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        rows.append([line.split("\t") for line in done.stdout.splitlines() if "\t" in line])
    for (name, first, fast), (_, second, slow) in zip(*rows, strict=True):
        yield f"{name}: {'the same' if first == second else 'OTHER'} bytes, {fast} s and {slow} s of processor"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m studies.packs",
        description="Measures coders of the pictures in packs: bytes, time, and what they change of the answers.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    every = [*SETS, *UNLABELLED]
    add = parser.add_argument
    add("coders", nargs="*", metavar="CODER", help=f"{'; '.join(CODERS)}; by default all")
    add("--sets", nargs="*", choices=every, default=every, help="the sets of pictures in wheels; none if empty")
    add("--own", nargs="+", type=Path, default=[], metavar="DIR", help="sets of yours, a folder for each label")
    add("--pictures", type=program.positive, metavar="N", help="of each set at most about so many")
    add("--instructions", action="store_true", help="also code without the processor's vector instructions")
    add(
        "--wheels", type=Path, metavar="DIR", help=f"as for studies.quality; by default ${wheels.VARIABLE} or the cache"
    )
    given = parser.parse_args(arguments)
    for unknown in sorted({*given.coders} - {*CODERS}):
        parser.error(f"{unknown} is not a coder: choose from {', '.join(CODERS)}")
    given.coders = given.coders or list(CODERS)
    return given


if __name__ == "__main__":
    sys.exit(main())
