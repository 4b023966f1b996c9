"""The thumbnails in any table of pictures or of neighbours, or beside it, also of other versions: only the columns that
are needed."""

from io import BytesIO

from stages.datum.contract import StageError
from stages.datum.damage import is_damage
from stages.files import thumbnail_files
from stages.files.tables.parquet import read_columns


def read_thumbnails(content: bytes, name: str, apart: bytes = b"") -> dict[str, bytes]:
    """The JPEG file of every picture that has one, by id, from a table's bytes. apart: the file of thumbnails beside
    it, if there is one. name: for errors. Raises StageError for other files."""
    try:
        table = read_columns(BytesIO(content), ["id", "thumbnail", "thumbnail_size"])
        if "thumbnail" in table.column_names:
            thumbnails = table["thumbnail"].to_pylist()
        else:
            places = thumbnail_files.places("", table["thumbnail_size"].to_pylist())
            pieces = ((apart[place.begin : place.begin + place.size], place) for place in places)
            thumbnails = [thumbnail_files.check(piece, place, name) for piece, place in pieces]
        return {id_: each for id_, each in zip(table["id"].to_pylist(), thumbnails, strict=True) if each}
    except StageError:
        raise
    except Exception as error:
        if not is_damage(error):
            raise
        raise StageError(f"{name} is not a table that lookalike wrote: {error}") from error
