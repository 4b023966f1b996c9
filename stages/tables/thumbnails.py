"""The thumbnails in any table of pictures or of neighbours, also of other versions: only the columns that all have."""

from io import BytesIO

from stages.contract import StageError
from stages.damage import is_damage
from stages.tables.parquet import read_columns


def read_thumbnails(content: bytes, name: str) -> dict[str, bytes]:
    """The JPEG file of every picture that has one, by id, from a table's bytes. name: for errors. Raises StageError for
    another file."""
    try:
        table = read_columns(BytesIO(content), ["id", "thumbnail"])
        rows = zip(table["id"].to_pylist(), table["thumbnail"].to_pylist(), strict=True)
        return {id_: thumbnail for id_, thumbnail in rows if thumbnail}
    except Exception as error:
        if not is_damage(error):
            raise
        raise StageError(f"{name} is not a table that lookalike wrote: {error}") from error
