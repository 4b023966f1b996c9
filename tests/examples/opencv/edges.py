"""Draws the outlines of every picture below /pfs/images."""

import os

from PIL import Image, ImageFilter

for directory, _, names in os.walk("/pfs/images"):
    for name in names:
        with Image.open(os.path.join(directory, name)) as picture:
            outlines = picture.convert("L").filter(ImageFilter.FIND_EDGES)
        outlines.save(os.path.join("/pfs/out", os.path.splitext(name)[0] + ".png"))
