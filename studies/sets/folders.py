"""A labelled set of the user's own: a folder for each label. Knows no model and no framing."""

from pathlib import Path

from PIL import Image

from studies.sets.labelled import Labelled, Picture, on_white

_LONGEST = 512  # pixels; no backbone takes more, and a set is held in memory
_ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif")


def own(directory: Path) -> Labelled:
    """The pictures below a directory, named as it is, each labelled by its folder."""
    paths = sorted(path for path in directory.rglob("*") if path.suffix.lower() in _ENDINGS)
    pictures = tuple(Picture(_small(path), str(path.parent.relative_to(directory))) for path in paths)
    return Labelled(directory.resolve().name, pictures)


def _small(path: Path) -> Image.Image:
    picture = on_white(path)
    picture.thumbnail((_LONGEST, _LONGEST), Image.Resampling.LANCZOS)
    return picture
