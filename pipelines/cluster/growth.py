"""The numbers of a library beside those proposed for its size: segments, and pictures of a part and of a block."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import grpc

from pipelines.client import imagesizes, partsizes
from pipelines.client.connection import Connection
from pipelines.client.outages import outlasting
from pipelines.specifications import proportions
from pipelines.specifications.proportions import Numbers

_REPO = "images"
_USUAL_SIDE = 224


@dataclass(frozen=True, slots=True)
class Growth:
    """segment_digits, part: as deployed; in_segment: the pictures of a segment; files: those that features writes for a
    picture with full parts; proposed: the numbers for this size; outgrown: the reasons for a change, none if there is
    none to make; image_bytes: those of all files that were put, at most."""

    segment_digits: int
    part: int
    in_segment: int
    files: float
    proposed: Numbers
    outgrown: tuple[str, ...]
    image_bytes: int


def read(connection: Connection, pipelines: Iterable[Any], pictures: int) -> Growth:
    """The growth of a library of so many pictures. pipelines: the deployed ones, as PipelineInfos with details."""
    infos = list(pipelines)
    now = Numbers(partsizes.digits(infos), partsizes.part(infos))
    side = max(imagesizes.sizes(infos).values(), default=_USUAL_SIDE)
    size = outlasting(connection, lambda: _image_bytes(connection))
    then = proportions.proposed(pictures, side, size / pictures if pictures else 0.0)
    reasons = tuple(proportions.outgrown(pictures, now, then))
    return Growth(now.segment_digits, now.part, now.in_segment(pictures), round(now.files, 4), then, reasons, size)


def settings(found: Growth) -> dict[str, str]:
    """The variables to change, by name; none for a library that has not outgrown its numbers."""
    wanted = {
        partsizes.DIGITS: (found.segment_digits, found.proposed.segment_digits),
        partsizes.PART: (found.part, found.proposed.part),
    }
    return {name: str(then) for name, (now, then) in wanted.items() if found.outgrown and then > now}


def _image_bytes(connection: Connection) -> int:
    try:
        info = connection.client.inspect_repo(_REPO, project_name=connection.project)
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.NOT_FOUND:
            raise
        return 0
    return int(info.size_bytes_upper_bound)
