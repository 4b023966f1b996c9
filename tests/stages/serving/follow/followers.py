"""What the tests of followed commits share: followers that end with their test, and backbones of 32 pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from python_pachyderm.proto.v2.pps import pps_pb2

from stages.serving.follow.commit_follower import CommitFollower, CommitSource
from stages.serving.follow.pachyderm_client import PachydermAddress, PachydermClient
from stages.serving.follow.snapshots import SnapshotState
from tests import conditions
from tests.servers import Localpachd
from tests.stages.models import SmallModel

if TYPE_CHECKING:
    import python_pachyderm

    from stages.backbone.backbone_spec import BackboneSpec

DIMENSION = 8

_SnapshotT = TypeVar("_SnapshotT")


def write_backbone(small_model: SmallModel, place: Path, name: str, seed: int = 0) -> BackboneSpec:
    """Writes a backbone's files into a directory; returns its description."""
    from stages.backbone.backbone_spec import WeightsOrigin, parse_spec  # noqa: PLC0415
    from stages.backbone.backbones import describe, save_backbone  # noqa: PLC0415

    model = small_model(32, DIMENSION, seed)
    save_backbone(model, describe(model, name, "avg", WeightsOrigin("made by a test", "0" * 64)), place)
    return parse_spec((place / "backbone.json").read_bytes())


def create_pipeline(client: python_pachyderm.Client, name: str, command: str, repos: Sequence[str]) -> None:
    """A pipeline of one datum, with all files of these repos."""
    every = [pps_pb2.Input(pfs=pps_pb2.PFSInput(repo=repo, glob="/")) for repo in repos]
    client.create_pipeline(
        name,
        transform=pps_pb2.Transform(cmd=["sh", "-c", command], datum_batching=False),
        input=pps_pb2.Input(cross=every),
        datum_tries=1,
    )


@contextmanager
def followers(
    server: Localpachd, source: Callable[[PachydermClient, Any], CommitSource[_SnapshotT]]
) -> Iterator[Callable[..., CommitFollower[_SnapshotT]]]:
    """Begins to follow what a source finds, which may take one argument; everything that was begun ends."""
    begun: list[CommitFollower[_SnapshotT]] = []

    def begin(at: str = "", given: Any = None, **options: Any) -> CommitFollower[_SnapshotT]:
        client = PachydermClient(PachydermAddress(server.address))
        begun.append(CommitFollower(client, source(client, given), at, **({"report": lambda _: None} | options)))
        begun[-1].start()
        return begun[-1]

    yield begin
    for each in begun:
        each.close()


def until(
    following: CommitFollower[_SnapshotT], holds: Callable[[SnapshotState[_SnapshotT]], bool]
) -> SnapshotState[_SnapshotT]:
    """The first state for which a condition holds, to one who looks often."""

    def found() -> SnapshotState[_SnapshotT] | None:
        state = following.state()
        return state if holds(state) else None

    seen = conditions.until(found)
    assert seen is not None
    return seen
