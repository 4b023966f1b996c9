"""What a camera wrote about a picture, and what that says for people. Damaged notes say nothing. Knows no files."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

_LONGEST_NAME = 80  # characters of a camera or lens
_LONGEST_TEXT = 1000  # characters of one of EXIF's texts that are looked at
_DATE = re.compile(r"(\d{4})[:-](\d\d)[:-](\d\d)[ T](\d\d):(\d\d):(\d\d)", re.ASCII)
_DECIMALS = 7  # of degrees: a centimetre
_MOST_DEGREES = {"N": 90, "S": 90, "E": 180, "W": 180}


class CameraNotes(NamedTuple):
    """The values of EXIF's DateTimeOriginal, Make, Model and LensModel, and of GPS's LatitudeRef, Latitude,
    LongitudeRef and Longitude, as they are in the file: of any types; "" or () without one."""

    date: Any = ""
    make: Any = ""
    model: Any = ""
    lens_model: Any = ""
    latitude_of: Any = ""
    latitude: Any = ()
    longitude_of: Any = ""
    longitude: Any = ()

    @property
    def taken(self) -> str:
        """The date in ISO 8601, YYYY-MM-DDTHH:MM:SS; "" if it is not valid. Cameras without a set clock, and some
        programs, write such."""
        found = _DATE.match(str(self.date))
        if not found:
            return ""
        try:
            return datetime(*map(int, found.groups())).isoformat()  # type: ignore[arg-type]
        except ValueError:
            return ""

    @property
    def camera(self) -> str:
        """The make and the model in one text, without the make if the model begins with it, and cut if it is very
        long."""
        made, modelled = _printable(self.make), _printable(self.model)
        text = modelled if modelled.casefold().startswith(made.casefold()) else f"{made} {modelled}"
        return text[:_LONGEST_NAME].strip()

    @property
    def lens(self) -> str:
        """The lens's model, cut if it is very long."""
        return _printable(self.lens_model)[:_LONGEST_NAME].strip()

    @property
    def place(self) -> tuple[float, float] | None:
        """The latitude and longitude in degrees, south and west below zero.

        None if either is missing, damaged or not on Earth, or does not name its hemisphere: half of these would lie in
        the wrong one. None for 0, 0, out at sea, which devices write that do not know where they are.
        """
        latitude = _degrees(self.latitude, self.latitude_of, "NS")
        longitude = _degrees(self.longitude, self.longitude_of, "EW")
        return None if latitude is None or longitude is None or latitude == longitude == 0 else (latitude, longitude)


NO_NOTES = CameraNotes()


def _degrees(parts: Sequence[Any], of: Any, hemispheres: str) -> float | None:
    """Degrees, minutes and seconds as one number, with the sign of their hemisphere; None if they are not valid."""
    letter = _printable(of.decode("latin-1") if isinstance(of, bytes) else of)[:1].upper()
    try:
        degrees, minutes, seconds = (float(each) for each in parts)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    most = _MOST_DEGREES.get(letter, 0) if letter in hemispheres else 0
    if not (0 <= degrees <= most and 0 <= minutes <= 60 and 0 <= seconds <= 60):  # nor NaN, a number over zero
        return None
    found = round(math.fsum((degrees, minutes / 60, seconds / 3600)), _DECIMALS)
    return None if not most or found > most else -found if letter in "SW" and found else found


def _printable(text: Any) -> str:
    """A text of EXIF, a character for each byte, without NULs, controls and spaces around it; "" for anything else. It
    should be ASCII; cameras that write other characters write UTF-8."""
    if not isinstance(text, str):
        return ""
    try:
        content = text.encode("latin-1").decode()
    except UnicodeError:  # of another code
        content = text
    return "".join(each for each in content[:_LONGEST_TEXT] if each.isprintable()).strip()
