"""map.py IN OUT: writes how often each word occurs in the pages below IN to OUT/<directory>-<page>/<word>."""

import collections
import pathlib
import re
import sys

source, target = map(pathlib.Path, sys.argv[1:])
for page in source.glob("*/*"):
    counts = collections.Counter(re.findall(r"\w+", page.read_text()))
    there = target / f"{page.parent.name}-{page.stem}"
    there.mkdir(parents=True)
    for word, count in counts.items():
        (there / word).write_text(f"{count}\n")
