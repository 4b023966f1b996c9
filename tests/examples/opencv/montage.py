"""Puts pictures onto a sheet, a row for each directory: montage.py -geometry WIDTHxHEIGHT+GAP PICTURE... SHEET"""

import os
import re
import sys
from itertools import groupby

from PIL import Image

_, _, geometry, *pictures, sheet = sys.argv
width, height, gap = map(int, re.split("[x+]", geometry))
rows = [[*row] for _, row in groupby(pictures, os.path.dirname)]
canvas = Image.new("RGB", (max(map(len, rows)) * (width + gap), len(rows) * (height + gap)), "skyblue")
for down, row in enumerate(rows):
    for along, name in enumerate(row):
        with Image.open(name) as picture:
            tile = picture.convert("RGB").resize((width, height))
        canvas.paste(tile, (along * (width + gap), down * (height + gap)))
canvas.save(sheet)
