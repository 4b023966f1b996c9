"""The modules of targets, each with the packages whose coverage guides the fuzzer. Imports a module when it is asked
for its targets: what is imported before atheris is ready is not counted."""

import importlib
from collections.abc import Mapping, Sequence

from tests.fuzz.target import Target

PACKAGES: Mapping[str, Sequence[str]] = {
    "archives": ("stages", "gzip", "tarfile", "zipfile"),
    "bundles": ("pipelines", "tarfile"),
    "datums": ("stages", "gzip", "tarfile", "zipfile"),
    "globs": ("speclang",),
    "pictures": ("stages", "PIL"),
    "questions": ("stages",),
    "requests": ("localpachd", "speclang"),
    "specs": ("localpachd", "pipelines", "speclang"),
    "tables": ("stages",),
    "trainings": ("stages",),
    "texts": ("localpachd", "speclang", "stages"),
}


def targets(module: str) -> Sequence[Target]:
    """The targets of a module of `tests/fuzz/targets`."""
    found: Sequence[Target] = importlib.import_module(f"tests.fuzz.targets.{module}").TARGETS
    return found
