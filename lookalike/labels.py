"""The labels of a picture, as the promoted model gives them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lookalike.rows import Rows


@dataclass(frozen=True)
class Label:
    """A label, and its probability, 0 to 1."""

    label: str
    probability: float


class Labels(Rows[Label]):
    """The likeliest labels of one picture, the likeliest first. answer: all that the service said, with the model and
    its commits."""

    schema = pa.schema([("label", pa.string()), ("probability", pa.float32())])
    heads = ("label", "probability")

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__([Label(each["label"], each["probability"]) for each in answer["pictures"][0]["labels"]])
        self.answer = answer

    @property
    def model(self) -> Mapping[str, Any]:
        """The model that answered."""
        return dict(self.answer["model"])

    @property
    def commits(self) -> Mapping[str, str]:
        """The commits that it was made from."""
        return dict(self.answer["commits"])

    def __repr__(self) -> str:
        return f"<{', '.join(f'{each.label} {each.probability:.1%}' for each in self)}>"

    def lines(self) -> list[tuple[str, str]]:
        """See Rows."""
        return [(each.label, f"{each.probability:.1%}") for each in self]
