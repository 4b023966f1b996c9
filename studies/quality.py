"""The choice of lookalike's defaults by measurement: `python -m studies.quality --help`.

One factor at a time is varied around the default, on several sets of labelled pictures that come in wheels.
"""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.kit import program, report
from benchmarks.kit.report import interleaved, timed
from stages.datum.contract import StageError
from studies.kit import wheels
from studies.kit.environment import Unavailable
from studies.sets import drawings, photographs
from studies.sets.framing import FRAMINGS
from studies.sets.labelled import Labelled, Picture, on_white
from studies.sets.pooled import POOLINGS
from studies.sets.precision import Difference, Judged, by_chance, difference, judge
from studies.sets.ways import BEFORE, DEFAULT, Vectors, Way, framed

_LONGEST = 512  # pixels of a picture of your own; no backbone takes more, and a set is held in memory
_ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif")

PACKAGES = ("numpy", "pillow", "tensorflow", "keras", "scikit-image")

SETS: dict[str, Callable[[Path], Labelled]] = {
    "emoji": drawings.emoji,
    "sprites": drawings.sprites,
    "icons": drawings.icons,
    "digits": drawings.digits,
    "parts": lambda _: photographs.parts(),
    "views": photographs.views,
}

FACTORS: dict[str, dict[str, Way]] = {
    "before": {"96 px, crop": BEFORE, "224 px, pad": DEFAULT},
    "framing": {name: replace(DEFAULT, framing=name) for name in FRAMINGS},
    "size": {f"{size} px": replace(DEFAULT, size=size) for size in (96, 160, 224, 256)},
    "pooling": {
        f"{pooling}, {'length 1' if unit else 'as it is'}": replace(DEFAULT, pooling=pooling, unit=unit)
        for pooling in POOLINGS
        for unit in (True, False)
    },
    "flip": {"picture alone": DEFAULT, "mean with its mirror image": replace(DEFAULT, flip=True)},
    "backbone": {
        f"{name}, {size} px": replace(DEFAULT, backbone=name, size=size)
        for name, size in (
            ("efficientnet-lite0", 224),
            ("efficientnet-lite0", 256),
            ("efficientnet-lite1", 240),
            ("efficientnet-lite2", 260),
        )
    },
}
"""The ways of each factor, all but one aspect as in the default."""

_TIMED = 64  # pictures
_CERTAIN = 0.05  # the probability by chance below which a set is said to be better or worse


@dataclass(frozen=True, slots=True)
class Measured:
    """A way's verdicts on each set, and its pictures a second beside those of the bare forward pass."""

    judged: tuple[Judged, ...]
    rate: float
    bare: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the factors that the arguments (the command line's by default) name, and prints their tables; 1 if the
    wheels cannot be had."""
    given = _parse(arguments)
    program.exit_on_sigterm()
    surroundings, used, code = report.machine(), report.versions(PACKAGES), report.commit()
    try:
        sets = [own(directory) for directory in given.own]
        if given.sets:
            found = wheels.unpacked(given.wheels or wheels.place(os.environ))
            sets = [SETS[name](found) for name in given.sets] + sets
        if given.pictures:
            sets = [each.fewer(given.pictures) for each in sets]
        with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
            measure = partial(measured, sets, Vectors(Path(scratch)), given.rounds)
            base = measure(DEFAULT)
            print(report.place(surroundings, used, code))
            print(_described(sets))
            for factor in given.factors:
                print(f"measuring {factor} ...", file=sys.stderr, flush=True)
                ways = FACTORS[factor]
                by_name = {name: base if way == DEFAULT else measure(way) for name, way in ways.items()}
                print("\n".join(table(factor, [each.name for each in sets], ways, by_name, base)), flush=True)
    except (Unavailable, StageError, OSError) as error:
        print(f"studies.quality: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def measured(sets: Sequence[Labelled], vectors: Vectors, rounds: int, way: Way) -> Measured:
    """The precision of a way on each set, and its speed. The best of several rounds counts, in turns with the bare
    forward pass on pictures that are already framed."""
    judged = tuple(judge(vectors.of(each, way), each) for each in sets)
    images = [image for each in sets for image in each.images[: max(1, _TIMED // len(sets))]]
    ready, model = framed(images, way), vectors.backbone(way.backbone, way.size)
    whole, bare = interleaved(
        rounds, lambda: timed(lambda: vectors.embed(images, way)), lambda: timed(lambda: model.bare(ready))
    )
    return Measured(judged, len(images) / whole, len(images) / bare)


def table(
    factor: str, sets: Sequence[str], ways: Mapping[str, Way], found: Mapping[str, Measured], base: Measured
) -> Iterator[str]:
    """The lines of one factor's table, in Markdown: precision@1 of each set (bold if better than the default by more
    than chance, in italics if worse), its mean, the mean average precision, and the costs."""
    columns = (factor, *sets, "mean", "beside the default", "mAP", "pictures/s", "bare", "bytes")
    yield ""
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for name, way in ways.items():
        each = found[name]
        firsts = [one.first.mean() for one in each.judged]
        cells = [_marked(mine, theirs) for mine, theirs in zip(each.judged, base.judged, strict=True)]
        beside = "the default" if way == DEFAULT else _interval(difference(each.judged, base.judged))
        average = np.mean([one.average.mean() for one in each.judged])
        costs = (f"{each.rate:.0f}", f"{each.bare:.0f}", f"{3 * way.size**2:,}")
        yield f"| {' | '.join((name, *cells, f'{np.mean(firsts):.3f}', beside, f'{average:.3f}', *costs))} |"


def _marked(mine: Judged, theirs: Judged) -> str:
    value = f"{mine.first.mean():.3f}"
    if by_chance(mine, theirs) >= _CERTAIN:
        return value
    return f"**{value}**" if mine.first.mean() > theirs.first.mean() else f"*{value}*"


def _interval(found: Difference) -> str:
    said = f"{found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f})"
    return said if found.certain else f"{said}, chance"


def _described(sets: Sequence[Labelled]) -> str:
    rows = [
        f"| {each.name} | {len(each)} | {len(each.asked)} | {len(set(each.labels))} | "
        f"{sum(max(image.size) > 1.05 * min(image.size) for image in each.images) / len(each):.0%} |"
        for each in sets
    ]
    return "\n".join(("", "| set | pictures | queries | labels | not square |", "|---|---|---|---|---|", *rows))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m studies.quality",
        description="Measures the precision of framings, sizes, poolings and backbones on sets of labelled pictures.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("factors", nargs="*", metavar="FACTOR", help=f"{', '.join(FACTORS)}; by default all")
    parser.add_argument(
        "--sets", nargs="*", choices=SETS, default=list(SETS), help="the sets of pictures in wheels; none if empty"
    )
    parser.add_argument(
        "--own",
        nargs="+",
        type=Path,
        default=[],
        metavar="DIR",
        help="sets of yours: a directory with a folder for each label",
    )
    parser.add_argument("--pictures", type=program.positive, metavar="N", help="of each set at most about so many")
    parser.add_argument("--rounds", type=program.positive, default=3, metavar="N", help="rounds for the speed")
    parser.add_argument(
        "--wheels",
        type=Path,
        metavar="DIR",
        help=f"the unpacked wheels, downloaded if missing; by default ${wheels.VARIABLE} or the user's cache",
    )
    given = parser.parse_args(arguments)
    for unknown in sorted({*given.factors} - {*FACTORS}):
        parser.error(f"{unknown} is not a factor: choose from {', '.join(FACTORS)}")
    given.factors = given.factors or list(FACTORS)
    return given


def own(directory: Path) -> Labelled:
    """The pictures below a directory, named as it is, each labelled by its folder."""
    paths = sorted(path for path in directory.rglob("*") if path.suffix.lower() in _ENDINGS)
    pictures = tuple(Picture(_small(path), str(path.parent.relative_to(directory))) for path in paths)
    return Labelled(directory.resolve().name, pictures)


def _small(path: Path) -> Image.Image:
    picture = on_white(path)
    picture.thumbnail((_LONGEST, _LONGEST), Image.Resampling.LANCZOS)
    return picture


if __name__ == "__main__":
    sys.exit(main())
