"""The words for a distance. Only the standard library: the command says them, too, and starts without NumPy."""

from dataclasses import dataclass

SAME, NEAR_COPY, VERY_SIMILAR, SIMILAR, WEAK = "same picture", "near copy", "very similar", "similar", "weak"


@dataclass(frozen=True)
class DistanceLimits:
    """The largest distances at which pictures are called so, in one metric. changed: of a picture from its copies that
    are compressed, scaled, cropped a little, or of other brightness or contrast."""

    changed: float
    very_similar: float
    similar: float

    def likeness(self, distance: float) -> str:
        """The word for a picture that is no copy."""
        if distance <= self.very_similar:
            return VERY_SIMILAR
        return SIMILAR if distance <= self.similar else WEAK


def likeness(limits: DistanceLimits | None, distance: float, same: bool) -> str | None:
    """How alike two pictures are, in a word, by their distance alone; None without limits, except for one and the
    same picture."""
    if same:
        return SAME
    return None if limits is None else limits.likeness(distance)
