"""A directory with specifications of a team's own: found from the working directory, and made from those that lookalike
ships. Knows no server, and of a specification only that it names a pipeline."""

import json
from importlib import resources
from pathlib import Path

from pipelines.errors import LookalikeError
from pipelines.specifications import optional_specs
from pipelines.specifications.pipeline_specs import SHIPPED_SPECS

NAME = "specs"
"""The name of the directory of specifications in a team's own directory."""

_TEMPLATE = resources.files("pipelines.specifications") / "template"
_FILES = {"Makefile": "Makefile", "README.md": "README.md", "gitignore": ".gitignore"}


def current() -> Path:
    """The directory of the specifications in use: `specs` in the nearest directory that has one with a specification,
    from the working directory upwards, else those that lookalike ships."""
    here = Path.cwd()
    for each in (here, *here.parents):
        if any(map(_is_specification, sorted((each / NAME).glob("*.json")))):
            return each / NAME
    return SHIPPED_SPECS


def start(directory: Path) -> list[Path]:
    """Writes the shipped specifications and overlays, a Makefile, a README and a .gitignore into a directory, which is
    created if missing; returns their paths. Raises LookalikeError, and writes nothing, if one of them is there."""
    sources = {
        directory / NAME / path.relative_to(SHIPPED_SPECS): path.read_bytes()
        for path in sorted([*optional_specs.files(SHIPPED_SPECS), *SHIPPED_SPECS.glob("overlays/*.json")])
    }
    sources |= {directory / name: (_TEMPLATE / source).read_bytes() for source, name in _FILES.items()}
    there = [path for path in sources if path.exists()]
    if there:
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise LookalikeError(
            f"{there[0]}{more} exists already, and nothing was written: name another directory, or move it away"
        )
    for path, content in sources.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return list(sources)


def _is_specification(path: Path) -> bool:
    try:
        return "pipeline" in json.loads(path.read_bytes())
    except (OSError, ValueError, TypeError):  # TypeError: a number
        return False
