"""Tables of pictures and results: reading inverts writing, and equal values give equal bytes."""

import io
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

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
from stages.files.tables.table import Table
from stages.files.thumbnail_files import ThumbnailPlace
from stages.record.framing import FITS
from stages.record.origin import Origin
from stages.record.sources import Source, unite
from tests.example_counts import examples
from tests.stages.image_tables import unseen

hexes = st.text("0123456789abcdef", min_size=64, max_size=64)
# any str, including lone surrogates and NUL: the user's file system determines the paths
edges = st.integers(0, 2**31 - 1)
source = st.builds(
    Source,
    st.text(st.characters(codec=None)),
    hexes,
    edges,
    edges,
    st.integers(0, 2**63 - 1),
    st.text(),
).map(lambda each: each._replace(latitude=each.width / 2**25 if each.width % 2 else None, longitude=None))
TRAITS = "brightness", "contrast", "sharpness"
sources = st.lists(source, min_size=1, max_size=4)


@st.composite
def images(draw: st.DrawFn) -> ImageTable:
    ids = sorted(draw(st.sets(hexes, max_size=6)))
    return ImageTable(
        ids=ids,
        sources=[unite(draw(sources)) for _ in ids],
        thumbnail_sizes=[draw(st.integers(0, 2**32 - 1)) for _ in ids],
        hashes=[draw(st.integers(0, 2**64 - 1)) for _ in ids],
        **{name: [int(id[at:], 16) / 16 ** (64 - at) for id in ids] for at, name in enumerate(TRAITS)},
        colours=[id[:3] for id in ids],
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


@st.composite
def pairs(draw: st.DrawFn) -> PairTable:
    ids = sorted(draw(st.sets(hexes, max_size=4)))
    possible = [(one, other) for one in range(len(ids)) for other in range(one, len(ids))]
    order = sorted(
        {(row, row) for row in range(len(ids))} | (draw(st.sets(st.sampled_from(possible))) if ids else set())
    )
    first, second = (np.array([pair[side] for pair in order], np.int32) for side in (0, 1))
    return paired(
        PairedPictures(
            ids, [unite(draw(sources)) for _ in ids], [draw(st.binary(max_size=50)) for _ in ids], first, second
        ),
        distances=[draw(st.floats(0, 1e6, width=32)) for _ in order],
        bits=[draw(st.integers(0, 64)) for _ in order],
        turns=[draw(st.integers(0, 7)) for _ in order],
        near=[draw(st.booleans()) for _ in order],
        origin=Origin(draw(hexes), draw(st.sampled_from(FITS)), backbone=draw(st.text(max_size=20))),
        metric=draw(st.sampled_from(["euclidean", "cosine"])),
        threshold=draw(st.floats(0, 1e6)),
        hash_bits=draw(st.integers(0, 64)),
    )


def paired(pictures: PairedPictures, **others: Any) -> PairTable:
    """The table of these pairs, whose other columns are zeros, unless others are given."""
    columns = {name: np.zeros(len(pictures.first)) for name in ("distances", "bits", "turns", "near")}
    facts = {"origin": Origin("m", "pad"), "metric": "e", "threshold": 1, "hash_bits": 12}
    return PairTable.of_pictures(pictures, **columns | facts | others)


@st.composite
def parts(draw: st.DrawFn) -> PartTable:
    table, names = draw(images()), st.from_regex(r"[0-9a-f]{16}", fullmatch=True)
    begins = st.integers(0, 2**63 - 1)
    return PartTable.of(
        table, **placed([ThumbnailPlace(draw(names), draw(begins), size) for size in table.thumbnail_sizes])
    )


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.one_of(images(), neighbours(), pairs(), parts()))
def test_tables_come_back_and_are_deterministic(tmp_path: Path, table: Table) -> None:
    table.write(tmp_path / "a")
    read = type(table).read(tmp_path / "a")
    assert read == table
    read.write(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    match read, table:
        case PairTable(), PairTable():
            assert all(list(one) == list(other) for one, other in zip(read.pictures, table.pictures, strict=True))
        case NeighbourTable(), NeighbourTable():
            assert list(read) == list(table)
            assert (read.ranks.dtype, read.distances.dtype) == (np.dtype(np.int32), np.dtype(np.float32))
        case PartTable(), PartTable():
            assert list(read.thumbnails) == read.thumbnails[:] == list(table.thumbnails)
            assert list(read.parts) == sorted({place.part for place in table.thumbnails})


def test_a_picture_in_many_pairs_is_stored_once(tmp_path: Path) -> None:
    ids = [f"{number:064x}" for number in range(40)]
    order = [(one, other) for one in range(40) for other in range(one + 1, 40)]
    first, second = np.array(order, np.int32).T
    thumbnails = [np.random.default_rng(row).bytes(10_000) for row in range(40)]
    paired(PairedPictures(ids, [(Source("a", id),) for id in ids], thumbnails, first, second)).write(tmp_path / "pairs")
    assert 400_000 < (tmp_path / "pairs").stat().st_size < 500_000


def test_pairs_in_wrong_order_are_refused() -> None:
    two, one = (np.array(rows, np.int32) for rows in ([0, 0], [1, 1]))
    for first, second in ((one, two), (two, one)):
        with pytest.raises(ValueError, match="distinct and sorted"):
            paired(PairedPictures(["a", "b"], [(), ()], [b"", b""], first, second))


def an_image(id: str = "0" * 64, model: str = "m" * 64, image_size: int = 96, fit: str = "pad") -> ImageTable:
    return ImageTable(
        ids=[id],
        sources=[[Source("a.jpg", "f" * 64)]],
        thumbnail_sizes=[4],
        hashes=[0],
        **unseen(1),
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
    assert schema.names == [
        *("id", "sources", "brightness", "contrast", "sharpness", "colour", "thumbnail_size", "perceptual_hash")
    ]
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


@pytest.mark.parametrize(
    ("ids", "count", "reason"), [(["b", "a"], 2, "sorted"), (["a", "a"], 2, "sorted"), (["a"], 0, "length")]
)
def test_wrong_order_and_lengths_are_refused(ids: list[str], count: int, reason: str) -> None:
    zeros = [0] * len(ids)
    with pytest.raises(ValueError, match=reason):
        replace(an_image(), ids=ids, sources=[()] * count, thumbnail_sizes=zeros, hashes=zeros, **unseen(len(ids)))


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
    sources = [[Source("a.png", id)] for id in ids]
    table = replace(an_image(), ids=ids, sources=sources, thumbnail_sizes=[40] * 200, hashes=[0] * 200, **unseen(200))
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
    read = written("embedded", path)
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    broken = [
        b"",
        whole[:footer],
        whole[:-9],
        whole[:footer] + b"\x0f" * 8 + whole[footer + 8 :],
        whole[:4] + bytes(20) + whole[24:],
        whole.replace(b"a.jpg", b"\xff.jpg"),
        whole.replace(b"\x0296", b"\x029x"),
        whole.replace(b"1280", b"12x0"),
        whole.replace(b"[]", b"[}"),
        whole.replace(b'["part"]', b'["part"}'),
    ]
    for each in broken:
        assert each != whole
        path.write_bytes(each)
        with pytest.raises(StageError, match="^t is not a table that lookalike wrote"):
            read(path)


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
    sources = [(Source("a.png", id),) for id in ids]
    images = replace(an_image(), ids=ids, sources=sources, thumbnail_sizes=[3, 0, 5], hashes=[0] * 3, **unseen(3))
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


def test_the_table_of_a_part_is_one_of_pictures_with_places(tmp_path: Path) -> None:
    PartTable.of(an_image(), **placed([ThumbnailPlace("0123456789abcdef", 7, 4)])).write(tmp_path / "t")
    schema = pq.read_schema(tmp_path / "t")
    assert schema.names == [
        *("id", "sources", "brightness", "contrast", "sharpness", "colour", "thumbnail_size", "perceptual_hash"),
        *("thumbnail_part", "thumbnail_begin"),
    ]
    assert schema.metadata[b"parts"] == b'["0123456789abcdef"]'
    assert ImageTable.of(PartTable.read(tmp_path / "t")) == ImageTable.read(tmp_path / "t")
    an_image().write(tmp_path / "other")
    with pytest.raises(StageError, match="it lacks thumbnail_part, thumbnail_begin, parts"):
        PartTable.read(tmp_path / "other")


def written(kind: str, path: Path) -> Callable[[Path], object]:
    """Writes a table with the place of a thumbnail, of a segment or of a part; returns its reader."""
    if kind == "indexed":
        IndexTable.of(an_image(), **placed([ThumbnailPlace("part", 0, 4)]), vector_rows=[0]).write(path)
        return IndexTable.read
    PartTable.of(an_image(), **placed([ThumbnailPlace("part", 0, 4)])).write(path)
    return PartTable.read


@pytest.mark.parametrize(
    ("kinds", "column", "values", "reason"),
    [
        (["indexed"], "vector_row", [None], "its column vector_row lacks values"),
        (["indexed"], "sources", [None], "its column sources lacks values"),
        (["indexed"], "sources", [[None], [{"path": None}]], "it lacks sources"),
        (["indexed", "embedded"], "thumbnail_part", [1, -1], "its places of thumbnails are not valid"),
        (["indexed", "embedded"], "thumbnail_begin", [-1], "its places of thumbnails are not valid"),
        (["indexed", "embedded"], "thumbnail_part", [None], "its column thumbnail_part lacks values"),
        (["indexed", "embedded"], "thumbnail_begin", [None], "its column thumbnail_begin lacks values"),
        (["indexed", "embedded"], "thumbnail_size", [None], "its column thumbnail_size lacks values"),
    ],
)
def test_tables_without_all_values_or_with_places_that_lead_nowhere_are_refused(
    tmp_path: Path, kinds: list[str], column: str, values: list[object], reason: str
) -> None:
    """When they are read, not when the row is needed."""
    for kind, value in product(kinds, values):
        read = written(kind, tmp_path / "t")
        replace_column(tmp_path / "t", column, value)
        with pytest.raises(StageError, match=f"t is not a table that lookalike wrote: {reason}"):
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
