"""The real photographs that ship inside the scikit-image wheel, which samples are cut from and models are tried on."""

from __future__ import annotations

from importlib import resources
from io import BytesIO

import numpy as np
from PIL import Image

from stages.datum.contract import StageError

PHOTOGRAPHS = {
    "astronaut": "astronaut.png",
    "brick": "brick.png",
    "camera": "camera.png",
    "cat": "chelsea.png",
    "clock": "clock_motion.png",
    "coffee": "coffee.png",
    "coins": "coins.png",
    "grass": "grass.png",
    "gravel": "gravel.png",
    "hubble": "hubble_deep_field.jpg",
    "microaneurysms": "microaneurysms.png",
    "moon": "moon.png",
    "motorcycle": "motorcycle_left.png",
    "page": "page.png",
    "retina": "retina.jpg",
    "rocket": "rocket.jpg",
    "text": "text.png",
    "tissue": "ihc.png",
}
"""Label of each photograph and its file in the wheel's `skimage/data`: all the real photographs that are there.

The other picture files of that directory are drawings and test patterns; `motorcycle_right.png`, which shows the scene
of `motorcycle_left.png` again and would put into queries what library pictures show; and `cell.png`, whose left part is
empty: 1 of 100 crops of it passes `holds_enough`.

What scikit-image 0.26 documents about them, in the docstrings of `skimage.data`: CC0 or the public domain for all but
five. `coins` and `tissue` are without known copyright restrictions; `motorcycle` is from the Middlebury 2014 stereo
benchmark, whose authors it names; of the rights in `moon` and `page` it says nothing. The wheel's LICENSE.txt makes no
exception of pictures from its BSD-3-Clause. All are cut from the installed wheel; of their crops we distribute only the
thumbnails in `docs/result-sheet.png`. The small pictures in `docs/tutorial-montage.png` are CC0 or the public domain.
"""

CELLS = 8
"""A crop is divided into as many rows, and columns, of cells to find how much it holds."""

CONTRAST = 0.02
"""A cell of less contrast holds nothing: the standard deviation of its grey values, as a share of white."""

FILLED = 0.2
"""The smallest share of a crop's cells that hold something."""

_GREY_SIDE = 64  # pixels of a crop when it is measured


def open_photograph(label: str) -> Image.Image:
    """The photograph of this label, in its original size, as RGB, or L if it is grey.

    Read straight from the installed package: `skimage.data` would fetch missing files from the network.
    """
    file = resources.files("skimage") / "data" / PHOTOGRAPHS[label]
    try:
        content = file.read_bytes()
    except OSError as error:
        raise StageError(
            f"the installed scikit-image lacks its photograph {PHOTOGRAPHS[label]} ({error}); "
            "install the version that requirements.lock names"
        ) from error
    with Image.open(BytesIO(content)) as image:
        return image.convert("L" if image.mode == "L" else "RGB")


def holds_enough(crop: Image.Image) -> bool:
    """Whether a fifth of the crop's cells (`FILLED` of `CELLS` × `CELLS`) have some contrast (`CONTRAST`).

    Measured on the crop in grey, 64 × 64 pixels, as it is stored: equal steps look about equal, in the dark too.
    """
    grey = np.asarray(crop.convert("L").resize((_GREY_SIDE, _GREY_SIDE), Image.Resampling.BOX), np.float64) / 255
    side = _GREY_SIDE // CELLS
    contrast = grey.reshape(CELLS, side, CELLS, side).std(axis=(1, 3))
    return bool((contrast >= CONTRAST).mean() >= FILLED)
