"""Tables of vectors that people have put: the ids of pictures, in the rows of a file of vectors, and their model.

In the repo `vectors` they lie as /library/<digit>/<batch>.parquet beside <batch>.npy, where the digit is the first of
the ids. A picture is in one batch. Knows no library and no stage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa

from stages.files.tables.columns import Column
from stages.files.tables.table import Table

REPO = "vectors"

DIRECTORY = "library"

SUFFIX = ".parquet"


@dataclass(frozen=True, kw_only=True, eq=False)
class VectorTable(Table):
    """n pictures, sorted by id: the rows of a file of vectors, float32 (n, dimension)."""

    ids: Annotated[Sequence[str], Column("id", pa.string(), ordered=True, lazy=True)]  # n × 64 hex digits
    model: str  # what identifies it: the hash of a backbone of `models`, or the name that people have given
    backbone: str  # its name, for people
    dimension: int

    @property
    def described(self) -> str:
        """The model, for people."""
        return f"{self.backbone} ({self.dimension} dimensions)"
