"""The made index of the benchmarks: its segments are read as those of the stage index are."""

from pathlib import Path

import numpy as np

from benchmarks.kit import segments
from benchmarks.kit.madeindex import MadeIndex
from stages.datum.contract import DatumInput
from stages.files.segment_files import read_facts, read_hashes, read_table, thumbnails


def test_a_segment_is_read_as_it_was_made(tmp_path: Path) -> None:
    made = MadeIndex(1_100)
    place = made.write(tmp_path, "3", more=1)
    index, points = DatumInput("index", place, "3", ""), segments.vectors(place)
    np.testing.assert_array_equal(points, made.vectors("3", more=1))
    table = read_table(index)
    assert len(table) == len(read_hashes(index)) == read_facts(index).count == made.count("3") + 1 == 70
    assert {len(each) for each in thumbnails(index, table)} == {3_000}


def test_each_piece_has_a_file_of_vectors_and_one_of_thumbnails(tmp_path: Path) -> None:
    place = MadeIndex(1_100).write(tmp_path, "3")
    vectors, shown = ({path.stem for path in (place / kind).iterdir()} for kind in ("vectors", "thumbnails"))
    assert vectors == shown
    assert len(vectors) == 4
