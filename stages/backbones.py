"""A backbone as a Keras model and as files: describes, identifies, writes and loads it.

Equal models give equal bytes, so pushing one again changes nothing. Knows no architecture and no Pachyderm.
"""

import hashlib
import io
import json
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import keras

from stages.backbonespec import MODEL_FILE, PUSH, SPEC_FILE, BackboneSpec, Weights, format_spec
from stages.contract import StageError

BATCH = 32  # pictures of one forward pass; see embedders
_IDENTITY = "lookalike-backbone-1"  # float32 without TF32, deterministic operations; raise it if vectors can change
_WEIGHTS_MEMBER = "model.weights.h5"
# Layers that share one of these compute the same as layers with equal ones, and Keras does not restore the sharing.
_STATELESS = ("keras.initializers", "keras.regularizers", "keras.constraints", "keras.dtype_policies")


def describe(model: keras.Model, name: str, pooling: str, weights: Weights) -> BackboneSpec:
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
            f"{name} takes {shape}; it must take pictures of one fixed square size, colours last: (None, 96, 96, 3)"
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
    with tempfile.TemporaryDirectory() as scratch:
        saved = Path(scratch) / MODEL_FILE
        model.save(saved)
        _normalise(saved, directory / MODEL_FILE)
    spec = replace(spec, sha256=identity(directory / MODEL_FILE, spec))
    (directory / SPEC_FILE).write_text(format_spec(spec))
    return spec


def load_backbone(path: Path, spec: BackboneSpec) -> keras.Model:
    """Loads the model that the spec describes from a seekable .keras file.

    Raises StageError if the file is damaged or holds another model.
    """
    found = identity(path, spec)
    if found != spec.sha256:
        raise StageError(
            f"{MODEL_FILE} and {SPEC_FILE} in the repo models do not belong together: the file is {found}, the "
            f"description says {spec.sha256}. Push the two in one commit: lookalike model push"
        )
    model = load_keras(path)
    seen = describe(model, spec.name, spec.pooling, spec.weights)
    if (seen.image_size, seen.dimension) != (spec.image_size, spec.dimension):
        raise StageError(
            f"{SPEC_FILE} states {spec.image_size} pixels and {spec.dimension} dimensions, but the model has "
            f"{seen.image_size} and {seen.dimension}. Push it again: lookalike model push"
        )
    return model


def load_keras(path: Path) -> keras.Model:
    """Loads any .keras file, without its training configuration and without code in it.

    Raises StageError if it is not a .keras file, or needs layers that are not part of Keras.
    """
    try:
        return keras.saving.load_model(path, compile=False, safe_mode=True)
    except Exception as error:  # Keras's errors for damaged or foreign files have no common type
        raise StageError(
            f"{path.name} cannot be loaded as a Keras model: {first_line(error)} (it must be a .keras file of Keras 3 "
            "made of Keras's own layers, without Lambda layers)"
        ) from error


def first_line(error: BaseException) -> str:
    """The first line of an error of Keras or h5py, without the advice to programmers after it."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def identity(path: Path, spec: BackboneSpec) -> str:
    """The hash, 64 hex digits, of a .keras file's configuration and weights and of the way to run them.

    The file's bytes are not hashed, since they change with every save. Raises StageError if it is not a .keras file.
    """
    how = {"batch": spec.batch, "precision": spec.precision, "identity": _IDENTITY}
    try:
        with zipfile.ZipFile(path) as archive:
            config = _canonical(json.loads(archive.read("config.json")))
            weights = _weights(archive.read(_WEIGHTS_MEMBER))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise StageError(f"{path.name} is not a .keras file of Keras 3, or it is damaged ({error}); {PUSH}") from error
    whole = json.dumps({"how": how, "config": config, "weights": weights}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(whole.encode()).hexdigest()


def _weights(hdf5: bytes) -> dict[str, list[Any]]:
    """Type, shape and sha256 of every array in an HDF5 file, by its path there."""
    found: dict[str, list[Any]] = {}

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset):
            values = item[()]
            found[name] = [str(values.dtype), list(values.shape), hashlib.sha256(values.tobytes()).hexdigest()]

    with h5py.File(io.BytesIO(hdf5)) as file:
        file.visititems(visit)
    return found


def _normalise(source: Path, target: Path) -> None:
    """Rewrites a .keras file so that equal models give equal bytes: no dates, no memory addresses, one order."""
    with zipfile.ZipFile(source) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["config.json"] = json.dumps(_canonical(json.loads(members["config.json"])), sort_keys=True).encode()
    version = json.loads(members["metadata.json"])["keras_version"]
    members["metadata.json"] = json.dumps({"keras_version": version}).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(members):
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # the same on every operating system
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, members[name])


def _canonical(config: Any) -> Any:
    """The configuration with shared objects, which Keras marks by memory address, numbered by first use."""
    numbers: dict[int, int] = {}

    def walk(value: Any) -> Any:
        if isinstance(value, Mapping):
            stateless = value.get("module") in _STATELESS or str(value.get("class_name")).endswith("DTypePolicy")
            return {
                key: numbers.setdefault(value[key], len(numbers)) if key == "shared_object_id" else walk(value[key])
                for key in sorted(value)
                if not (stateless and key == "shared_object_id")
            }
        return [walk(item) for item in value] if isinstance(value, list) else value

    return walk(config)
