"""What may be wrong with single pictures, as their traits, sizes and distances show: lists to look at.

No list says that a picture should go: a photograph of the night is dark, and a portrait blurs what is behind. The
limits are chosen in docs/quality.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.datum.text_format import distance
from stages.record.sources import Source

_FLAT = 0.06  # contrast
_BLURRED = 0.2  # sharpness
_DARK, _BRIGHT = 0.15, 0.88  # brightness
_LIGHTS, _LINES = 0.5, 0.3  # contrast: dark pictures of more have lights in them, and bright ones text or lines
_TIMES_SMALLER = 10  # pixels, against the median
_ELONGATED = 3  # the longer side against the shorter one
FAR = 1.5  # the distance to the nearest picture, against the median
_FEWEST = 20  # pictures that have a usual size or distance

OUTLIER = "outlier"

Values = NDArray[np.float64]


@dataclass(frozen=True)
class PictureMeasures:
    """The measures of n pictures, each (n,). brightness, contrast, sharpness: of stages.decode.picture_traits, float64.
    widths, heights: in pixels, integers, of the largest file of each. nearest: the distance to the nearest other
    picture, float64, exact where it is more than FAR times the usual one; None if it is not known, NaN for a picture
    without another. usual: the median of these distances. side: of the squares in which pictures are compared, in
    pixels."""

    brightness: Values
    contrast: Values
    sharpness: Values
    widths: NDArray[np.int64]
    heights: NDArray[np.int64]
    nearest: Values | None = None
    usual: float = 0.0
    side: int = 0


class FlawedPicture(NamedTuple):
    """A picture in a list. row: of the measures. said: its value, as a phrase. To be shown it needs its id and its
    sources, and the page shows its thumbnail, a JPEG file, if there is one."""

    row: int
    said: str
    id: str = ""
    sources: Sequence[Source] = ()
    thumbnail: bytes | None = None


class PictureFlaw(NamedTuple):
    """Pictures that one thing may be wrong with: the furthest beyond the limit first, then by row. name: for programs.
    title: for people. limit: the rule, in words and numbers. note: why none were judged, "" if they were."""

    name: str
    title: str
    limit: str
    pictures: Sequence[FlawedPicture]
    note: str = ""


def find_flaws(given: PictureMeasures) -> list[PictureFlaw]:
    """A list for each flaw, in a fixed order, also if it is empty."""
    return [*_of_traits(given), *_of_shapes(given), *_of_distances(given)]


def _of_traits(given: PictureMeasures) -> Iterator[PictureFlaw]:
    flat = given.contrast < _FLAT
    yield _flaw(
        "blurred",
        "Blurred",
        f"sharpness below {_BLURRED} on a scale of 0 to 1, at the size at which pictures are compared; flat pictures, "
        "and smaller ones, which are enlarged, are not judged",
        ~flat & (given.sharpness < _BLURRED) & (np.maximum(given.widths, given.heights) >= given.side),
        given.sharpness,
        "sharpness {:.2f}",
    )
    yield _flaw(
        "dark",
        "Dark",
        f"mean brightness below {_DARK} on a scale of 0 (black) to 1 (white), and contrast below {_LIGHTS}: "
        "dark pictures with lights in them are not listed",
        ~flat & (given.contrast < _LIGHTS) & (given.brightness < _DARK),
        given.brightness,
        "brightness {:.2f}",
    )
    yield _flaw(
        "bright",
        "Bright",
        f"mean brightness above {_BRIGHT} on a scale of 0 (black) to 1 (white), and contrast below {_LINES}: "
        "pages with dark text are not listed",
        ~flat & (given.contrast < _LINES) & (given.brightness > _BRIGHT),
        given.brightness,
        "brightness {:.2f}",
        falling=True,
    )
    yield _flaw(
        "flat",
        "Without content",
        f"contrast below {_FLAT} on a scale of 0 to 1: nearly one shade everywhere",
        flat,
        given.contrast,
        "contrast {:.2f}",
    )


def _of_shapes(given: PictureMeasures) -> Iterator[PictureFlaw]:
    areas = given.widths.astype(np.float64) * given.heights
    if np.count_nonzero(areas) < _FEWEST:
        yield _not_judged("size", "Of an unusual size", f"fewer than {_FEWEST} pictures have no usual size")
    else:
        usual = float(np.median(areas[areas > 0]))
        times = np.where(areas > 0, np.maximum(areas, 1) / usual, 1.0)
        odd = (times < 1 / _TIMES_SMALLER) | (times > _TIMES_SMALLER)
        yield _flaw(
            "size",
            "Of an unusual size",
            f"fewer than a tenth, or more than {_TIMES_SMALLER} times, of the pixels that are usual in the library: "
            f"its median is {usual / 1e6:.3g} megapixels",
            odd,
            np.abs(np.log(times)),
            "{} × {} pixels",
            falling=True,
            shown=(given.widths, given.heights),
        )
    shorter = np.maximum(np.minimum(given.widths, given.heights), 1)
    ratio = np.maximum(given.widths, given.heights) / shorter
    yield _flaw(
        "shape",
        "Of an unusual shape",
        f"the longer side is more than {_ELONGATED} times the shorter one",
        ratio > _ELONGATED,
        ratio,
        "{} × {} pixels",
        falling=True,
        shown=(given.widths, given.heights),
    )


def _of_distances(given: PictureMeasures) -> Iterator[PictureFlaw]:
    known = np.nan_to_num(np.empty(0) if given.nearest is None else given.nearest, nan=0.0)
    if given.nearest is None or np.count_nonzero(known) < _FEWEST:
        why = "the nearest of each picture is not known"
        few = f"fewer than {_FEWEST} pictures have no usual distance"
        yield _not_judged(OUTLIER, "Unlike all others", why if given.nearest is None else few)
        return
    usual = given.usual
    yield _flaw(
        OUTLIER,
        "Unlike all others",
        f"the nearest other picture is more than {FAR} times as far as is usual in the library, whose median is "
        f"{distance(usual)}",
        known > FAR * usual,
        known,
        "{:.4g} from the nearest",
        falling=True,
    )


def _flaw(
    name: str,
    title: str,
    limit: str,
    listed: NDArray[np.bool_],
    values: Values,
    phrase: str,
    falling: bool = False,
    shown: tuple[NDArray[np.int64], ...] = (),
) -> PictureFlaw:
    """The pictures that are listed, by their values, from the smallest up or, falling, from the largest down. shown:
    what the phrase says of each, instead of the values."""
    rows = np.flatnonzero(listed)
    rows = rows[np.argsort(-values[rows] if falling else values[rows], kind="stable")]
    said = (phrase.format(*(each[row] for each in shown or (values,))) for row in rows)
    return PictureFlaw(name, title, limit, [*map(FlawedPicture, rows.tolist(), said)])


def _not_judged(name: str, title: str, why: str) -> PictureFlaw:
    return PictureFlaw(name, title, "", (), f"not judged: {why}")
