"""The photographs among the labelled sets. No wheel was found with photographs in classes, so the label is the
photograph itself: other parts of it must be found. Knows no model and no framing."""

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

from PIL import Image, ImageEnhance, ImageOps

from pipelines.library.datasets import samples
from stages.backbone.photographs import PHOTOGRAPHS, open_photograph
from studies.sets.labelled import Labelled, Picture, on_white

_COMMONS = "perception/testing/images"
_SEEDS = 5  # of the queries of `parts`
_VIEWS = 8
_SHAPES = (16 / 9, 4 / 3, 3 / 2, 1.0)  # of cameras and telephones, upright or across
_AREA = (0.12, 0.3)  # of the photograph's


def parts() -> Labelled:
    """The sample pictures of `lookalike demo`: queries cut from the right of a photograph, and altered, are searched
    for among pictures cut from its left. The queries are those of several seeds, so that there are enough."""
    queries = (each for seed in range(_SEEDS) for each in _samples(seed))
    return Labelled("parts", (*_samples(0, asked=False), *queries))


def _samples(seed: int, asked: bool = True) -> Iterator[Picture]:
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        written = samples.write_samples(Path(scratch), seed)
        directory = written.queries if asked else written.library
        for path in sorted(directory.iterdir()):
            yield Picture(on_white(path), samples.label_of(path.name), directory.name, asked)


def views(wheels: Path) -> Labelled:
    """Small parts of photographs, in the shapes of cameras' pictures, that may overlap: mirrored or not, brighter or
    darker, and compressed. The label is the photograph."""
    each = [(whole, label, number) for label, whole in every(wheels).items() for number in range(_VIEWS)]
    return Labelled("views", tuple(Picture(_view(whole, label, number), label) for whole, label, number in each))


def every(wheels: Path) -> dict[str, Image.Image]:
    """All photographs that come in wheels, RGB, by name."""
    found = {label: open_photograph(label).convert("RGB") for label in PHOTOGRAPHS}
    for path in sorted((wheels / _COMMONS).glob("*.jpg")):
        found[f"commons {path.stem}"] = on_white(path)
    return found


def _view(photograph: Image.Image, label: str, number: int) -> Image.Image:
    lot = Random(f"{label}/{number}")
    shape = _SHAPES[number % len(_SHAPES)] ** (1 if number < _VIEWS // 2 else -1)
    area = lot.uniform(*_AREA) * photograph.width * photograph.height
    width = min(round((area * shape) ** 0.5), photograph.width)
    height = min(round((area / shape) ** 0.5), photograph.height)
    left, top = lot.randint(0, photograph.width - width), lot.randint(0, photograph.height - height)
    view = photograph.crop((left, top, left + width, top + height))
    if lot.random() < 0.5:
        view = ImageOps.mirror(view)
    view = ImageEnhance.Brightness(view).enhance(lot.uniform(0.6, 1.4))
    view = ImageEnhance.Color(view).enhance(lot.uniform(0.3, 1.5))
    compressed = io.BytesIO()
    view.save(compressed, "JPEG", quality=lot.randint(40, 90))
    return Image.open(compressed).convert("RGB")
