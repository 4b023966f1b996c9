"""The file of a backbone, backbone.keras, as an archive: its identity, its damage, and equal bytes for equal models.

Does not know Keras, so the features stage finds a damaged file before it imports TensorFlow.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import h5py
from numpy.typing import NDArray

from stages.backbone.backbone_spec import MODEL_FILE, PUSH, SPEC_FILE, BackboneSpec
from stages.backbone.model_header import STATELESS, check_header, parts
from stages.datum.contract import StageError

_IDENTITY = "lookalike-backbone-1"  # float32 without TF32, deterministic operations; raise it if vectors can change
_CONFIG_MEMBER, _WEIGHTS_MEMBER = "config.json", "model.weights.h5"
_MOST_CONFIG = 4 << 20  # bytes; the largest networks of Keras have 1 MB

_SLACK, _MOST_EXPANSION = 16 << 20, 2  # a file may hold so many bytes, or so many times its own, when it is unpacked
_DAMAGE = (OSError, ValueError, KeyError, RecursionError, RuntimeError, zipfile.BadZipFile)


class ModelContents(NamedTuple):
    """What a .keras file holds of a model: the configuration, and the weights by their paths in it."""

    config: Any
    weights: dict[str, NDArray[Any]]


def check_contents(path: Path) -> None:
    """To be asked before Keras opens a .keras file: HDF5 can take its arrays from other files of this machine, and it
    and the configuration can state more numbers than fit in memory. Raises ValueError, or what zipfile, json and h5py
    raise, unless the file is whole in itself and expands to about its size."""
    with zipfile.ZipFile(path) as archive, _opened(archive):
        pass


@contextmanager
def _opened(archive: zipfile.ZipFile) -> Iterator[tuple[Any, h5py.File]]:
    """The configuration, and the HDF5 file with the weights. Raises ValueError for those that are refused."""
    size = sum(info.compress_size for info in archive.infolist())
    _check_size(size, sum(info.file_size for info in archive.infolist()))
    if archive.getinfo(_CONFIG_MEMBER).file_size > _MOST_CONFIG:
        raise ValueError(f"{_CONFIG_MEMBER} has more than {_MOST_CONFIG >> 20} MiB")
    config = json.loads(archive.read(_CONFIG_MEMBER))
    weights = archive.read(_WEIGHTS_MEMBER)
    with h5py.File(io.BytesIO(weights)) as file:
        arrays = _arrays(file)
        _check_size(len(weights), sum(array.nbytes for array in arrays))
        check_header(config, sum(array.size for array in arrays))
        yield config, file


def _check_size(size: int, expanded: int) -> None:
    if expanded > _SLACK + _MOST_EXPANSION * size:
        raise ValueError(f"it expands from {size:,} to {expanded:,} bytes")


def _arrays(file: h5py.File) -> list[h5py.Dataset]:
    """All arrays, by all of their names. Raises ValueError for what is not in the file itself."""
    groups, found = [file], []
    file.visititems(lambda _, item: groups.append(item) if isinstance(item, h5py.Group) else None)
    for group in groups:
        for name in group:
            linked = not isinstance(group.get(name, getlink=True), h5py.HardLink)
            item = None if linked else group[name]
            if linked or (isinstance(item, h5py.Dataset) and (item.external or item.is_virtual)):
                raise ValueError(f"{group.name.rstrip('/')}/{name} is stored elsewhere")
            if isinstance(item, h5py.Dataset):
                found.append(item)
    return found


def check(path: Path, spec: BackboneSpec) -> None:
    """Raises StageError if the file is damaged or holds another model than the spec describes."""
    _compare(identity(path, spec), spec)


def read(path: Path, spec: BackboneSpec) -> ModelContents:
    """Reads the file, and raises StageError as `check` does."""
    weights: dict[str, NDArray[Any]] = {}
    found, config = _identified(path, spec, weights)
    _compare(found, spec)
    return ModelContents(config, weights)


def _compare(found: str, spec: BackboneSpec) -> None:
    if found != spec.sha256:
        raise StageError(
            f"{MODEL_FILE} and {SPEC_FILE} in the repo models do not belong together: the file is {found}, the "
            f"description says {spec.sha256}. Push the two in one commit: lookalike model push"
        )


def identity(path: Path, spec: BackboneSpec) -> str:
    """The hash, 64 hex digits, of a .keras file's configuration and weights and of the way to run them.

    The file's bytes are not hashed, since they change with every save. Raises StageError if it is not a .keras file.
    """
    return _identified(path, spec, None)[0]


def _identified(path: Path, spec: BackboneSpec, kept: dict[str, NDArray[Any]] | None) -> tuple[str, Any]:
    """The identity and the configuration. kept: takes the weights."""
    how = {"batch": spec.batch, "precision": spec.precision, "identity": _IDENTITY}
    try:
        with zipfile.ZipFile(path) as archive, _opened(archive) as (config, file):
            config, weights = canonical(config), _weights(file, kept)
    except _DAMAGE as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise StageError(f"{path.name} is not a .keras file of Keras 3, or it is damaged ({why}); {PUSH}") from error
    whole = json.dumps({"how": how, "config": config, "weights": weights}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(whole.encode()).hexdigest(), config


def foreign(path: Path) -> list[str]:
    """The classes in a .keras file that are not Keras's own, each with its package; none if it cannot be read."""
    found: dict[str, None] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for value in parts(json.loads(archive.read(_CONFIG_MEMBER))):
                if isinstance(value, Mapping) and "class_name" in value and "config" in value:
                    name = str(value.get("module") or value.get("registered_name") or "keras")
                    package = name.split(".")[0].split(">")[0]
                    if package not in ("keras", "builtins"):
                        found[f"{value['class_name']} of {package}"] = None
    except _DAMAGE:
        return []
    return list(found)


def canonical(config: Any) -> Any:
    """The configuration with shared objects, which Keras marks by memory address, numbered by first use."""
    numbers: dict[int, int] = {}

    def walk(value: Any) -> Any:
        if isinstance(value, Mapping):
            # Keras does not restore the sharing of these.
            stateless = value.get("module") in STATELESS or str(value.get("class_name")).endswith("DTypePolicy")
            return {
                key: numbers.setdefault(value[key], len(numbers)) if key == "shared_object_id" else walk(value[key])
                for key in sorted(value)
                if not (stateless and key == "shared_object_id")
            }
        return [walk(item) for item in value] if isinstance(value, list) else value

    return walk(config)


def normalise(source: Path, target: Path) -> None:
    """Rewrites a .keras file so that equal models give equal bytes: no dates, no memory addresses, one order."""
    with zipfile.ZipFile(source) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["config.json"] = json.dumps(canonical(json.loads(members["config.json"])), sort_keys=True).encode()
    version = json.loads(members["metadata.json"])["keras_version"]
    members["metadata.json"] = json.dumps({"keras_version": version}).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(members):
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # the same on every operating system
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, members[name])


def _weights(file: h5py.File, kept: dict[str, NDArray[Any]] | None) -> dict[str, list[Any]]:
    """Type, shape and sha256 of every array in a file, by its path there. kept: takes the arrays."""
    found: dict[str, list[Any]] = {}

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset):
            values = item[()]
            found[name] = [str(values.dtype), list(values.shape), hashlib.sha256(values.tobytes()).hexdigest()]
            if kept is not None:
                kept[name] = values

    file.visititems(visit)
    return found
