"""`lookalike model push`: a backbone is made and put into the repo `models`, unless it is there already.

Keras is left to a process of its own: it takes seconds and hundreds of MB to import, which no other command needs.
"""

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipelines.client.backbones import REPO, Precision, current_backbone
from pipelines.client.deployment import image_sizes
from pipelines.client.deployment.deployment import resize
from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import stage_processes
from pipelines.specifications.pipeline_specs import leaves
from stages.backbone.backbone_spec import MODEL_FILE, SCALE_FILE, SPEC_FILE, BackboneSpec, parse_spec
from stages.backbone.catalogue import find, unknown
from stages.datum.text_format import visible

_FILES = (MODEL_FILE, SPEC_FILE, SCALE_FILE)


@dataclass(frozen=True, slots=True)
class PushOutcome:
    """The outcome of a push."""

    spec: BackboneSpec  # of the backbone that master now holds
    replaced: BackboneSpec | None  # of another one that it held before; None if it held none
    commit: str  # id of the new commit; "" if the backbone was there already
    change: str = ""  # the effect of its precision on neighbours, in words; "" for float32
    resized: Mapping[str, int] = field(default_factory=dict)  # pipelines that have its image size now, with that before
    stopped: Sequence[Job] = ()  # jobs that still computed with the backbone before
    scale_alone: bool = False  # whether the backbone was there, and only its scale of distances was missing


def must_exist(source: str) -> None:
    """Raises LookalikeError, with the names most like it, if the source is neither a backbone's name nor a file."""
    if find(source) is None and not Path(source).is_file():
        raise LookalikeError(unknown(visible(source)))


def push(
    connection: Connection,
    source: str,
    image_size: int | None = None,
    weights: Path | None = None,
    precision: Precision = "float32",
) -> PushOutcome:
    """Makes the backbone `source` (a name, or a .keras file) and puts it at the head of master of the repo `models`; if
    it takes pictures of another size than the deployed pipelines make, it changes these with it.

    image_size: side of the pictures in pixels, for a named backbone; None for that of the deployed pipelines. weights:
    a file to take a named backbone's weights from. precision: what a named one computes in, see
    stages.backbone.precision. All files go in as one commit, so that no job sees one without the others; if the same
    backbone is there, it is not written again. Raises LookalikeError if it cannot be made or the repo is missing."""
    infos = ProjectJobs(connection).pipelines()
    sizes = image_sizes.sizes(infos.values())
    side = image_size or next((sizes[name] for name in sorted(sizes)), None)
    with tempfile.TemporaryDirectory(prefix="lookalike-model-") as scratch:
        directory = Path(scratch)
        options = [f"--image-size={side}"] if side is not None and find(source) is not None else []
        options += [] if weights is None else [f"--weights={weights}"]
        if precision != "float32":
            options.append(f"--precision={precision}")
        spec, said = make(source, options, directory)
        if image_size not in (None, spec.image_size):
            raise LookalikeError(
                f"{source} takes pictures of {spec.image_size} × {spec.image_size} pixels and no others: leave out "
                "--image-size"
            )
        resized = {name: size for name, size in sizes.items() if size != spec.image_size}
        if resized:
            pushed = _resize(connection, spec, directory, infos, resized)
        else:
            pushed = put(Repository(connection, REPO), spec, directory)
    return replace(pushed, change=said)


def _resize(
    connection: Connection, spec: BackboneSpec, directory: Path, infos: Mapping[str, Any], resized: Mapping[str, int]
) -> PushOutcome:
    """Puts a backbone of another size, and changes the pipelines `resized` with it. The jobs that have not ended and
    read the backbone before are stopped: the new ones, which compute all of it again, would wait behind them."""
    models, jobs = Repository(connection, REPO), ProjectJobs(connection)
    before = current_backbone(models)
    same = before is not None and before.sha256 == spec.sha256 and same_model(_read(models, MODEL_FILE), directory)
    staged = None if same else models.stage(_files(directory))
    readers = [name for name, info in infos.items() if any(each.repo == REPO for each in leaves(info.details.input))]
    obsolete = [job for name in readers for job in jobs.queue(name)]
    reason = f"replaced by {spec.name} of {spec.image_size} × {spec.image_size} pixels (lookalike model push)"
    commit = resize(connection, [infos[name] for name in resized], spec.image_size, staged, obsolete, reason)
    return PushOutcome(spec, None if same else before, commit, resized=resized, stopped=obsolete)


def make(source: str, options: Sequence[str], directory: Path) -> tuple[BackboneSpec, str]:
    """Writes the files of a backbone into the directory with the program stages.zoo and these options.

    Returns the description and the program's output. Raises LookalikeError if it fails.
    """
    command = stage_processes.command("zoo", f"--out={directory}", *options, "--", source)
    variables = stage_processes.environment()
    done = subprocess.run(command, env=variables, capture_output=True, text=True, errors="replace")
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise LookalikeError(said[-1] if said else f"making the backbone ended with status {done.returncode}")
    return parse_spec((directory / SPEC_FILE).read_bytes()), done.stdout.strip()


def put(models: Repository, spec: BackboneSpec, directory: Path) -> PushOutcome:
    """Puts the files in the directory, which `spec` describes; if master holds the same backbone without its scale of
    distances, the scale alone."""
    before = current_backbone(models)
    if before is not None and before.sha256 == spec.sha256 and same_model(_read(models, MODEL_FILE), directory):
        scaled = spec.sha256.encode() in (_read(models, SCALE_FILE) or b"")
        if scaled or not (directory / SCALE_FILE).exists():
            return PushOutcome(before, None, "")
        commit = models.write([PutFile(f"/{SCALE_FILE}", directory / SCALE_FILE)])
        return PushOutcome(before, None, commit, scale_alone=True)
    commit = models.write(_files(directory))
    return PushOutcome(spec, before, commit)


def _files(directory: Path) -> list[PutFile]:
    """The files of a backbone; one that was made without a scale has none."""
    return [PutFile(f"/{name}", directory / name) for name in _FILES if (directory / name).exists()]


def _read(models: Repository, name: str) -> bytes | None:
    return models.read(f"/{name}") if models.exists(f"/{name}") else None


def same_model(held: bytes | None, directory: Path) -> bool:
    """Whether master's backbone.keras is the one in the directory.

    Asked besides the identity: files put there by hand need not be what the description beside them says.
    """
    return held == (directory / MODEL_FILE).read_bytes()
