"""The layout of the map as files: a sample of the library with its places on the map, and the projection of vectors to
few numbers by which others are compared with it.

All numbers that places follow from are integers, so small that sums of their products are exact in float64: whatever
the order of a sum, the processor or the number of threads, a picture has the same place. Knows no stage and no library.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.datum.contract import StageError
from stages.datum.damage import damage_as
from stages.knn.backend import Floats, Vectors
from stages.record import origin
from stages.record.origin import Origin

REPO = "layouts"
"""The repo of layouts."""

FACTS, ARRAYS = "layout.json", "layout.npz"
"""The files of a layout."""

FIT = "fit a layout: lookalike map fit"
"""The remedy for a layout that is missing or does not fit."""

LEAST = 50
"""Pictures, of fewer of which there is no map."""

TOO_FEW = f"a map needs at least {LEAST} pictures, and the library has {{}}: add more"

NO_CLUSTER = -1
"""In place of the number of a cluster."""

_VERSION = 1
_MOST_DIMENSIONS, _MOST_NUMBERS, _MOST_SAMPLE = 1 << 13, 64, 1 << 17
_VECTOR_BITS, _COMPONENT_BITS, _POINT_BITS = 20, 19, 18
_KINDS = {"ids": "S", "components": "i", "center": "i", "points": "i", "positions": "f", "clusters": "i"}


@dataclass(frozen=True, eq=False)
class Layout:
    """A layout of m pictures, by p of the numbers that vectors of dimension d are projected to.

    origin, metric: of the vectors. ids: m × 64 bytes. components: int32 (p, d). center: int64 (p,), what is subtracted
    from each projection. points: int32 (m, p), the projections of the sample. positions: float32 (m, 2), from -1 to 1.
    clusters: int32 (m,), numbers of clusters or NO_CLUSTER. scale, shift: powers of two that turn vectors into
    integers, and projections into shorter ones. facts: how it was made, for people: seed, versions, commit.
    """

    origin: Origin
    metric: str
    ids: NDArray[np.bytes_]
    components: NDArray[np.int32]
    center: NDArray[np.int64]
    points: NDArray[np.int32]
    positions: NDArray[np.float32]
    clusters: NDArray[np.int32]
    scale: int
    shift: int
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def project(self, prepared: Vectors) -> Floats:
        """The projections of vectors, float32 (n, d) as the metric has them, as whole numbers: float64 (n, p)."""
        return _rounded(
            (_integers(prepared, self.scale) @ self.components.T.astype(np.float64)) - self.center, self.shift
        )

    def write(self, directory: Path) -> None:
        """Writes both files; equal layouts give equal bytes."""
        held = {**self.facts, "version": _VERSION, "metric": self.metric, "scale": self.scale, "shift": self.shift}
        text = json.dumps({**held, "origin": self.origin.as_data()}, indent=1, sort_keys=True)
        (directory / FACTS).write_text(text + "\n", encoding="ascii")
        np.savez(directory / ARRAYS, **{name: getattr(self, name) for name in _KINDS})


def read_layout(directory: Path) -> Layout | None:
    """The layout in a directory, whose files may be pipes; None if it has none. Raises StageError for anything that
    `Layout.write` did not write."""
    if not (directory / FACTS).exists():
        return None
    with damage_as(
        lambda error: StageError(f"the repo {REPO} does not hold a layout of this version ({error}): {FIT}")
    ):
        facts = json.loads((directory / FACTS).read_bytes())
        if facts["version"] != _VERSION:
            raise ValueError(f"version {facts['version']}")
        with (directory / ARRAYS).open("rb") as file:
            content = file.read()
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as held:
                arrays = {name: held[name] for name in _KINDS}
        except zipfile.BadZipFile as error:
            raise ValueError(str(error)) from error
        found = Layout(
            Origin.parse(facts["origin"], origin.ALL),
            str(facts["metric"]),
            **arrays,
            scale=int(facts["scale"]),
            shift=int(facts["shift"]),
            facts=facts,
        )
        _check(found)
        return found


def _check(layout: Layout) -> None:
    """Raises ValueError for a layout whose arrays do not belong together, or hold more than sums are exact for."""
    m, (p, d) = len(layout.ids), layout.components.shape
    shapes = {"ids": (m,), "components": (p, layout.origin.dimension), "center": (p,), "points": (m, p)}
    shapes |= {"positions": (m, 2), "clusters": (m,)}
    for name, kind in _KINDS.items():
        each = getattr(layout, name)
        if each.shape != shapes[name] or each.dtype.kind != kind:
            raise ValueError(f"its {name} are {each.dtype} of shape {each.shape}")
    bounds = (layout.components, _COMPONENT_BITS), (layout.points, _POINT_BITS)
    if not 0 < m <= _MOST_SAMPLE or p > _MOST_NUMBERS or d > _MOST_DIMENSIONS:
        raise ValueError(f"it has {m} pictures and {p} numbers of {d} dimensions")
    if not np.isfinite(layout.positions).all() or any(np.abs(each).max(initial=0) > 1 << bits for each, bits in bounds):
        raise ValueError("its numbers are too large")


def projected(
    origin: Origin, metric: str, prepared: Vectors, mean: Floats, components: Floats
) -> tuple[dict[str, Any], Floats]:
    """The projection of a layout, for the sample's vectors, float32 (m, d): its fields, and the projections of the
    sample, float64 (m, p), whole numbers. mean, components: (d,) and (p, d), as of a principal component analysis."""
    if prepared.shape[1] > _MOST_DIMENSIONS:
        raise StageError(
            f"vectors of {prepared.shape[1]:,} numbers are too long for a map: at most {_MOST_DIMENSIONS:,}"
        )
    scale = _VECTOR_BITS - 1 - _exponent(prepared)
    rows = np.rint(np.ldexp(components, _COMPONENT_BITS)).astype(np.int32)
    whole = rows.T.astype(np.float64)
    center = (_integers(mean[None].astype(np.float32), scale) @ whole)[0]
    long = (_integers(prepared, scale) @ whole) - center
    shift = max(0, _exponent(long) - (_POINT_BITS - 1))
    return {"components": rows, "center": center.astype(np.int64), "scale": scale, "shift": shift}, _rounded(
        long, shift
    )


def _exponent(values: Floats | Vectors) -> int:
    """The least whole number of which two to that power is above all values."""
    return int(np.frexp(np.abs(values).max(initial=0))[1])


def _integers(vectors: Vectors, scale: int) -> Floats:
    """Vectors as whole numbers of at most _VECTOR_BITS bits; longer ones than the sample has are cut."""
    limit = float(1 << _VECTOR_BITS)
    found: Floats = np.clip(np.rint(np.ldexp(vectors.astype(np.float64), scale)), -limit, limit)
    return found


def _rounded(long: Floats, shift: int) -> Floats:
    limit = float(1 << _POINT_BITS)
    found: Floats = np.clip(np.rint(np.ldexp(long, -shift)), -limit, limit)
    return found
