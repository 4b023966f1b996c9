"""What is known of the files of one picture, beside the columns of all."""

from datetime import datetime

import numpy as np
import pyarrow as pa

from stages.filters.where_clause import parse_where
from stages.record.sources import Source
from tests.stages.filters.attribute_tables import attribute_table

PEOPLE = pa.schema(
    [("owner", pa.string()), ("rating", pa.int64()), ("share", pa.float64()), ("seen", pa.timestamp("s"))]
)


def test_the_facts_of_a_picture_are_those_of_the_columns_and_make_none() -> None:
    pictures = [[Source(f"{row}-{copy}.jpg", "5eed") for copy in range(1 + row % 3)] for row in range(20)]
    pictures[3].append(Source("odd\udcff \0.jpg", "5eed"))
    said = {
        f"{row}-0.jpg": {
            "owner": ("", "Ann", None)[row % 3],
            "rating": row or None,
            "share": (0.5, float("nan"), float("inf"))[row % 3],
            "seen": datetime(2024, 1, 1 + row),
        }
        for row in range(0, 20, 2)
    }
    table = attribute_table(pictures, said, PEOPLE, segments=3)
    facts = [table.facts(row, sources) for row, sources in enumerate(pictures)]
    assert not table._made
    for name in ("owner", "rating", "share", "seen", "brightness", "contrast", "sharpness", "colour"):
        values = table.column(name).to_pylist()
        plain = [each.isoformat() if isinstance(each, datetime) else each for each in values]
        assert [each.get(name) for some in facts for each in some] == plain, name
    assert np.array_equal(table.rows, [row for row, some in enumerate(facts) for _ in some])


def test_words_anywhere_are_found_in_any_case() -> None:
    """In paths and in texts, whole or in part, and not across two of them."""
    pictures = [
        [Source(f"{folder}/{row}.jpg", "5eed", camera="Leica")] for row, folder in enumerate(("Schnee", "b", "c"))
    ]
    said = {"b/1.jpg": {"owner": "Ångström 100 %", "rating": 7}}
    for segments in (1, 3):
        table = attribute_table(pictures, said, PEOPLE, segments)
        for word, found in (
            ("SCHNEE", [0]),
            ("ångstrÖm 100 \\%", [1]),
            ("leica", [0, 1, 2]),
            ("jpg", [0, 1, 2]),
            ("jpgLeica", []),
            ("7", []),
            ("5eed", []),
        ):
            clause = parse_where(f"anywhere ILIKE '%{word}%' ESCAPE '\\'", table.columns)
            assert np.flatnonzero(table.pictures_of(clause.files(table))).tolist() == found, word
