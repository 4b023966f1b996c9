"""Links what partition made of many batches by segment: `by_segment.py OUT FILE…`, with FILE
<batch>/<kind>/<segment>/<name>, the kind being library, vectors or thumbnails.

Makes OUT/<segment>/<kind>/<segment>/<batch>-<name>, which `stages.index` takes, and all 16 directories OUT/<segment>,
even if they are empty.
"""

import os
import sys
from pathlib import Path


def main() -> None:
    """Reads the command line."""
    out = Path(sys.argv[1])
    for digit in "0123456789abcdef":
        (out / digit).mkdir(parents=True, exist_ok=True)
    for file in map(Path, sys.argv[2:]):
        batch, kind, segment, name = file.parts[-4:]
        target = out / segment / kind / segment / f"{batch}-{name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(file, target)


if __name__ == "__main__":
    main()
