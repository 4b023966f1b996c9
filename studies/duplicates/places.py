"""Photographs of one place that are not copies: views that overlap, and the same view in another light. Made of whole
photographs by name; knows no set's use."""

from collections.abc import Iterator, Mapping
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

PHOTOGRAPHS = ("astronaut", "cat", "coffee", "hubble", "motorcycle", "retina", "rocket", "grass", "gravel", "coins")
"""Those of scikit-image that are large enough, and are of things."""

_SHARE = 0.5  # of a view, of the photograph's width and height
_SHIFTS = ((0.0, 0.5), (0.15, 0.4), (0.35, 0.6), (0.6, 0.45), (1.0, 0.5))
"""How far the views are across, as shares of a view's width, of which there is one to spare, and down, as shares of
what is left of the height."""

_LIGHTS = ("left", "right", "top", "bottom")
_SHADE = 0.45  # of the light that is left in a shadow
_SKY = 0.35  # of the height that has clouds


def views(photographs: Mapping[str, Image.Image]) -> Iterator[Image.Image]:
    """Five views of each photograph, of one size; neighbours are shifted by 15 to 40 % of their width."""
    for image in photographs.values():
        width, height = round(image.width * _SHARE), round(image.height * _SHARE)
        for across, down in _SHIFTS:
            left, top = round(across * (image.width - width)), round(down * (image.height - height))
            yield image.crop((left, top, left + width, top + height))


def lights(photographs: Mapping[str, Image.Image]) -> Iterator[Image.Image]:
    """Each photograph with one half in the shadow, of four, and other clouds in its upper part."""
    for name, image in photographs.items():
        pixels = np.asarray(image, np.float32)
        for light in _LIGHTS:
            clouds = _clouds(image.size, Random(f"{name}/{light}"))
            lit = pixels * _shadow(image.size, light)[..., None]
            lit += (255 - lit) * clouds[..., None]
            yield Image.fromarray(np.rint(lit).clip(0, 255).astype(np.uint8))


def _shadow(size: tuple[int, int], where: str) -> NDArray[np.float32]:
    """The light at each pixel, (height, width): 1, and less and less in one half."""
    width, height = size
    ramp = np.interp(np.linspace(0, 1, width if where in ("left", "right") else height), (0.35, 0.65), (_SHADE, 1.0))
    ramp = ramp[::-1] if where in ("right", "bottom") else ramp
    return np.broadcast_to(ramp if where in ("left", "right") else ramp[:, None], (height, width)).astype(np.float32)


def _clouds(size: tuple[int, int], lot: Random) -> NDArray[np.float32]:
    """How white each pixel becomes, (height, width), 0 to 1."""
    width, height = size
    sky = Image.new("L", size)
    for _ in range(4):
        across, down = lot.randint(width // 8, width // 4), max(2, round(height * _SKY / 5))
        left, top = lot.randint(-across // 2, width - across // 2), lot.randint(0, round(height * _SKY))
        sky.paste(140, (left, top, left + across, top + down))
    return np.asarray(sky.filter(ImageFilter.GaussianBlur(width / 40)), np.float32) / 255
