"""The library that answers at a moment, as one immutable value, and the state of what holds such a value.

A request takes one snapshot and answers from it alone, so that no answer mixes two commits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from stages.backbone.backbone_spec import BackboneSpec
from stages.quality.distance_scale import DistanceScale
from stages.quality.similarity import SimilarityCalibration
from stages.serving.follow.copy_listings import CopyListings
from stages.serving.follow.map_listings import MapListings
from stages.serving.follow.original_files import OriginalFiles
from stages.serving.follow.refusals import Refusal
from stages.serving.search.mapped_library import MappedLibrary
from stages.serving.search.search_engine import SearchEngine

if TYPE_CHECKING:  # it imports TensorFlow, and the service listens before that
    from stages.backbone.embedder import Embedder
    from stages.backbone.text_tower import TextTower

_SnapshotT = TypeVar("_SnapshotT")

StepReporter = Callable[[str], None]
"""Takes the next step in words."""


@dataclass(frozen=True)
class SnapshotCommits:
    """The ids of the commits that answer: of `index`, of the `images` that it was made from, and of `models`; "" where
    the provenance of the index does not tell. project: Pachyderm's."""

    project: str
    index: str
    library: str
    model: str

    def as_data(self) -> Mapping[str, str]:
        """The same for an answer in JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Snapshot:
    """All that answers a question. embedder: None where the vectors are of a model that is not there, so that only
    library pictures and vectors can be asked about. spec: of the model that is. scale: of its distances; None where it
    has none. similarity: None where evaluate has no calibration. device: the kind of device that computes the vectors
    of queries, "cpu" or the name of a GPU. copies: the groups of copies, which are always the newest; None where nobody
    looks for them. words: the model's text tower; None where it has none. maps: the map, the newest too; None for a
    library of an earlier moment."""

    commits: SnapshotCommits
    library: MappedLibrary
    searching: SearchEngine
    embedder: Embedder | None
    spec: BackboneSpec
    scale: DistanceScale | None
    similarity: SimilarityCalibration | None
    originals: OriginalFiles
    device: str
    copies: CopyListings | None = None
    words: TextTower | None = None
    maps: MapListings | None = None


@dataclass(frozen=True)
class SnapshotState(Generic[_SnapshotT]):
    """The state of what is followed, such as the index. message: for people; with a snapshot, why a newer commit is not
    served, or "".

    loading: the first snapshot is being made. empty: there is nothing to serve, such as no pictures. ready: `snapshot`
    answers. failed: there is no snapshot, for the reason in `message`.
    """

    kind: Literal["loading", "empty", "ready", "failed"]
    message: str = ""
    snapshot: _SnapshotT | None = None

    def answering(self, code: str) -> _SnapshotT:
        """The snapshot. code: of a request that comes while there is nothing to serve. Raises Refusal without one."""
        if self.snapshot is not None:
            return self.snapshot
        if self.kind == "empty":
            raise Refusal(409, code, self.message)
        raise Refusal(503, self.kind, self.message, 2 if self.kind == "loading" else 10)
