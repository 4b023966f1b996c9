"""Cron expressions: the dialect of robfig/cron as Pachyderm reads it (`src/internal/cronutil`), in UTC.

Five fields, `@daily` and its like, `@every 1h30m`, `@never`. Does not wait, and knows nothing of the scheduled work.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from cronsim import CronSim, CronSimError

from localpachd.errors import PachError

_SECOND = 1_000_000_000
_TOLERATED = 60 * _SECOND
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = 5
_FIELD = re.compile(r"[\d*?/,a-z-]+", re.IGNORECASE)
_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": _SECOND, "m": 60 * _SECOND,
          "h": 3600 * _SECOND}  # fmt: skip
_LONGEST = (1 << 63) - 1
"""Nanoseconds, as in the original."""
_LENGTH = re.compile(r"\+?((?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+")
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """Points in time: every `period` ns or, if that is 0, those of the five `fields`; none without either."""

    fields: str = ""
    period: int = 0

    def next(self, after: int) -> int | None:
        """The first point after a time, in whole seconds; None if there is none. Both in ns since the epoch, UTC."""
        if self.period:
            return (after + self.period) // _SECOND * _SECOND
        if not self.fields:
            return None
        try:
            found = next(CronSim(self.fields, _EPOCH + timedelta(seconds=after // _SECOND)))
        except (StopIteration, OverflowError):
            return None
        return int((found - _EPOCH).total_seconds()) * _SECOND

    def is_ahead(self, last: int, now: int) -> bool:
        """Whether the last point that was used lies so far in the future that the clock must have been ahead then:
        after the next point, and by more than a minute. Steps of a second, as time servers make them, are none."""
        if last <= now + _TOLERATED:
            return False
        following = self.next(now + _TOLERATED)
        return following is not None and last > following


@lru_cache(maxsize=1024)
def parse(expression: str) -> CronSchedule:
    """The schedule of an expression. Raises PachError for one that Pachyderm refuses."""
    text = expression.strip()
    if not text:
        raise PachError("Empty spec string")
    if text == "@never":
        return CronSchedule()
    if text.startswith("@every "):
        return CronSchedule(period=_period(text))
    if text.startswith("@"):
        if text not in _NAMED:
            raise PachError(f"Unrecognized descriptor: {text}")
        return CronSchedule(_NAMED[text])
    parts = text.split()
    if len(parts) != _FIELDS:
        raise PachError(f"Expected exactly {_FIELDS} fields, found {len(parts)}: {text}")
    for part in parts:
        # The library knows more marks (L, W, #) than the original does.
        if not _FIELD.fullmatch(part) or re.search(r"\b\d*L\b|\bLW\b", part, re.IGNORECASE):
            raise PachError(f"Failed to parse {part!r} in {text!r}")
    fields = " ".join(part.replace("?", "*") for part in (*parts[:4], _weekdays(parts[4], text)))
    try:
        CronSim(fields, _EPOCH)
    except (CronSimError, ValueError) as error:  # ValueError: a number of thousands of digits
        raise PachError(f"{error} in {text!r}") from error
    return CronSchedule(fields)


def _weekdays(part: str, text: str) -> str:
    """The last field, in which only 0 is Sunday, as in the original: the library accepts 7, too."""
    if "7" in re.split(r"[,/-]", re.sub(r"/\d+", "", part)):
        raise PachError(f"End of range (7) above maximum (6): {text}")
    return re.sub(r"(?<![\w-])(\w+)/", r"\1-6/", part)


def _period(text: str) -> int:
    length = text.removeprefix("@every ").strip()
    if not _LENGTH.fullmatch(length):
        raise PachError(f"Failed to parse duration {text}: invalid duration {length!r}")
    exact = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(length))
    if exact > _LONGEST:
        raise PachError(f"Failed to parse duration {text}: invalid duration {length!r}")
    total = int(exact)
    return max(_SECOND, total // _SECOND * _SECOND)
