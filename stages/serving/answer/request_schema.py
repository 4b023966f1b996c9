"""Questions as they are asked over HTTP: with their pictures, and several in one request.

A question is one of two kinds, a search or a classification; both name their pictures in the same way. Reads no JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Generic, TypeVar

from pydantic import Field

from stages.files.question import BoxEdges, Question, StrictModel, describe
from stages.serving.follow.refusals import bad_request

MOST_PICTURES = 16
"""Pictures of one question."""

MOST_REQUESTS = 64
"""Questions of one request."""

MOST_WANTED = 10_000
"""Neighbours, or labels of pictures, that one request may ask for in all."""

DEFAULT_TOP = 5
MOST_TOP = 1000
"""Labels of a picture."""

PictureId = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
PictureUrl = Annotated[str, Field(min_length=1, max_length=4096)]


_RequestT = TypeVar("_RequestT", bound="PictureRequest")


class PictureReference(StrictModel):
    """A picture that is asked about: the number of an uploaded file, a URL, or the id of a library picture."""

    upload: Annotated[int, Field(ge=0, lt=MOST_PICTURES)] | None = None
    url: PictureUrl | None = None
    id: PictureId | None = None
    box: BoxEdges | None = None

    @property
    def region(self) -> tuple[float, float, float, float] | None:
        """The region that is asked about, None for the whole picture."""
        if self.box is None or self.box == [0, 0, 1, 1]:
            return None
        left, top, right, bottom = self.box
        return left, top, right, bottom


class PictureRequest(StrictModel):
    """What every question has: its pictures."""

    pictures: list[PictureReference] = Field(
        default=[], max_length=MOST_PICTURES, description="The pictures to ask about, each an upload, a url or an id."
    )
    id: PictureId | None = Field(default=None, description="A picture of the library.")
    url: PictureUrl | None = Field(default=None, description="A picture on the web.")
    box: BoxEdges | None = Field(default=None, description=describe("box"))

    @property
    def wanted(self) -> int:
        """The number of neighbours, or of labels, that it asks for."""
        raise NotImplementedError

    @property
    def needs_pictures(self) -> bool:
        """Whether it says nothing without pictures."""
        return True

    def asked(self, uploads: int) -> Sequence[PictureReference]:
        """The pictures, with the short forms written out. uploads: the number of files that came with the question.
        Raises Refusal for none where it needs some, too many, or any that is not there."""
        short = [PictureReference(id=self.id, box=self.box)] if self.id else []
        short += [PictureReference(url=self.url, box=self.box)] if self.url else []
        if not short and not self.pictures and uploads:
            short = [PictureReference(upload=number, box=self.box) for number in range(uploads)]
        elif self.box is not None and not short:
            raise bad_request("box belongs to a picture: write it next to its upload, url or id")
        found = [*self.pictures, *short]
        if not found and self.needs_pictures:
            raise bad_request("there is no picture to ask about: upload one, or name its url or id")
        if len(found) > MOST_PICTURES:
            raise bad_request(f"{len(found)} pictures: ask about at most {MOST_PICTURES} in one question")
        for each in found:
            _check(each, uploads)
        return found


class SearchRequest(PictureRequest, Question):
    """One search. With several pictures the nearest to any of them, or to all, by the farthest; a vector counts as
    one."""

    @property
    def needs_pictures(self) -> bool:
        """Whether there is no vector to ask about."""
        return self.vector is None

    @property
    def wanted(self) -> int:
        """Neighbours."""
        return self.k


class ClassifyRequest(PictureRequest):
    """One question for labels. Each of several pictures has its own."""

    top: int = Field(default=DEFAULT_TOP, ge=1, le=MOST_TOP, description="The number of labels of each picture.")

    @property
    def wanted(self) -> int:
        """Labels of all pictures."""
        return self.top * max(1, len(self.pictures))


class RequestBatch(StrictModel, Generic[_RequestT]):
    """Several questions in one call."""

    requests: list[_RequestT] = Field(min_length=1, max_length=MOST_REQUESTS)


def _check(picture: PictureReference, uploads: int) -> None:
    given = [name for name in ("upload", "url", "id") if getattr(picture, name) is not None]
    if len(given) != 1:
        raise bad_request("a picture needs one of upload, url and id")
    if picture.upload is not None and picture.upload >= uploads:
        raise bad_request(
            f"upload {picture.upload} is not there: {uploads} files came with the request, counted from 0"
        )
