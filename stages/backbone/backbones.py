"""A backbone as a Keras model and as files: describes, identifies, writes and loads it.

Equal models give equal bytes, so pushing one again changes nothing. Knows no architecture and no Pachyderm.
"""

import hashlib
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np

from stages.backbone import devices
from stages.backbone.backbone_file import check, check_contents, foreign, identity, normalise
from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE, BackboneSpec, WeightsOrigin, format_spec
from stages.backbone.embedder import Embedder
from stages.backbone.forward_passes import ForwardPass
from stages.backbone.model_header import check_activation
from stages.datum.contract import StageError
from stages.datum.text_format import first_line

BATCH = 32
"""Pictures of one forward pass; see stages.backbone.embedder."""

_SLACK = 8 << 20  # weights that a model may have beside one for each byte of its file
_left: ContextVar[list[int]] = ContextVar("weights")
"""The number of weights that may still be made."""


def describe(model: keras.Model, name: str, pooling: str, weights: WeightsOrigin) -> BackboneSpec:
    """The description, without an identity, of a model that maps (n, S, S, 3) pictures to (n, d) vectors.

    Raises StageError for any other model, with the change that it needs.
    """
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        raise StageError(
            f"{name} has {len(model.inputs)} inputs and {len(model.outputs)} outputs; it needs one of each"
        )
    taken, given = model.inputs[0], model.outputs[0]
    shape = tuple(taken.shape)
    if len(shape) != 4 or shape[3] != 3 or shape[1] != shape[2] or shape[1] is None or shape[0] not in (None, BATCH):
        raise StageError(
            f"{name} takes {shape}; it must take pictures of one fixed square size, colours last: (None, 224, 224, 3)"
        )
    if len(given.shape) != 2 or given.shape[1] is None:
        raise StageError(
            f"{name} gives {tuple(given.shape)}; it must give one vector per picture, (None, dimension): "
            "end it with GlobalAveragePooling2D, or cut off its classifier"
        )
    computed = sorted({layer.compute_dtype for layer in model.layers})
    return BackboneSpec(name, shape[1], pooling, given.shape[1], BATCH, "+".join(computed), weights)


def save_backbone(model: keras.Model, spec: BackboneSpec, directory: Path) -> BackboneSpec:
    """Writes backbone.keras and backbone.json into the directory; returns the spec with its identity.

    Equal models give equal bytes of backbone.keras; with an equal spec, of both.
    """
    save_keras(model, directory / MODEL_FILE)
    spec = replace(spec, sha256=identity(directory / MODEL_FILE, spec))
    (directory / SPEC_FILE).write_text(format_spec(spec))
    return spec


def load_backbone(path: Path, spec: BackboneSpec) -> keras.Model:
    """Loads the model that the spec describes from a seekable .keras file.

    Raises StageError if the file is damaged or holds another model.
    """
    check(path, spec)
    return load_checked(path, spec)


def load_checked(path: Path, spec: BackboneSpec) -> keras.Model:
    """`load_backbone` for a file that `check` has found to be the one that the spec describes."""
    model = _load(path)
    seen = describe(model, spec.name, spec.pooling, spec.weights)
    if (seen.image_size, seen.dimension) != (spec.image_size, spec.dimension):
        raise StageError(
            f"{SPEC_FILE} states {spec.image_size} pixels and {spec.dimension} dimensions, but the model has "
            f"{seen.image_size} and {seen.dimension}. Push it again: lookalike model push"
        )
    return model


def embedder(path: Path, spec: BackboneSpec, environment: Mapping[str, str], at_once: int = 1) -> Embedder:
    """The embedder of a checked file, computed by Keras on the devices that there are. Prints a line about these.

    at_once: the number of concurrent forward passes on processors. Raises StageError if the settings of GPU memory are
    wrong, or as `load_backbone`.
    """
    print(devices.prepare(environment))
    at_once, backend = devices.passes_at_once(at_once), keras.backend.backend()
    return Embedder(forward(load_checked(path, spec)), spec, at_once, devices.kind(), backend=backend)


def forward(model: keras.Model) -> ForwardPass:
    """The forward pass of a model, for batches of one shape."""
    found: ForwardPass = devices.backend().forward(model)
    return found


def save_keras(model: keras.Model, path: Path) -> None:
    """Writes a model that was never compiled. Equal configurations and weights give equal bytes: give every layer a
    name, since those that Keras makes up count the layers of the process."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        saved = Path(scratch) / MODEL_FILE
        model.save(saved)
        normalise(saved, path)


def load_keras(path: Path) -> keras.Model:
    """Loads any .keras file, without its training configuration and without code in it, on prepared devices.

    Raises StageError if it is not a .keras file, or needs layers that are not part of Keras.
    """
    try:
        check_contents(path)
    except Exception as error:  # zipfile and h5py, as Keras below, raise errors of many types for damaged files
        raise _unloadable(path, error, []) from error
    return _load(path)


def _load(path: Path) -> keras.Model:
    devices.ensure()
    try:
        with _weights_of_at_most(path.stat().st_size + _SLACK):
            model = keras.saving.load_model(path, compile=False, safe_mode=True)
        for layer in model._flatten_layers():
            for node in layer._inbound_nodes:
                for each in node.output_tensors:
                    check_activation(each.shape)
        return model
    except Exception as error:
        raise _unloadable(path, error, foreign(path)) from error


@contextmanager
def _weights_of_at_most(numbers: int) -> Iterator[None]:
    """Lets Keras make that many numbers of weights and no more: it makes all that a configuration states, and only then
    reads the file."""
    token = _left.set([numbers])
    try:
        yield
    finally:
        _left.reset(token)


def _make_variable(self: keras.Variable, initializer: Any, shape: Any = None, *others: Any, **named: Any) -> None:
    if (left := _left.get(None)) is not None and isinstance(shape, tuple | list):
        left[0] -= math.prod(shape)
        if left[0] < 0:
            raise ValueError(f"its layers have more weights than its file, such as one of the shape {list(shape)}")
        if named.get("dtype") == "float32":  # JAX would compile a program for each shape, to draw numbers for nothing
            initializer = np.zeros
    _keras_variable(self, initializer, shape, *others, **named)


_keras_variable, keras.Variable.__init__ = keras.Variable.__init__, _make_variable


def _unloadable(path: Path, error: Exception, others: Sequence[str]) -> StageError:
    if others:
        return StageError(
            f"{path.name} has layers that are not Keras's own: {', '.join(others)}. Rebuild it from Keras's own "
            "layers; for those of KerasHub, towers/README.md has a program that does so"
        )
    return StageError(
        f"{path.name} cannot be loaded as a Keras model: {first_line(error)} (it must be a .keras file of Keras 3 "
        "made of Keras's own layers, without Lambda layers)"
    )


def sha256_of_numbers(model: keras.Model) -> str:
    """The hash of the weights alone, since a .keras file's bytes include the time of saving."""
    digest = hashlib.sha256()
    for values in model.get_weights():
        digest.update(f"{values.dtype}{values.shape}".encode() + values.tobytes())
    return digest.hexdigest()
