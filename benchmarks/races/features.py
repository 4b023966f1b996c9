"""Owns the measurement of features: the stage on packs as preprocess writes them, beside its embedder alone, Keras's
`predict` as in the article, and bare forward passes, each in a process of its own, in turns."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.kit.contenders import Taken, race
from benchmarks.kit.report import Line, Result, Row, line
from benchmarks.races import pictures
from benchmarks.races.backbones import Backbone, random_resnet50
from benchmarks.races.passes import WAYS
from stages.datum.text_format import counted

MODULE = "benchmarks.races.forwards"
LARGER = (64, 128, 256)
_GOAL = 1.1


def measure(
    count: int,
    rounds: int,
    backbone: Backbone | None = None,
    data_dir: Path | None = None,
    larger: Sequence[int] = LARGER,
) -> Result:
    """Pictures a second, measured on `count` pictures; by default with ResNet50 and random weights. `larger` are the
    batch sizes to try for the ceiling."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        place = Path(scratch)
        split = pictures.split(place, count, data_dir)
        pictures.write_library([*split.library, *split.queries], place, place / "packs")
        parts = [sum(len(pack.pictures) for pack in part) for part in pictures.parts(place / "packs")]
        packs = [pack for part in pictures.parts(place / "packs") for pack in part]
        np.save(place / "pictures.npy", np.stack([framed.pixels for pack in packs for _, framed in pack.framed()]))
        spec = (backbone or random_resnet50(place)).write(place / "models")
        passes = {f"abreast:{spec.batch}": spec.batch} | {f"bare:{batch}": batch for batch in (spec.batch, *larger)}
        taken = race(MODULE, place, ["ours", "embedder", "keras", *passes], rounds)
    for name, batch in passes.items():
        taken[name] = _at_its_pace(taken[name], sum(parts), batch)
    fastest = min(passes, key=lambda name: taken[name].seconds)
    described = f"{spec.name}, {spec.image_size} px, weights of {spec.weights.origin}"
    return Result(
        (*(_row(name, each, sum(parts)) for name, each in taken.items()), _row("ceiling", taken[fastest], sum(parts))),
        (
            *_beside_passes(f"features, {described}, the stage", parts, spec.batch, taken),
            *(_said(name, taken[name], sum(parts)) for name in taken),
            Line("features, ceiling", _name(fastest)),
            _loading(taken["ours"]),
        ),
    )


def _beside_passes(what: str, parts: Sequence[int], batch: int, taken: dict[str, Taken]) -> list[Line]:
    """Ours beside bare passes of the same size, by the faster way, for each pass and for each picture."""
    count, made = sum(parts), sum(-(-part // batch) for part in parts)
    ours, bound = taken["ours"].seconds, min(taken[f"{way}:{batch}"].seconds for way in WAYS)
    each, bare = 1e3 * ours / made, 1e3 * bound * batch / count
    padding = made * batch / count - 1
    said = f"{made * batch:,} pictures are computed for {count:,} in {counted(len(parts), 'part', 'parts')}"
    goal = f"{_GOAL} × the bare pass"
    return [
        line(f"{what}, each pass of {batch}", each, bare, "ms", goal, each <= _GOAL * bare),
        line("the same for each picture, padding included", 1e3 * ours / count, 1e3 * bound / count, "ms", digits=2),
        Line("its padding", f"{said}, {padding:.1%} more"),
    ]


def _at_its_pace(taken: Taken, count: int, batch: int) -> Taken:
    """The seconds of `count` pictures at the pace of whole batches; the last batch was filled up."""
    computed = -(-count // batch) * batch
    return replace(taken, seconds=taken.seconds * count / computed)


def _said(name: str, taken: Taken, count: int) -> Line:
    return Line(f"features, {_name(name)}", f"{count / taken.seconds:,.0f} pictures/s, {taken.peak_mib:,.0f} MiB")


def _row(name: str, taken: Taken, count: int) -> Row:
    return Row("features", _name(name), taken.seconds, count / taken.seconds, taken.peak_mib)


def _loading(ours: Taken) -> Line:
    first = max(0.0, ours.first - ours.seconds)
    parts = f"Python {ours.opening:.1f}, the libraries, the model and its first pass {first:.1f}"
    said = f"{ours.opening + first:.1f} s: {parts}"
    return Line("loading of features, before its first picture", said)


def _name(contender: str) -> str:
    return contender.replace(":", " ")
