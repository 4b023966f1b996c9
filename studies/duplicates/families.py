"""Pictures and changed copies of them, as files: each original and its copies are a family. Knows no program that finds
copies.

Parts of one photograph that share no pixels are originals of their own: they look alike and are not copies.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageFont, ImageOps

from stages.backbone.photographs import holds_enough

ORIGINAL = ""
"""The change of an original."""

_QUALITY = 90  # of a copy in JPEG, unless the change is the quality
_TILES = 2  # a photograph is cut into so many columns, and rows
_EVERY = 4  # of the drawings, one of so many has copies


@dataclass(frozen=True, slots=True)
class Base:
    """An original picture, RGB. `whole`: the photograph or the drawing that it is a part of; `copied`: it has copies,
    and is not there only to be confused with others."""

    name: str
    image: Image.Image
    whole: str
    copied: bool = True


@dataclass(frozen=True, slots=True)
class Member:
    """A picture of a family, in a file: the family's number, the change that made it, the whole that it is from."""

    path: Path
    family: int
    change: str
    whole: str


Change = Callable[[Image.Image, Random], Image.Image]


def tiles(photographs: Mapping[str, Image.Image]) -> Iterator[Base]:
    """The parts of photographs in a grid, without those that hold next to nothing."""
    for name, whole in photographs.items():
        width, height = whole.width // _TILES, whole.height // _TILES
        for number in range(_TILES**2):
            left, top = number % _TILES * width, number // _TILES * height
            tile = whole.crop((left, top, left + width, top + height))
            if holds_enough(tile):
                yield Base(f"{name} {number}", tile, name)


def drawn(images: Sequence[Image.Image]) -> Iterator[Base]:
    """Drawings, each a whole; one of four has copies."""
    for number, image in enumerate(images):
        yield Base(f"drawing {number}", image, f"drawing {number}", copied=number % _EVERY == 0)


def write(bases: Sequence[Base], directory: Path) -> list[Member]:
    """Writes the originals (PNG) and their copies (JPEG, but for one change) into a directory, which must exist; the
    files depend on the bases and the version of Pillow alone."""
    members = []
    for family, base in enumerate(bases):
        path = directory / f"{family:04d}.png"
        base.image.save(path)
        members.append(Member(path, family, ORIGINAL, base.whole))
        for number, (change, make) in enumerate(CHANGES.items() if base.copied else ()):
            made = make(base.image, Random(f"{base.name}/{change}"))
            path = directory / f"{family:04d}-{number:02d}{'.gif' if made.mode == 'P' else '.jpg'}"
            made.save(path, quality=made.info.get("quality", _QUALITY))
            members.append(Member(path, family, change, base.whole))
    return members


def _compressed(image: Image.Image, _: Random, quality: int) -> Image.Image:
    copy = image.copy()
    copy.info = {"quality": quality}
    return copy


def _few_colours(image: Image.Image, _: Random) -> Image.Image:
    return image.quantize(64)


def _scaled(image: Image.Image, _: Random, across: float, down: float) -> Image.Image:
    size = max(1, round(image.width * across)), max(1, round(image.height * down))
    return image.resize(size, Image.Resampling.LANCZOS)


def _cropped(image: Image.Image, lot: Random, share: float) -> Image.Image:
    """Without this share of the width and of the height, taken from all edges at random."""
    width, height = round(image.width * (1 - share)), round(image.height * (1 - share))
    left, top = lot.randint(0, image.width - width), lot.randint(0, image.height - height)
    return image.crop((left, top, left + width, top + height))


def _rotated(image: Image.Image, _: Random, degrees: float) -> Image.Image:
    """The corners are filled with white, and what is turned out of the picture is lost."""
    return image.rotate(degrees, Image.Resampling.BICUBIC, fillcolor="white")


def _turned(image: Image.Image, _: Random, how: Image.Transpose) -> Image.Image:
    return image.transpose(how)


def _enhanced(image: Image.Image, _: Random, what: type, by: float) -> Image.Image:
    made: Image.Image = what(image).enhance(by)
    return made


def _watermarked(image: Image.Image, _: Random) -> Image.Image:
    """Words across the middle, half transparent."""
    layer = Image.new("RGBA", image.size)
    font = ImageFont.load_default(max(8, image.width // 6))
    middle = image.width / 2, image.height / 2
    ImageDraw.Draw(layer).text(
        middle, "Sample", (255, 255, 255, 128), font, "mm", stroke_width=1, stroke_fill=(0, 0, 0, 128)
    )
    return Image.alpha_composite(image.convert("RGBA"), layer).convert("RGB")


def _captioned(image: Image.Image, _: Random) -> Image.Image:
    """A white strip below, with words."""
    strip = max(10, image.height // 8)
    made = Image.new("RGB", (image.width, image.height + strip), "white")
    made.paste(image)
    where = image.width / 2, image.height + strip / 2
    ImageDraw.Draw(made).text(where, "A holiday picture", "black", ImageFont.load_default(strip * 0.6), "mm")
    return made


def _bordered(image: Image.Image, _: Random) -> Image.Image:
    return ImageOps.expand(image, max(1, min(image.size) // 20), "black")


def _noisy(image: Image.Image, lot: Random) -> Image.Image:
    bytes_ = lot.randbytes(image.width * image.height * 3)
    return Image.blend(image, Image.frombytes("RGB", image.size, bytes_), 0.15)


def _blurred(image: Image.Image, _: Random) -> Image.Image:
    return image.filter(ImageFilter.GaussianBlur(min(image.size) / 100))


def _several(image: Image.Image, lot: Random) -> Image.Image:
    """What happens to a picture that is passed on: cropped by 5 %, scaled to 1/2, brighter, compressed strongly."""
    made = _scaled(_cropped(image, lot, 0.05), lot, 0.5, 0.5)
    return _compressed(ImageEnhance.Brightness(made).enhance(1.15), lot, 50)


CHANGES: dict[str, Change] = {
    **{f"JPEG, quality {each}": partial(_compressed, quality=each) for each in (90, 50, 20, 10)},
    "GIF of 64 colours": _few_colours,
    **{
        f"scaled to {name}": partial(_scaled, across=by, down=by)
        for name, by in (("1/2", 0.5), ("1/4", 0.25), ("2", 2.0))
    },
    "narrower by 15 %": partial(_scaled, across=0.85, down=1.0),
    **{f"cropped by {each} %": partial(_cropped, share=each / 100) for each in (5, 10, 20, 30)},
    **{f"rotated by {each}°": partial(_rotated, degrees=each) for each in (1, 3, 10)},
    "turned by 90°": partial(_turned, how=Image.Transpose.ROTATE_90),
    "turned by 180°": partial(_turned, how=Image.Transpose.ROTATE_180),
    "mirrored": partial(_turned, how=Image.Transpose.FLIP_LEFT_RIGHT),
    "darker, 0.7": partial(_enhanced, what=ImageEnhance.Brightness, by=0.7),
    "brighter, 1.3": partial(_enhanced, what=ImageEnhance.Brightness, by=1.3),
    "less contrast, 0.6": partial(_enhanced, what=ImageEnhance.Contrast, by=0.6),
    "more contrast, 1.5": partial(_enhanced, what=ImageEnhance.Contrast, by=1.5),
    "grey": partial(_enhanced, what=ImageEnhance.Color, by=0.0),
    "blurred": _blurred,
    "noise": _noisy,
    "watermark": _watermarked,
    "caption below": _captioned,
    "black border": _bordered,
    "cropped, scaled, brighter": _several,
}
"""The changes of a copy, by name; percentages are of the width and of the height."""
