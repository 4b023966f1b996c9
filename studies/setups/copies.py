"""imagededup's methods at their defaults on the pictures of a directory, in the environment of copies.lock:
`copies.py PICTURES OUT.json`. A method whose weights cannot be had is left out, with the reason."""

import importlib.metadata
import json
import logging
import sys
import urllib.error
from pathlib import Path
from typing import Any

from imagededup import methods

METHODS = ("PHash", "DHash", "AHash", "WHash", "CNN")


def main(pictures: str, out: str) -> None:
    logging.disable()
    found = {name: measured(name, pictures) for name in METHODS}
    version = importlib.metadata.version("imagededup")
    Path(out).write_text(json.dumps({"version": version, "methods": found}))


def measured(name: str, pictures: str) -> dict[str, Any]:
    """The pairs of files that it finds, each once; or the reason why it cannot be used."""
    try:
        method = getattr(methods, name)(verbose=False)
    except (urllib.error.URLError, OSError) as error:
        return {"reason": str(error)}
    codes = method.encode_images(image_dir=pictures)
    duplicates = method.find_duplicates(encoding_map=codes)
    pairs = sorted({tuple(sorted((one, other))) for one, others in duplicates.items() for other in others})
    return {"pairs": pairs}


if __name__ == "__main__":
    main(*sys.argv[1:])
