"""The bodies of answers, as OpenAPI describes them. The routes make them without these models."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_ID = "0f" * 32


class AnswerPart(BaseModel):
    """A part of an answer, with no other fields."""

    model_config = ConfigDict(extra="forbid")


class RefusalWords(BaseModel):
    """Why a request is not answered: a code for programs, a sentence for people. pictures: those of several that are
    the reason, each with its place in the question (`picture`) and a `message`."""

    code: str = Field(examples=["not-in-library"])
    message: str
    pictures: list[dict[str, Any]] | None = None


class RefusalBody(BaseModel):
    """The body of every response that is not an answer."""

    error: RefusalWords


class StateBody(AnswerPart):
    """Whether the process lives, or questions are answered."""

    state: str = Field(examples=["ready"])


class CommitsBody(AnswerPart):
    """The commits that answer, by id."""

    project: str = Field(examples=["default"])
    index: str = Field(examples=["5ab0cd74c5ee4e5ab0cd74c5ee4e11aa"])
    library: str = Field(examples=["5ab0cd74c5ee4e5ab0cd74c5ee4e11aa"])
    model: str = Field(examples=["1c2d3e4f5a6b4c2d3e4f5a6b7c8d9e0f"])


class SourceBody(BaseModel):
    """A file that shows a picture, with the facts that follow from its bytes."""

    path: str = Field(examples=["holiday/beach.jpg"])
    sha256: str = Field(examples=[_ID])
    width: int = Field(examples=[4000])
    height: int = Field(examples=[3000])
    bytes: int = Field(examples=[2_500_000])
    taken: str = Field(examples=["2024-07-01T18:30:00"])
    camera: str = Field(examples=["Canon EOS 5D"])
    number: int = Field(examples=[0], description="Of the original: /originals/ID?source=NUMBER")
    attributes: dict[str, str | int | float | bool] = Field(
        default={}, examples=[{"label": "beach", "rating": 4}], description="What people and the pixels say."
    )


class AddressedPicture(AnswerPart):
    """A picture of the library with the addresses of its files."""

    id: str = Field(examples=[_ID])
    sources: list[SourceBody]
    thumbnail: str = Field(examples=[f"/images/{_ID}"])
    original: str = Field(examples=[f"/originals/{_ID}"])


class NeighbourBody(AddressedPicture):
    """A picture that was found."""

    rank: int = Field(examples=[1])
    distance: float = Field(examples=[0.4312])
    likeness: str | None = Field(examples=["very similar"])
    similarity: float | None = Field(examples=[93.5], description="In per cent.")
    same: bool
    near: bool
    group: int = Field(examples=[1], description="Near-duplicates of each other have one number.")


class QueryPictureBody(AnswerPart):
    """A picture that was asked about. known: whether the library has it."""

    id: str = Field(examples=[_ID])
    name: str = Field(examples=["mine.jpg"])
    width: int
    height: int
    known: bool


class SearchBody(AnswerPart):
    """The answer to a search."""

    neighbors: list[NeighbourBody]
    pictures: list[QueryPictureBody]
    k: int = Field(examples=[12])
    metric: Literal["euclidean", "cosine"]
    scale: dict[str, float] | None
    combine: Literal["any", "all"]
    filter: str = Field(examples=["holiday/"])
    where: str = Field(examples=["camera LIKE 'Canon%' AND taken >= '2024-01-01'"])
    max_distance: float | None
    text: str = Field(examples=["red bicycle in snow"])
    without: list[str]
    unread: str = Field(description="The end of a text that is too long for the model.")
    exact: bool
    recall: float | None
    commits: CommitsBody
    model: dict[str, Any]
    devices: dict[str, Any]
    seconds: dict[str, float] = Field(examples=[{"decode": 0.01, "features": 0.03, "search": 0.005}])


class SearchesBody(AnswerPart):
    """The answers to several searches in one call, each with its own or the reason why there is none."""

    answers: list[SearchBody | RefusalBody]


class ModelBody(AnswerPart):
    """The model of the vectors that are searched."""

    name: str = Field(examples=["efficientnet-lite0"])
    described: str
    sha256: str = Field(examples=[_ID])
    dimension: int = Field(examples=[1280])
    image_size: int = Field(examples=[224])
    fit: str = Field(examples=["pad"])


class StatusBody(BaseModel):
    """The state of a service, and what it answers from. embeds: whether it takes uploads. follows: whether it goes on
    to newer commits. Further fields describe the library, the devices and the limits of requests."""

    model_config = ConfigDict(extra="allow")

    state: Literal["loading", "empty", "ready", "failed"]
    message: str
    pictures: int = Field(examples=[2690])
    commits: CommitsBody | dict[str, str] | None
    model: ModelBody | dict[str, Any] | None
    search: bool
    embeds: bool = False
    classify: dict[str, Any] | None
    trace: bool
    follows: bool
    limits: dict[str, int]
    version: str = Field(examples=["2"])


class LabelBody(AnswerPart):
    """A label of a picture."""

    label: str = Field(examples=["daisy"])
    probability: float = Field(examples=[0.93])


class LabelledPictureBody(QueryPictureBody):
    """A picture with its likeliest labels."""

    labels: list[LabelBody]


class ClassifyBody(BaseModel):
    """The answer to a classification, with the origin of its model."""

    model_config = ConfigDict(extra="allow")

    pictures: list[LabelledPictureBody]
    top: int = Field(examples=[5])
    seconds: dict[str, float]


class ClassificationsBody(AnswerPart):
    """The answers to several classifications in one call."""

    answers: list[ClassifyBody | RefusalBody]


class FolderBody(AnswerPart):
    """A folder, and the number of files in and below it."""

    name: str = Field(examples=["holiday"])
    pictures: int = Field(examples=[120])


class ListedBody(AddressedPicture):
    """A picture in a listing, with the path, the number and the camera of the file that is listed."""

    path: str = Field(examples=["holiday/beach.jpg"])
    number: int
    camera: str = Field(examples=["Canon EOS 5D"])


class PicturesBody(AnswerPart):
    """A page of pictures. after: the cursor of the next page."""

    pictures: list[ListedBody]
    after: str | None = Field(examples=["100:holiday/beach.jpg"])
    total: int = Field(examples=[2690])
    commits: CommitsBody


class LibraryBody(PicturesBody):
    """A page of a folder: first its folders, then its pictures."""

    folder: str = Field(examples=["holiday"])
    folders: list[FolderBody]


class ColumnBody(AnswerPart):
    """A column that a filter can use."""

    name: str = Field(examples=["camera"])
    type: Literal["text", "number", "boolean", "date"]
    of: Literal["file", "picture"]


class FacetValueBody(AnswerPart):
    """A value of a text, or true or false."""

    value: str | bool = Field(examples=["Canon EOS 5D"])
    pictures: int = Field(examples=[12])


class FacetBarBody(AnswerPart):
    """A range with both ends, of numbers or of whole days."""

    from_: float | str = Field(alias="from", examples=["2019-03-01"])
    to: float | str = Field(examples=["2019-03-31"])
    pictures: int = Field(examples=[12])


class FacetBody(AnswerPart):
    """A column's values with counts: of text and booleans the most frequent, of numbers and dates bars. more: further
    values. cut: not all were counted. missing: pictures without a value."""

    name: str = Field(examples=["camera"])
    type: Literal["text", "number", "boolean", "date"]
    missing: int = Field(examples=[40])
    values: list[FacetValueBody] | None = None
    more: int | None = Field(default=None, examples=[3])
    cut: bool | None = None
    from_: float | str | None = Field(default=None, alias="from")
    to: float | str | None = None
    bars: list[FacetBarBody] | None = None


class FacetsBody(AnswerPart):
    """The facets of the pictures that the filters admit. pictures: of the library. matching: of these."""

    pictures: int = Field(examples=[2690])
    matching: int = Field(examples=[120])
    columns: list[ColumnBody]
    facets: list[FacetBody]
    commits: CommitsBody


class PlaceBody(AnswerPart):
    """Pictures taken near each other: their middle in degrees, the box that holds them all, and the id of one."""

    latitude: float = Field(examples=[48.858])
    longitude: float = Field(examples=[2.294])
    south: float = Field(examples=[48.857])
    north: float = Field(examples=[48.859])
    west: float = Field(examples=[2.292])
    east: float = Field(examples=[2.296])
    pictures: int = Field(examples=[7])
    id: str = Field(examples=[_ID])


class PlacesBody(AnswerPart):
    """The places of the pictures that the filters admit, the largest clusters first."""

    places: list[PlaceBody]
    matching: int = Field(examples=[120])
    commits: CommitsBody
