"""The thumbnails in any table of pictures or of neighbours, also of other versions: only the columns that all have."""

from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from stages.contract import StageError


def read_thumbnails(content: bytes, name: str) -> dict[str, bytes]:
    """The JPEG file of every picture that has one, by id, from a table's bytes. name: for errors. Raises StageError for
    another file."""
    try:
        table = pq.read_table(BytesIO(content), columns=["id", "thumbnail"])
        rows = zip(table["id"].to_pylist(), table["thumbnail"].to_pylist(), strict=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, KeyError) as error:
        raise StageError(f"{name} is not a table that lookalike wrote: {error}") from error
    return {id_: thumbnail for id_, thumbnail in rows if thumbnail}
