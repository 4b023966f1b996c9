"""Questions as they are asked over HTTP: their fields and bounds.

A question is one of two kinds, a search or a classification; both name their pictures in the same way. Reads no JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from stages.knn.search_settings import LARGEST_K
from stages.serving.follow.refusals import bad_request
from stages.serving.search.path_globs import LONGEST

MOST_PICTURES = 16
"""Pictures of one question."""

MOST_REQUESTS = 64
"""Questions of one request."""

MOST_WANTED = 10_000
"""Neighbours, or labels of pictures, that one request may ask for in all."""

DEFAULT_K = 12
DEFAULT_TOP = 5
MOST_TOP = 1000
"""Labels of a picture."""

BoxShare = Annotated[float, Field(ge=0, le=1)]
PictureId = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
PictureUrl = Annotated[str, Field(min_length=1, max_length=4096)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PictureReference(_Strict):
    """A picture that is asked about: the number of an uploaded file, a URL, or the id of a library picture."""

    upload: Annotated[int, Field(ge=0, lt=MOST_PICTURES)] | None = None
    url: PictureUrl | None = None
    id: PictureId | None = None
    box: Annotated[list[BoxShare], Field(min_length=4, max_length=4)] | None = None

    @property
    def region(self) -> tuple[float, float, float, float] | None:
        """The region that is asked about, None for the whole picture."""
        if self.box is None or self.box == [0, 0, 1, 1]:
            return None
        left, top, right, bottom = self.box
        return left, top, right, bottom


class PictureRequest(_Strict):
    """What every question has: its pictures."""

    pictures: Annotated[list[PictureReference], Field(max_length=MOST_PICTURES)] = []
    id: PictureId | None = None
    url: PictureUrl | None = None
    box: Annotated[list[BoxShare], Field(min_length=4, max_length=4)] | None = None

    @property
    def wanted(self) -> int:
        """The number of neighbours, or of labels, that it asks for."""
        raise NotImplementedError

    def asked(self, uploads: int) -> Sequence[PictureReference]:
        """The pictures, with the short forms written out. uploads: the number of files that came with the question.
        Raises Refusal for none, too many, or any that is not there."""
        short = [PictureReference(id=self.id, box=self.box)] if self.id else []
        short += [PictureReference(url=self.url, box=self.box)] if self.url else []
        if not short and not self.pictures and uploads:
            short = [PictureReference(upload=number, box=self.box) for number in range(uploads)]
        elif self.box is not None and not short:
            raise bad_request("box belongs to a picture: write it next to its upload, url or id")
        found = [*self.pictures, *short]
        if not found:
            raise bad_request("there is no picture to ask about: upload one, or name its url or id")
        if len(found) > MOST_PICTURES:
            raise bad_request(f"{len(found)} pictures: ask about at most {MOST_PICTURES} in one question")
        for each in found:
            _check(each, uploads)
        return found


class SearchRequest(PictureRequest):
    """One search. With several pictures the nearest to any of them, or to all, by the farthest."""

    combine: Literal["any", "all"] = "any"
    k: Annotated[int, Field(ge=1, le=LARGEST_K)] | None = None
    metric: Literal["euclidean", "cosine"] | None = None
    filter: Annotated[str, Field(max_length=LONGEST)] = ""
    max_distance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    exact: bool = True

    @property
    def wanted(self) -> int:
        """Neighbours."""
        return self.k or DEFAULT_K


class ClassifyRequest(PictureRequest):
    """One question for labels. Each of several pictures has its own."""

    top: Annotated[int, Field(ge=1, le=MOST_TOP)] = DEFAULT_TOP

    @property
    def wanted(self) -> int:
        """Labels of all pictures."""
        return self.top * max(1, len(self.pictures))


class SearchBatch(_Strict):
    """Several searches in one call."""

    requests: Annotated[list[SearchRequest], Field(min_length=1, max_length=MOST_REQUESTS)]


class ClassifyBatch(_Strict):
    """Several questions for labels in one call."""

    requests: Annotated[list[ClassifyRequest], Field(min_length=1, max_length=MOST_REQUESTS)]


def _check(picture: PictureReference, uploads: int) -> None:
    given = [name for name in ("upload", "url", "id") if getattr(picture, name) is not None]
    if len(given) != 1:
        raise bad_request("a picture needs one of upload, url and id")
    if picture.upload is not None and picture.upload >= uploads:
        raise bad_request(
            f"upload {picture.upload} is not there: {uploads} files came with the request, counted from 0"
        )
    if picture.box is not None and not (picture.box[0] < picture.box[2] and picture.box[1] < picture.box[3]):
        raise bad_request("box must be [left, top, right, bottom], with left before right and top above bottom")
    if picture.id is not None and picture.region is not None:
        raise bad_request(
            "the region of a library picture cannot be asked for by id: upload the picture, or name its url"
        )
