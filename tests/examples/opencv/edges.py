"""Draws the outlines of every picture below /pfs/images, with the filter of Pillow's that FILTER names."""

import os

from PIL import Image, ImageFilter

FILTER = getattr(ImageFilter, os.environ.get("FILTER", "FIND_EDGES"))

for directory, _, names in os.walk("/pfs/images"):
    for name in names:
        with Image.open(os.path.join(directory, name)) as picture:
            outlines = picture.convert("L").filter(FILTER)
        outlines.save(os.path.join("/pfs/out", os.path.splitext(name)[0] + ".png"))
        print(f"{name}: {outlines.width} x {outlines.height}")
