"""`lookalike model push`: a backbone is made and put into the repo `models`, unless it is there already.

Keras is left to a process of its own: it takes seconds and hundreds of MB to import, which no other command needs.
"""

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipelines.client.backbones import REPO, Precision, current_backbone, has_words
from pipelines.client.deployment import image_sizes
from pipelines.client.deployment.deployment import resize
from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.repository import DeleteFile, FileEdit, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import stage_processes
from pipelines.specifications.pipeline_specs import leaves
from stages.backbone.backbone_spec import MODEL_FILE, SCALE_FILE, SPEC_FILE, TEXT_FILE, BackboneSpec, parse_spec
from stages.backbone.catalogue import find, unknown
from stages.datum.text_format import visible

_FILES = (MODEL_FILE, SPEC_FILE, SCALE_FILE, TEXT_FILE)


@dataclass(frozen=True, slots=True)
class PushOutcome:
    """The outcome of a push."""

    spec: BackboneSpec  # of the backbone that master now holds
    replaced: BackboneSpec | None  # of another one that it held before; None if it held none
    commit: str  # id of the new commit; "" if the backbone was there already
    change: str = ""  # the effect of its precision on neighbours, in words; "" for float32
    resized: Mapping[str, int] = field(default_factory=dict)  # pipelines that have its image size now, with that before
    stopped: Sequence[Job] = ()  # jobs that still computed with the backbone before
    added: tuple[str, ...] = ()  # what was missing of a backbone that was there, in words
    wordless: bool = False  # whether the text tower of the one before went with it, and this one has none


def must_exist(source: str) -> None:
    """Raises LookalikeError, with the names most like it, if the source is neither a backbone's name nor a file or
    directory."""
    if find(source) is None and not (source and Path(source).exists()):
        raise LookalikeError(unknown(visible(source)))


def push(
    connection: Connection,
    source: str,
    image_size: int | None = None,
    weights: Path | None = None,
    precision: Precision = "float32",
    text: Path | None = None,
) -> PushOutcome:
    """Makes the backbone `source` (a name, a .keras file, or a directory of it and its text tower) and puts it at the
    head of master of the repo `models`; if it takes pictures of another size than the deployed pipelines make, it
    changes these with it.

    image_size: side of the pictures in pixels, for a named backbone; None for that of the deployed pipelines. weights:
    a file to take a named backbone's weights from. precision: what a named one computes in, see
    stages.backbone.precision. text: the file of its text tower. All files go in as one commit, so that no job sees one
    without the others; if the same backbone is there, it is not written again, and a text tower that it lacks is added.
    Another backbone takes the text tower of the one before away. Raises LookalikeError if it cannot be made or the repo
    is missing."""
    infos = ProjectJobs(connection).pipelines()
    sizes = image_sizes.sizes(infos.values())
    side = image_size or next((sizes[name] for name in sorted(sizes)), None)
    with tempfile.TemporaryDirectory(prefix="lookalike-model-") as scratch:
        directory = Path(scratch)
        options = [f"--image-size={side}"] if side is not None and find(source) is not None else []
        options += [] if weights is None else [f"--weights={weights}"]
        options += [] if text is None else [f"--text={text}"]
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
    before, edits, _ = _changes(models, spec, directory)
    wordless = _wordless(models, edits)
    staged = models.stage(edits) if edits else None
    readers = [name for name, info in infos.items() if any(each.repo == REPO for each in leaves(info.details.input))]
    obsolete = [job for name in readers for job in jobs.queue(name)]
    reason = f"replaced by {spec.name} of {spec.image_size} × {spec.image_size} pixels (lookalike model push)"
    commit = resize(connection, [infos[name] for name in resized], spec.image_size, staged, obsolete, reason)
    return PushOutcome(spec, before, commit, resized=resized, stopped=obsolete, wordless=wordless)


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
    """Puts the files in the directory, which `spec` describes; if master holds the same backbone, those that it lacks
    of its scale of distances and its text tower."""
    before, edits, added = _changes(models, spec, directory)
    held = current_backbone(models) if before is None else None
    wordless = _wordless(models, edits)
    return PushOutcome(held or spec, before, models.write(edits) if edits else "", added=added, wordless=wordless)


def _changes(
    models: Repository, spec: BackboneSpec, directory: Path
) -> tuple[BackboneSpec | None, list[FileEdit], tuple[str, ...]]:
    """The other backbone that master holds, None for the same or none; the edits that make it this one; and what they
    add to it if it is the same, in words."""
    before = current_backbone(models)
    there = [name for name in _FILES if (directory / name).exists()]  # one that was made without a scale has none
    edits: list[FileEdit] = [PutFile(f"/{name}", directory / name) for name in there]
    same = before is not None and before.sha256 == spec.sha256
    # The files, too: those put there by hand need not be what the description beside them says.
    if not same or _read(models, MODEL_FILE) != (directory / MODEL_FILE).read_bytes():
        # Words of another model's text tower would find anything.
        return before, edits if TEXT_FILE in there else [*edits, DeleteFile(f"/{TEXT_FILE}")], ()
    lacking = {}
    if SCALE_FILE in there and spec.sha256.encode() not in (_read(models, SCALE_FILE) or b""):
        lacking[SCALE_FILE] = "its scale of distances"
    if TEXT_FILE in there and (directory / TEXT_FILE).read_bytes() != _read(models, TEXT_FILE):
        lacking[TEXT_FILE] = "its text tower"
    return None, [edit for edit in edits if edit.path.removeprefix("/") in lacking], tuple(lacking.values())


def _wordless(models: Repository, edits: Sequence[FileEdit]) -> bool:
    return DeleteFile(f"/{TEXT_FILE}") in edits and has_words(models)


def _read(models: Repository, name: str) -> bytes | None:
    return models.read(f"/{name}") if models.exists(f"/{name}") else None
