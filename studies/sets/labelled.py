"""A set of labelled pictures, and which of them may be found for which. Knows no particular set and no model."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, RGB, and its label. Pictures of one `house` are not searched for among each other; without one a
    picture is a house of its own. `asked`: it is searched for, and not only found."""

    image: Image.Image
    label: str
    house: str = ""
    asked: bool = True


@dataclass(frozen=True, slots=True)
class Labelled:
    """A named set."""

    name: str
    pictures: tuple[Picture, ...]

    def __len__(self) -> int:
        return len(self.pictures)

    @property
    def images(self) -> tuple[Image.Image, ...]:
        return tuple(each.image for each in self.pictures)

    @property
    def labels(self) -> NDArray[np.str_]:
        """The label of each picture."""
        return np.asarray([each.label for each in self.pictures])

    @property
    def houses(self) -> NDArray[np.str_]:
        """The house of each picture; a picture without one has its own number."""
        return np.asarray([each.house or str(number) for number, each in enumerate(self.pictures)])

    @property
    def asked(self) -> NDArray[np.intp]:
        """The numbers of the pictures that are searched for."""
        return np.flatnonzero([each.asked for each in self.pictures])

    def fewer(self, most: int) -> "Labelled":
        """The pictures of the first labels alone, as many as have about `most` pictures together, and two at least."""
        kept: set[str] = set()
        for label in dict.fromkeys(each.label for each in self.pictures):
            if len(kept) > 1 and sum(each.label in kept for each in self.pictures) >= most:
                break
            kept.add(label)
        return Labelled(self.name, tuple(each for each in self.pictures if each.label in kept))


def on_white(path: Path) -> Image.Image:
    """The picture in a file as RGB, transparency over white, as the stages decode it."""
    with Image.open(path) as file:
        drawn = file.convert("RGBA")
    white = Image.new("RGB", drawn.size, "white")
    white.paste(drawn, (0, 0), drawn)
    return white
