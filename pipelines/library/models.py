"""`lookalike model push`: a backbone is made and put into the repo `models`, unless it is there already.

Keras is left to a process of its own: it takes seconds and hundreds of MB to import, which no other command needs.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import ImageOps

from pipelines.client.repository import Put, Repository
from pipelines.errors import LookalikeError
from pipelines.library import samples
from stages.backbonespec import MODEL_FILE, SPEC_FILE, BackboneSpec, parse_spec
from stages.contract import StageError

REPO = "models"
Precision = Literal["float32", "mixed_float16", "mixed_bfloat16"]  # those of stages.precision, which needs Keras
_USUAL_SIZE = 224  # pixels; stages.zoo's own default, which this process cannot ask for without Keras
_CROPS = 10  # of each sample photograph
_FILES = (MODEL_FILE, SPEC_FILE)


@dataclass(frozen=True, slots=True)
class Pushed:
    """The outcome of a push."""

    spec: BackboneSpec  # of the backbone that master now holds
    replaced: BackboneSpec | None  # of another one that it held before; None if it held none
    commit: str  # id of the new commit; "" if the backbone was there already
    change: str = ""  # the effect of its precision on neighbours, in words; "" for float32


def push(
    models: Repository,
    source: str,
    image_size: int | None = None,
    weights: Path | None = None,
    precision: Precision = "float32",
) -> Pushed:
    """Makes the backbone `source` (a name, or a .keras file) and puts it at the head of the repo's master.

    image_size: side of the pictures in pixels, for a named backbone; None for the usual one. weights: a file to take
    a named backbone's weights from. precision: what a named one computes in, see stages.precision. Both files go in as
    one commit, so that no job sees one without the other; if the same backbone is there, nothing is written. Raises
    LookalikeError if it cannot be made or the repo is missing.
    """
    with tempfile.TemporaryDirectory(prefix="lookalike-model-") as directory:
        options = [] if image_size is None else [f"--image-size={image_size}"]
        options += [] if weights is None else [f"--weights={weights}"]
        if precision != "float32":
            pictures = Path(directory) / "samples.npy"
            _write_samples(pictures, image_size or _USUAL_SIZE)
            options += [f"--precision={precision}", f"--compare={pictures}"]
        spec, said = make(source, options, Path(directory))
        return replace(put(models, spec, Path(directory)), change=said)


def make(source: str, options: Sequence[str], directory: Path) -> tuple[BackboneSpec, str]:
    """Writes the two files of a backbone into the directory with the program stages.zoo and these options.

    Returns the description and the program's output. Raises LookalikeError if it fails.
    """
    # -P: a folder named stages in the current directory must not be imported instead of ours.
    command = [sys.executable, "-P", "-m", "stages.zoo", f"--out={directory}", *options]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([*command, "--", source], env=quiet, capture_output=True, text=True, errors="replace")
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise LookalikeError(said[-1] if said else f"making the backbone ended with status {done.returncode}")
    return parse_spec((directory / SPEC_FILE).read_bytes()), done.stdout.strip()


def _write_samples(path: Path, side: int) -> None:
    """Crops of every sample photograph, side × side, to compare two precisions on."""
    crops = (
        crop
        for label in samples.PHOTOGRAPHS
        for crop in islice(samples.library_crops(samples.open_photograph(label), label, 0), _CROPS)
    )
    np.save(path, np.stack([np.asarray(ImageOps.fit(crop.convert("RGB"), (side, side))) for crop in crops]))


def put(models: Repository, spec: BackboneSpec, directory: Path) -> Pushed:
    """Puts the two files in the directory, which `spec` describes, unless master holds the same backbone."""
    before = held(models)
    if before is not None and before.sha256 == spec.sha256 and same_model(_read(models, MODEL_FILE), directory):
        return Pushed(before, None, "")
    commit = models.write([Put(f"/{name}", directory / name) for name in _FILES])
    return Pushed(spec, before, commit)


def held(models: Repository) -> BackboneSpec | None:
    """The backbone that the repo's master describes; None if it is missing or unreadable."""
    return parse_or_none(_read(models, SPEC_FILE))


def _read(models: Repository, name: str) -> bytes | None:
    return models.read(f"/{name}") if models.exists(f"/{name}") else None


def parse_or_none(description: bytes | None) -> BackboneSpec | None:
    """The description in master's backbone.json; None if it is missing, or unreadable and to be replaced."""
    try:
        return None if description is None else parse_spec(description)
    except StageError:
        return None


def same_model(held: bytes | None, directory: Path) -> bool:
    """Whether master's backbone.keras is the one in the directory.

    Asked besides the identity: files put there by hand need not be what the description beside them says.
    """
    return held == (directory / MODEL_FILE).read_bytes()
