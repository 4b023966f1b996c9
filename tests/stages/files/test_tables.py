"""Tables of pictures and results: reading inverts writing, and equal values give equal bytes."""

import io
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from stages.datum.contract import StageError
from stages.files.tables.image_table import ImageTable, merge_images
from stages.files.tables.index_table import IndexTable, PartTable, placed
from stages.files.tables.neighbour_table import NeighbourRow, NeighbourTable
from stages.files.tables.pair_table import PairedPictures, PairTable
from stages.files.thumbnail_files import ThumbnailPlace
from stages.record.framing import FITS
from stages.record.origin import Origin
from stages.record.sources import Source, unite
from tests.example_counts import examples

hexes = st.text("0123456789abcdef", min_size=64, max_size=64)
# any str, including lone surrogates and NUL: the user's file system determines the paths
edges = st.integers(0, 2**31 - 1)
source = st.builds(
    Source, st.text(st.characters(codec=None)), hexes, edges, edges, st.integers(0, 2**63 - 1), st.text()
)
sources = st.lists(source, min_size=1, max_size=4)


@st.composite
def images(draw: st.DrawFn) -> ImageTable:
    ids = sorted(draw(st.sets(hexes, max_size=6)))
    return ImageTable(
        ids=ids,
        sources=[unite(draw(sources)) for _ in ids],
        thumbnail_sizes=[draw(st.integers(0, 2**32 - 1)) for _ in ids],
        hashes=[draw(st.integers(0, 2**64 - 1)) for _ in ids],
        origin=Origin(
            draw(hexes),
            draw(st.sampled_from(FITS)),
            draw(st.integers(1, 4096)),
            draw(st.integers(1, 4096)),
            draw(st.text(max_size=20)),
        ),
    )


@st.composite
def neighbours(draw: st.DrawFn) -> NeighbourTable:
    k = draw(st.integers(1, 4))
    order = [(query, rank) for query in sorted(draw(st.sets(hexes, max_size=4))) for rank in range(k)]
    n = len(order)
    distances = draw(st.lists(st.floats(0, 1e6, width=32), min_size=n, max_size=n))
    return NeighbourTable(
        queries=[query for query, _ in order],
        ranks=np.array([rank for _, rank in order], np.int32),
        ids=[draw(hexes) for _ in order],
        distances=np.array(distances, np.float32),
        sources=[unite(draw(sources)) for _ in order],
        thumbnails=[draw(st.none() | st.binary(max_size=50)) for _ in order],
        origin=Origin(draw(hexes), draw(st.sampled_from(FITS)), backbone=draw(st.text(max_size=20))),
        metric=draw(st.sampled_from(["euclidean", "cosine"])),
        k=k,
    )


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(images())
def test_images_come_back_and_are_deterministic(tmp_path: Path, table: ImageTable) -> None:
    table.write(tmp_path / "a")
    read = ImageTable.read(tmp_path / "a")
    assert read == table
    read.write(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(neighbours())
def test_neighbours_come_back_and_are_deterministic(tmp_path: Path, table: NeighbourTable) -> None:
    table.write(tmp_path / "a")
    read = NeighbourTable.read(tmp_path / "a")
    assert list(read) == list(table)
    assert (read.origin, read.metric, read.k) == (table.origin, table.metric, table.k)
    assert (read.ranks.dtype, read.distances.dtype) == (np.dtype(np.int32), np.dtype(np.float32))
    read.write(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@st.composite
def pairs(draw: st.DrawFn) -> PairTable:
    ids = sorted(draw(st.sets(hexes, max_size=4)))
    possible = [(one, other) for one in range(len(ids)) for other in range(one, len(ids))]
    order = sorted(
        {(row, row) for row in range(len(ids))} | (draw(st.sets(st.sampled_from(possible))) if ids else set())
    )
    return PairTable.of_pictures(
        PairedPictures(
            ids,
            [unite(draw(sources)) for _ in ids],
            [draw(st.binary(max_size=50)) for _ in ids],
            np.array([one for one, _ in order], np.int32),
            np.array([other for _, other in order], np.int32),
        ),
        distances=np.array([draw(st.floats(0, 1e6, width=32)) for _ in order], np.float32),
        bits=np.array([draw(st.integers(0, 64)) for _ in order], np.uint8),
        turns=np.array([draw(st.integers(0, 7)) for _ in order], np.uint8),
        near=np.array([draw(st.booleans()) for _ in order], np.bool_),
        origin=Origin(draw(hexes), draw(st.sampled_from(FITS)), backbone=draw(st.text(max_size=20))),
        metric=draw(st.sampled_from(["euclidean", "cosine"])),
        threshold=draw(st.floats(0, 1e6)),
        hash_bits=draw(st.integers(0, 64)),
    )


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(pairs())
def test_pairs_come_back_and_are_deterministic(tmp_path: Path, table: PairTable) -> None:
    table.write(tmp_path / "a")
    read = PairTable.read(tmp_path / "a")
    assert read == table
    for one, other in zip(read.pictures, table.pictures, strict=True):
        assert list(one) == list(other)
    read.write(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_picture_in_many_pairs_is_stored_once(tmp_path: Path) -> None:
    ids = [f"{number:064x}" for number in range(40)]
    order = [(one, other) for one in range(40) for other in range(one + 1, 40)]
    first, second = np.array(order, np.int32).T
    thumbnails = [np.random.default_rng(row).bytes(10_000) for row in range(40)]
    table = PairTable.of_pictures(
        PairedPictures(ids, [(Source("a", id),) for id in ids], thumbnails, first, second),
        distances=np.zeros(780, np.float32),
        bits=np.zeros(780, np.uint8),
        turns=np.zeros(780, np.uint8),
        near=np.ones(780, np.bool_),
        origin=Origin("m", "pad"),
        metric="e",
        threshold=1,
        hash_bits=12,
    )
    table.write(tmp_path / "pairs")
    assert 400_000 < (tmp_path / "pairs").stat().st_size < 500_000


def test_pairs_in_wrong_order_are_refused() -> None:
    two, one = (np.array(rows, np.int32) for rows in ([0, 0], [1, 1]))
    for first, second in ((one, two), (two, one)):
        with pytest.raises(ValueError, match="distinct and sorted"):
            PairTable.of_pictures(
                PairedPictures(["a", "b"], [(), ()], [b"", b""], first, second),
                distances=np.zeros(2, np.float32),
                bits=np.zeros(2, np.uint8),
                turns=np.zeros(2, np.uint8),
                near=np.zeros(2, np.bool_),
                origin=Origin("m", "pad"),
                metric="e",
                threshold=1,
                hash_bits=12,
            )


def an_image(id: str = "0" * 64, model: str = "m" * 64, image_size: int = 96, fit: str = "pad") -> ImageTable:
    return ImageTable(
        ids=[id],
        sources=[[Source("a.jpg", "f" * 64)]],
        thumbnail_sizes=[4],
        hashes=[0],
        origin=Origin(model, fit, image_size, 1280),
    )


def test_a_table_is_read_from_a_seekable_file_and_below_a_directory_named_like_a_partition(tmp_path: Path) -> None:
    path = tmp_path / "id=x"
    path.mkdir()
    an_image().write(path / "t.parquet")
    assert ImageTable.read(path / "t.parquet").ids == ["0" * 64]
    assert ImageTable.read(io.BytesIO((path / "t.parquet").read_bytes())).ids == ["0" * 64]


def test_the_schema_is_the_documented_one(tmp_path: Path) -> None:
    an_image().write(tmp_path / "t")
    schema = pq.read_schema(tmp_path / "t")
    assert schema.names == ["id", "sources", "thumbnail_size", "perceptual_hash"]
    assert schema.field("thumbnail_size").type == pa.uint32()
    assert schema.metadata == {
        b"model": b"m" * 64,
        b"image_size": b"96",
        b"fit": b"pad",
        b"dimension": b"1280",
        b"backbone": b"",
        b"devices": b"[]",
    }


def test_rows_are_neighbours() -> None:
    source = (Source("a.jpg", "f" * 64),)
    table = NeighbourTable(
        queries=["q"],
        ranks=np.zeros(1, np.int32),
        ids=["i"],
        distances=np.full(1, 0.5, np.float32),
        sources=[source],
        thumbnails=[None],
        origin=Origin("m", "pad"),
        metric="cosine",
        k=3,
    )
    assert list(table) == [NeighbourRow("q", 0, "i", 0.5, source, None)]


def test_wrong_order_and_lengths_are_refused() -> None:
    image = an_image()
    with pytest.raises(ValueError, match="sorted"):
        ImageTable(
            ids=["b", "a"],
            sources=[[], []],
            thumbnail_sizes=[0, 0],
            hashes=[0, 0],
            origin=Origin("m", "pad", 96, 4),
        )
    with pytest.raises(ValueError, match="sorted"):
        ImageTable(
            ids=["a", "a"],
            sources=[[], []],
            thumbnail_sizes=[0, 0],
            hashes=[0, 0],
            origin=Origin("m", "pad", 96, 4),
        )
    with pytest.raises(ValueError, match="length"):
        ImageTable(
            ids=image.ids,
            sources=[],
            thumbnail_sizes=image.thumbnail_sizes,
            hashes=image.hashes,
            origin=Origin("m", "pad", 96, 4),
        )


def test_merge_orders_unites_sources_and_refuses_mixed_models() -> None:
    again = replace(an_image("a"), sources=[(Source("0.jpg", "0" * 64),)], thumbnail_sizes=[7])
    for three in permutations([an_image("b"), an_image("a"), again]):
        merged, origins = merge_images(three)
        assert list(merged.ids) == ["a", "b"]
        assert merged.sources[0] == unite(an_image("a").sources[0], again.sources[0])
        assert origins == [(three.index(again), 0), (three.index(an_image("b")), 0)]  # of the smallest hash
        assert list(merged.thumbnail_sizes) == [7, 4]
    assert merge_images([merged.part(slice(1, 2)), merged.part(slice(0, 1))]) == (merged, [(1, 0), (0, 0)])
    assert merge_images([an_image("b"), merged])[1] == [(1, 0), (0, 0)]
    assert merge_images([again, again])[1] == [(0, 0)]  # of the same file twice
    with pytest.raises(StageError, match=rf"{'m' * 64}.*{'n' * 64}"):
        merge_images([an_image("a"), an_image("b", model="n" * 64)])
    with pytest.raises(StageError, match=r"IMAGE_SIZE=96.*IMAGE_SIZE=64"):
        merge_images([an_image("a"), an_image("b", image_size=64)])
    with pytest.raises(StageError, match=r"FIT=pad.*FIT=crop"):
        merge_images([an_image("a"), an_image("b", fit="crop")])
    with pytest.raises(ValueError, match="nothing"):
        merge_images([])


def test_unite_sorts_by_path_and_drops_repeats() -> None:
    a, b = Source("a", "1"), Source("b", "0")
    assert unite([b, a], [a], []) == (a, b)


def test_a_foreign_file_is_refused_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no table")
    with pytest.raises(StageError, match="text is not a table"):
        ImageTable.read(tmp_path / "text")
    an_image().write(tmp_path / "images")
    with pytest.raises(StageError, match="lacks query, rank, distance"):
        NeighbourTable.read(tmp_path / "images")


def test_all_but_the_thumbnails_is_compressed(tmp_path: Path) -> None:
    ids = [f"{number:064x}" for number in range(200)]
    table = ImageTable(
        ids=ids,
        sources=[[Source("a.png", id)] for id in ids],
        thumbnail_sizes=[40] * 200,
        hashes=[0] * 200,
        origin=Origin("m", "pad", 96, 4),
    )
    found = NeighbourTable(
        queries=ids[:1] * 200,
        ranks=np.arange(200, dtype=np.int32),
        ids=ids,
        distances=np.zeros(200, np.float32),
        sources=table.sources,
        thumbnails=[b"j"] * 200,
        origin=Origin("m", "pad"),
        metric="e",
        k=200,
    )
    table.write(tmp_path / "images")
    found.write(tmp_path / "neighbours")
    for name in ("images", "neighbours"):
        group = pq.ParquetFile(tmp_path / name).metadata.row_group(0)
        columns = [group.column(index) for index in range(group.num_columns)]
        used = {column.path_in_schema: column.compression for column in columns}
        assert used.pop("thumbnail", "UNCOMPRESSED") == "UNCOMPRESSED"
        assert set(used.values()) == {"ZSTD"}, used


def test_damage_that_arrow_finds_late_or_not_at_all_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    an_image().write(path)
    whole = path.read_bytes()
    assert ImageTable.read(io.BytesIO(whole)).ids == an_image().ids
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    broken = [
        whole[:footer] + b"\x0f" * 8 + whole[footer + 8 :],
        whole[:4] + bytes(20) + whole[24:],
        whole.replace(b"a.jpg", b"\xff.jpg"),
        whole.replace(b"\x0296", b"\x029x"),
        whole.replace(b"[]", b"[}"),
    ]
    for each in broken:
        assert each != whole
        with pytest.raises(StageError, match="is not a table that lookalike wrote"):
            ImageTable.read(io.BytesIO(each))


def test_columns_of_other_types_are_refused(tmp_path: Path) -> None:
    an_image().write(tmp_path / "t")
    table = pq.read_table(tmp_path / "t")
    for name, column in (("id", pa.array([7])), ("thumbnail_size", pa.array(["text"]))):
        pq.write_table(table.set_column(table.schema.get_field_index(name), name, column), tmp_path / "other")
        with pytest.raises(StageError, match=f"other is not a table that lookalike wrote: its column {name} holds"):
            ImageTable.read(tmp_path / "other")


def test_more_rows_in_a_group_than_lookalike_writes_are_refused(tmp_path: Path) -> None:
    """A small file that states billions would take all memory."""
    pq.write_table(pa.table({"id": ["0"] * ((1 << 16) + 1), "thumbnail": [b""] * ((1 << 16) + 1)}), tmp_path / "t")
    with pytest.raises(StageError, match="more than 65,536 rows"):
        ImageTable.read(tmp_path / "t")


def test_the_table_of_a_segment_has_the_places_of_its_vectors_and_thumbnails(tmp_path: Path) -> None:
    ids = [f"{number:064x}" for number in range(3)]
    sources, model = [(Source("a.png", id),) for id in ids], "m" * 64
    images = ImageTable(
        ids=ids,
        sources=sources,
        thumbnail_sizes=[3, 0, 5],
        hashes=[0] * 3,
        origin=Origin(model, "pad", 96, 4, "small"),
    )
    shown = [ThumbnailPlace("b-0", 10, 3), ThumbnailPlace("0a", 0, 0), ThumbnailPlace("b-0", 1 << 40, 5)]
    IndexTable.of(images, **placed(shown), vector_rows=[7, 0, 9]).write(tmp_path / "t")
    found = IndexTable.read(tmp_path / "t")
    assert (found.ids, list(found.sources), found.origin) == (ids, sources, images.origin)
    assert (found.sources[1], found.sources[1:]) == (sources[1], sources[1:])
    assert (found.vectors.files, found.vectors.numbers.tolist()) == (("0a", "b-0"), [1, 0, 1])
    assert found.vectors.rows.tolist() == [7, 0, 9]
    assert isinstance(found, IndexTable)
    assert list(found.thumbnails) == found.thumbnails[:] == shown
    assert (found.thumbnails[2], found.thumbnails.parts) == (shown[2], ("0a", "b-0"))


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(images(), st.data())
def test_pictures_with_places_come_back_and_are_deterministic(
    tmp_path: Path, table: ImageTable, draw: st.DataObject
) -> None:
    names, begins = st.from_regex(r"[0-9a-f]{16}", fullmatch=True), st.integers(0, 2**63 - 1)
    shown = [ThumbnailPlace(draw.draw(names), draw.draw(begins), size) for size in table.thumbnail_sizes]
    PartTable.of(table, **placed(shown)).write(tmp_path / "a")
    read = PartTable.read(tmp_path / "a")
    found = read.thumbnails
    assert ImageTable.of(read) == table
    assert list(found) == found[:] == shown
    assert list(found.parts) == sorted({place.part for place in shown})
    PartTable.of(read, **placed(found)).write(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_table_of_a_part_is_one_of_pictures_with_places(tmp_path: Path) -> None:
    PartTable.of(an_image(), **placed([ThumbnailPlace("0123456789abcdef", 7, 4)])).write(tmp_path / "t")
    schema = pq.read_schema(tmp_path / "t")
    assert schema.names == [
        *("id", "sources", "thumbnail_size", "perceptual_hash"),
        *("thumbnail_part", "thumbnail_begin"),
    ]
    assert schema.metadata[b"parts"] == b'["0123456789abcdef"]'
    assert ImageTable.of(PartTable.read(tmp_path / "t")) == ImageTable.read(tmp_path / "t")
    an_image().write(tmp_path / "other")
    with pytest.raises(StageError, match="it lacks thumbnail_part, thumbnail_begin, parts"):
        PartTable.read(tmp_path / "other")


def test_a_damaged_table_of_a_part_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    PartTable.of(an_image(), **placed([ThumbnailPlace("part", 0, 4)])).write(path)
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    broken = [
        whole[:footer],
        whole[:-9],
        whole[:footer] + b"\x0f" * 8 + whole[footer + 8 :],
        whole[:4] + bytes(20) + whole[24:],
        whole.replace(b"a.jpg", b"\xff.jpg"),
        whole.replace(b"1280", b"12x0"),
        whole.replace(b'["part"]', b'["part"}'),
        b"",
    ]
    for each in broken:
        assert each != whole
        path.write_bytes(each)
        with pytest.raises(StageError, match="^t is not a table that lookalike wrote"):
            PartTable.read(path)


def written(kind: str, path: Path) -> Callable[[Path], object]:
    """Writes a table with the place of a thumbnail, of a segment or of a part; returns its reader."""
    if kind == "indexed":
        IndexTable.of(an_image(), **placed([ThumbnailPlace("part", 0, 4)]), vector_rows=[0]).write(path)
        return IndexTable.read
    PartTable.of(an_image(), **placed([ThumbnailPlace("part", 0, 4)])).write(path)
    return PartTable.read


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("vector_row", None, "its column vector_row lacks values"),
        ("sources", None, "its column sources lacks values"),
        ("sources", [None], "it lacks sources"),
        ("sources", [{"path": None}], "it lacks sources"),
    ],
)
def test_a_table_of_a_segment_without_all_values_is_refused(
    tmp_path: Path, column: str, value: object, reason: str
) -> None:
    """When it is read, not when the row is needed."""
    read = written("indexed", tmp_path / "t")
    replace_column(tmp_path / "t", column, value)
    with pytest.raises(StageError, match=f"t is not a table that lookalike wrote: {reason}"):
        read(tmp_path / "t")


@pytest.mark.parametrize("kind", ["indexed", "embedded"])
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("thumbnail_part", 1),
        ("thumbnail_part", -1),
        ("thumbnail_part", None),
        ("thumbnail_begin", -1),
        ("thumbnail_begin", None),
    ],
)
def test_places_of_thumbnails_that_lead_nowhere_are_refused(
    tmp_path: Path, kind: str, column: str, value: int | None
) -> None:
    read = written(kind, tmp_path / "t")
    replace_column(tmp_path / "t", column, value)
    with pytest.raises(
        StageError,
        match=f"t is not a table that lookalike wrote: (its places of thumbnails are not|its column {column} lacks)",
    ):
        read(tmp_path / "t")


@pytest.mark.parametrize("kind", ["indexed", "embedded"])
def test_thumbnails_without_sizes_are_refused(tmp_path: Path, kind: str) -> None:
    read = written(kind, tmp_path / "t")
    replace_column(tmp_path / "t", "thumbnail_size", None)
    with pytest.raises(
        StageError, match="t is not a table that lookalike wrote: its column thumbnail_size lacks values"
    ):
        read(tmp_path / "t")


def replace_column(path: Path, column: str, value: object) -> None:
    """Puts one value into a table of one picture."""
    table = pq.read_table(path)
    at = table.schema.get_field_index(column)
    pq.write_table(table.set_column(at, column, pa.array([value], table.schema.field(at).type)), path)


@pytest.mark.parametrize("kind", ["indexed", "embedded"])
@pytest.mark.parametrize("parts", ["{}", "[7]", '["../part"]', '["/part"]', '[".."]', '[""]', "no JSON", "[" * 5000])
def test_parts_whose_names_lead_elsewhere_are_refused(tmp_path: Path, kind: str, parts: str) -> None:
    read = written(kind, tmp_path / "t")
    table = pq.read_table(tmp_path / "t")
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"parts": parts.encode()}), tmp_path / "t")
    with pytest.raises(StageError, match="t is not a table that lookalike wrote"):
        read(tmp_path / "t")
