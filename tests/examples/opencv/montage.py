"""Puts pictures side by side: montage.py -geometry WIDTHxHEIGHT+GAP PICTURE... SHEET"""

import re
import sys

from PIL import Image

_, _, geometry, *pictures, sheet = sys.argv
width, height, gap = map(int, re.split("[x+]", geometry))
canvas = Image.new("RGB", (len(pictures) * (width + gap), height), "skyblue")
for place, name in enumerate(pictures):
    with Image.open(name) as picture:
        canvas.paste(picture.convert("RGB").resize((width, height)), (place * (width + gap), 0))
canvas.save(sheet)
