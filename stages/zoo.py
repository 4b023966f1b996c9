"""The backbones that have names, and a program that makes one, or takes a user's own .keras file.

`python -m stages.zoo NAME|FILE|DIRECTORY --out DIR` writes backbone.keras, backbone.json, scale.json and, for a model
that has words, text-tower.keras. Knows no Pachyderm.
"""

if __name__ == "__main__":  # TensorFlow's import takes half of the time if it is loaded so
    from stages.backbone import keras_import
    from stages.datum.contract import StageError, load

    try:
        with keras_import.quiet():
            program = load("stages.zoo")
    except StageError as error:
        raise SystemExit(str(error)) from None
    raise SystemExit(program.main())

import argparse
import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
from numpy.typing import NDArray

from stages.backbone import devices
from stages.backbone.backbone_file import ModelContents, identity, normalise, read
from stages.backbone.backbone_spec import (
    MODEL_FILE,
    SCALE_FILE,
    SPEC_FILE,
    TEXT_FILE,
    BackboneSpec,
    WeightsOrigin,
    format_spec,
)
from stages.backbone.backbones import describe, forward, load_backbone, load_keras, save_backbone, sha256_of_numbers
from stages.backbone.catalogue import CatalogueEntry, find, unknown
from stages.backbone.efficientnet import LITE, efficientnet_lite
from stages.backbone.embedder import Embedder, passes_at_once, threads_of_each
from stages.backbone.embedder_factory import agrees, embedder, network, noise
from stages.backbone.export_proof import TEXTS, TOLERANCE, apart, pictures, read_proof, read_text_proof
from stages.backbone.forward_passes import EVEN, ForwardPass, even
from stages.backbone.graphs.graph_network import GraphNetwork
from stages.backbone.graphs.keras_parity import matches_keras
from stages.backbone.keras_applications import application
from stages.backbone.precision import PRECISIONS, PrecisionDrift, drift, in_precision
from stages.backbone.reference_pictures import ReferencePictures, reference_pictures
from stages.backbone.text_tower import read_text_tower
from stages.datum.contract import StageError
from stages.quality import distance_scale

DEFAULT_IMAGE_SIZE = 224
_AGAIN = "export both towers again: python -m towers.export PRESET --out DIRECTORY (towers/README.md)"
_SMALLEST, _LARGEST = 32, 1024  # pixels: five halvings leave nothing of less; a batch of more fills the memory


def _named(entry: CatalogueEntry, image_size: int, weights: Path | None) -> tuple[keras.Model, BackboneSpec]:
    devices.ensure()
    if entry.network:
        model, found = application(entry, image_size, weights)
    else:
        lite = LITE[entry.name]
        path = weights or lite.weights_file()
        model = efficientnet_lite(lite, image_size, path)
        found = WeightsOrigin(path.name if weights else lite.origin, _sha256(path))
    return model, describe(model, entry.name, entry.pooling, found)


def make_backbone(
    source: str, image_size: int, weights: Path | None, directory: Path, precision: str = "float32"
) -> tuple[BackboneSpec, Embedder]:
    """Builds a backbone and writes its two files into the directory; returns its description, and the embedder with
    which the files were tried.

    source: a name in the catalogue, or the path of a .keras file, which has an image size of its own.
    weights: for a name only, a file of weights instead of the usual one.
    precision: for a name only, one of stages.backbone.precision.PRECISIONS; any but float32 makes another model.
    directory: created if missing.
    Raises StageError if the backbone cannot be built or loaded again, has the wrong inputs or outputs, or gives vectors
    that are not finite; OSError if the files cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if not _SMALLEST <= image_size <= _LARGEST:
        raise StageError(
            f"an image size of {image_size} pixels is not valid: it must be from {_SMALLEST} to {_LARGEST}"
        )
    if weights is not None and not weights.is_file():
        raise StageError(f"the file of weights {weights} does not exist")
    entry = find(source)
    if entry is not None:
        model, spec = _named(entry, image_size, weights)
    else:
        model, spec = _user_model(source, weights)
    if precision != "float32":
        if entry is None:
            raise StageError(
                f"a .keras file has its own precision: save {source} with layers of {precision} and push that"
            )
        model = in_precision(model, precision)
        spec = describe(model, spec.name, spec.pooling, spec.weights)
    spec = save_backbone(model, spec, directory)
    # Tries the written file, since Keras cannot read back everything that it writes; but it can for the architectures
    # that have graphs, and that takes two thirds of the time after the imports.
    contents = read(directory / MODEL_FILE, spec)
    graph = network(contents, spec, threads=threads_of_each()) if matches_keras(os.environ) else None
    if graph is not None:
        Embedder(graph, spec)(noise(spec))
        return spec, _embedder(graph, spec)
    by_keras = forward(load_backbone(directory / MODEL_FILE, spec))
    Embedder(by_keras, spec)(noise(spec))
    spec, compute = _tried(contents, spec, by_keras)
    evenly = even(compute, noise(spec))
    if not evenly and model.inputs[0].shape[0] is None:
        other = replace(spec, batch=EVEN, graph=False)
        other = replace(other, sha256=identity(directory / MODEL_FILE, other))
        other, by_other = _tried(contents, other, by_keras)
        if even(by_other, noise(other)):
            spec, compute = other, by_other
    (directory / SPEC_FILE).write_text(format_spec(spec))
    return spec, _embedder(compute, spec)


def _tried(
    contents: ModelContents, spec: BackboneSpec, by_keras: ForwardPass
) -> tuple[BackboneSpec, GraphNetwork | ForwardPass]:
    """The description, which says from now on whether a graph computes the backbone, and the passes that compute it for
    features."""
    spec = replace(spec, graph=agrees(contents, spec, by_keras))
    graph = network(contents, spec, threads=threads_of_each()) if spec.graph else None
    return spec, graph or by_keras


def _embedder(compute: GraphNetwork | ForwardPass, spec: BackboneSpec) -> Embedder:
    """The embedder for many pictures."""
    small = compute.few if isinstance(compute, GraphNetwork) else None
    return Embedder(compute, spec, passes_at_once(), small=small, ahead=True)


def write_scale(
    directory: Path, spec: BackboneSpec, tried: ReferencePictures, vectors_of: Embedder | None = None
) -> NDArray[np.float32]:
    """Writes the scale of the backbone in the directory, which `vectors_of` computes if it is loaded already, and
    returns the vectors of the reference pictures. What the backbone prints goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr):
        vectors_of = vectors_of or embedder(directory / MODEL_FILE, spec, os.environ, many=True)
    vectors, copies = vectors_of(tried.pictures), vectors_of(tried.copies)
    scale = distance_scale.measured(spec.sha256, vectors, tried.labels, copies, tried.originals)
    (directory / SCALE_FILE).write_bytes(scale)
    return vectors


def compare(
    entry: CatalogueEntry, weights: Path | None, tried: ReferencePictures, vectors: NDArray[np.float32]
) -> PrecisionDrift:
    """The drift from float32 of the vectors that the named backbone, in another precision, has for the reference
    pictures."""
    model, described = _named(entry, tried.pictures.shape[1], weights)
    return drift(Embedder(forward(model), described)(tried.pictures), vectors)


def _user_model(source: str, weights: Path | None) -> tuple[keras.Model, BackboneSpec]:
    path = Path(source)
    if not path.is_file():
        raise StageError(unknown(source))
    if path.suffix != ".keras":
        raise StageError(
            f"{source} does not have the name of a Keras 3 model: save it with model.save('{path.stem}.keras')"
        )
    if weights is not None:
        raise StageError("a .keras file has its own weights: leave out the weights file")
    model = load_keras(path)
    proof = read_proof(path)
    origin = path.name if proof is None else proof.origin
    spec = describe(model, path.stem, "own", WeightsOrigin(origin, sha256_of_numbers(model)))
    if proof is not None:
        difference = apart(proof.vectors, Embedder(forward(model), spec)(pictures(spec.image_size)))
        if not difference <= TOLERANCE:
            raise StageError(
                f"the vectors of {path.name} differ by {difference:.1%} from the original's, {origin}: export it again"
            )
    return model, spec


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _towers_of(directory: Path) -> tuple[Path, Path | None]:
    """The files of the image tower and of the text tower in a directory; None if it has no text tower. Raises
    StageError unless there is one image tower."""
    files = sorted(path for path in directory.glob("*.keras") if path.name != TEXT_FILE)
    if len(files) != 1:
        raise StageError(
            f"{directory} holds {len(files)} .keras files beside {TEXT_FILE}, not one image tower: push its file, with "
            "--text FILE if it has a text tower"
        )
    words = directory / TEXT_FILE
    return files[0], words if words.is_file() else None


def _write_text_tower(
    file: Path, spec: BackboneSpec, vectors_of: Callable[[NDArray[np.uint8]], NDArray[np.float32]], directory: Path
) -> None:
    """Writes text-tower.keras into a directory, from a file that towers.export wrote with the image tower that the spec
    describes. vectors_of: that tower. Equal towers give equal bytes.

    Raises StageError if the file is not a text tower, differs from its original, or belongs to another image tower.
    """
    tower, proof = read_text_tower(file), read_text_proof(file)
    if proof is None:
        raise StageError(f"{file.name} does not say which texts gave which vectors, so nothing proves it: {_AGAIN}")
    if tower.dimension != spec.dimension:
        raise StageError(
            f"{file.name} gives vectors of {tower.dimension} dimensions, and the image tower {spec.name} of "
            f"{spec.dimension}: they are not of one model"
        )
    off = apart(proof.vectors, tower.embed(TEXTS))
    if not off <= TOLERANCE:
        raise StageError(
            f"the vectors of {file.name} differ by {off:.1%} from the original's, {proof.origin}: its tokenizer or "
            f"its weights are not those; {_AGAIN}"
        )
    given = vectors_of(pictures(spec.image_size)).astype(np.float64)
    off = apart(proof.pictures, given / np.maximum(np.linalg.norm(given, axis=1, keepdims=True), 1e-30))
    if not off <= TOLERANCE:
        raise StageError(
            f"{file.name}, of {proof.origin}, belongs to another image tower than {spec.name}: its words would find "
            "anything. Push the two that were exported together"
        )
    normalise(file, directory / TEXT_FILE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 1 with one line on stderr if the backbone cannot be made."""
    parser = argparse.ArgumentParser(prog="python -m stages.zoo", description="Make a backbone's files.")
    parser.add_argument(
        "source",
        metavar="NAME|FILE|DIRECTORY",
        help="a name in stages.backbone.catalogue, a .keras file, or a directory that towers.export wrote",
    )
    parser.add_argument("--text", type=Path, help="the file of the text tower")
    parser.add_argument(
        "--image-size", type=int, default=DEFAULT_IMAGE_SIZE, help="side of the pictures in pixels (default 224)"
    )
    parser.add_argument("--weights", type=Path, help="take the weights from this file")
    parser.add_argument(
        "--precision", choices=PRECISIONS, default="float32", help="the type that a named backbone computes in"
    )
    parser.add_argument("--out", type=Path, required=True, help="directory for the files")
    given = parser.parse_args(arguments)
    try:
        source, words = given.source, given.text
        if source and find(source) is None and Path(source).is_dir():
            image, beside = _towers_of(Path(source))
            source, words = str(image), words or beside
        if words is not None and not words.is_file():
            raise StageError(f"the file of the text tower {words} does not exist")
        spec, loaded = make_backbone(source, given.image_size, given.weights, given.out, given.precision)
        if words is not None:
            _write_text_tower(words, spec, loaded, given.out)
        tried = reference_pictures(spec.image_size)
        vectors = write_scale(given.out, spec, tried, loaded)
        entry = find(given.source)
        if entry is not None and given.precision != "float32":
            print(compare(entry, given.weights, tried, vectors))
    except StageError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    except OSError as error:
        print(f"cannot write to {given.out}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0
