"""The values of a library's attributes, with how many pictures have each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lookalike.rows import Rows


@dataclass(frozen=True)
class FacetCount:
    """A value of a column, or a range of numbers or of days with both ends, as texts, and the number of its pictures.
    end: equal to `value` for a single value."""

    column: str
    value: str
    end: str
    pictures: int


class Facets(Rows[FacetCount]):
    """The facets of a library. `answer` is all that the service said, in JSON's types: also the columns that filters
    can use, and how many values of each were left out."""

    schema = pa.schema(
        [
            pa.field("column", pa.string(), nullable=False),
            pa.field("value", pa.string(), nullable=False),
            pa.field("end", pa.string(), nullable=False),
            pa.field("pictures", pa.int64(), nullable=False),
        ]
    )

    heads = ("column", "value", "pictures")

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.answer = answer
        super().__init__([count for facet in answer["facets"] for count in _counts(facet)])

    def __repr__(self) -> str:
        return "\n".join(f"{each[0]:<16}  {each[2]:>9}  {each[1]}" for each in self.lines())

    def lines(self) -> list[list[str]]:
        """See Rows."""
        spans = [each.value if each.value == each.end else f"{each.value} to {each.end}" for each in self]
        return [[each.column, span, f"{each.pictures:,}"] for each, span in zip(self, spans, strict=True)]


def _counts(facet: Mapping[str, Any]) -> list[FacetCount]:
    values = [(each["value"], each["value"], each["pictures"]) for each in facet.get("values", ())]
    bars = [(each["from"], each["to"], each["pictures"]) for each in facet.get("bars", ()) if each["pictures"]]
    return [FacetCount(facet["name"], str(begin), str(end), count) for begin, end, count in (*values, *bars)]
