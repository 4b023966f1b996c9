"""Files between the stages: tables in Parquet, vectors, packs, rejections, and labels in CSV."""

import io
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.analysis.changes.library_state import read_thumbnails
from stages.datum.contract import StageError
from stages.files import coded_pictures, pack_tables
from stages.files.packs import (
    PackPicture,
    Rejection,
    parse_pack,
    read_pack,
    read_rejections,
    write_pack,
    write_rejections,
)
from stages.files.tables.columns import ListColumn
from stages.files.tables.image_table import ImageTable
from stages.files.tables.index_table import IndexTable, PartTable, placed
from stages.files.tables.label_table import LabelTable
from stages.files.tables.neighbour_table import NeighbourTable
from stages.files.tables.pair_table import PairedPictures, PairTable
from stages.files.tables.prediction_table import PredictionTable
from stages.files.tables.ranking_table import RankingTable
from stages.files.thumbnail_files import ThumbnailFiles, ThumbnailPlace
from stages.files.vector_files import read_vectors
from stages.record import label_files
from stages.record.framing import PAD, Framing
from stages.record.origin import Origin
from stages.record.sources import Source
from tests.fuzz.scratch import scratch
from tests.fuzz.target import Target
from tests.pipes import piped
from tests.stages.made_packs import former_pack

_TRAITS: dict[str, Any] = {
    **dict.fromkeys(("brightness", "contrast", "sharpness"), (0.5, 1.0)),
    "colours": ("red", "grey"),
}
_IDS = ("0" * 64, "f" * 64)
_SOURCES = ((Source("a/b.jpg", "1" * 64, 4, 3, 20, "2026-01-31T12:00:00"),), (Source("\udcff", "2" * 64),) * 2)
_ORIGIN = Origin("3" * 64, PAD, 96, 2, "lite0")
_PLACES = (ThumbnailPlace("part", 0, 3), ThumbnailPlace("part", 3, 3))
_FRAMING = Framing(4, PAD)


def _file(data: bytes) -> Path:
    path = scratch() / "table"
    path.write_bytes(data)
    return path


def _table(read: Callable[[Any], object], data: bytes) -> None:
    try:
        read(io.BytesIO(data))
    except StageError as reason:
        assert str(reason)


def _on_disk(read: Callable[[Path], object], data: bytes) -> None:
    try:
        read(_file(data))
    except StageError as reason:
        assert str(reason)


def _shown(data: bytes) -> None:
    """A file of thumbnails has what its table says, or is refused; other places are no part of it."""
    (scratch() / "part.thumbnails").write_bytes(data)
    files = ThumbnailFiles(scratch())
    for place in (*_PLACES, ThumbnailPlace("part", len(data), 1), ThumbnailPlace("part", 1, 1 << 40)):
        try:
            assert files.read(place) == data[place.begin : place.begin + place.size]
            assert place.begin + place.size <= len(data)
        except StageError as reason:
            assert str(reason)
            assert place.begin + place.size > len(data)


def _read_indexed(file: Any) -> None:
    """Every place leads into a file of the segment, and every row can be read."""
    table = IndexTable.read(file)
    _lead_into(table.thumbnails)
    assert table.vectors.rows.min(initial=0) >= 0
    assert [table.sources[row] for row in range(len(table))] == list(table.sources)


def _read_embedded(file: Any) -> None:
    """Every place leads into a file of the part, and every picture has one."""
    table = PartTable.read(file)
    _lead_into(table.thumbnails)
    assert [place.size for place in table.thumbnails] == list(table.thumbnail_sizes)


def _lead_into(places: Iterable[ThumbnailPlace]) -> None:
    """These places lead into files of one directory."""
    for place in places:
        assert place.begin >= 0 and place.size >= 0
        assert Path(place.part).name == place.part and place.part not in (".", "..")


def _vectors(data: bytes) -> None:
    """A file is mapped and a pipe is read, with one outcome."""
    found = [_read_vectors(_file(data)), _read_vectors(_pipe(data))]
    assert (found[0] is None) == (found[1] is None)
    if found[0] is not None and found[1] is not None:
        assert found[0].shape[1] == 2 and found[0].tobytes() == found[1].tobytes()


def _read_vectors(path: Path) -> NDArray[np.float32] | None:
    try:
        return read_vectors(path, 2)
    except StageError as reason:
        assert str(reason)
        return None


def _pipe(data: bytes) -> Path:
    path = scratch() / "pipe"
    path.unlink(missing_ok=True)
    return piped(path, data)


def _pack(data: bytes) -> None:
    """Both ways to read a pack, its pictures, and its table alone."""
    path = _file(data)
    try:
        kept = read_pack(path)
    except StageError:
        kept = None
    try:
        parsed = parse_pack(data, "pack")
    except StageError:
        parsed = None
    assert (kept is None) == (parsed is None)
    for row in range(len(kept.pictures) if kept is not None and parsed is not None else 0):
        assert kept is not None and parsed is not None and kept.pictures == parsed.pictures
        try:
            square = kept.square(row)
        except StageError as reason:
            assert str(reason)
            continue
        assert np.array_equal(square.pixels, parsed.square(row).pixels)
    try:
        pack_tables.picture_side(path)
    except StageError as reason:
        assert str(reason)


def _pack_table(data: bytes) -> None:
    try:
        found = pack_tables.read_table(lambda begin, most: data[begin : begin + most] if most else data[begin:])
    except ValueError:
        return
    assert all(len(each) == len(pack_tables.PackRow._fields) for each in found.rows)


def _labels(data: bytes) -> None:
    """What was read can be written and read again."""
    found = label_files.unite([("a.csv", data)])
    assert found.rows == {"a.csv": found.rows["a.csv"]}
    assert all(each.said for each in found.problems)
    rows = [each for each in label_files.read("a.csv", data) if isinstance(each, label_files.LabelRow)]
    if all(map(label_files.can_be_written, rows)):
        assert list(label_files.read("a.csv", label_files.format_csv(rows))) == rows


def _written(write: Callable[[Path], None]) -> Iterator[bytes]:
    path = scratch() / "written"
    write(path)
    yield path.read_bytes()


def _images() -> ImageTable:
    return ImageTable(
        ids=_IDS, sources=_SOURCES, thumbnail_sizes=(3, 3), hashes=(0, 1 << 63), origin=_ORIGIN, **_TRAITS
    )


def _indexed() -> IndexTable:
    return IndexTable.of(_images(), **placed(_PLACES), vector_rows=(0, 1))


def _embedded() -> PartTable:
    return PartTable.of(_images(), **placed(_PLACES))


def _neighbours() -> NeighbourTable:
    return NeighbourTable(
        queries=_IDS[:1] * 2,
        ranks=np.arange(2, dtype=np.int32),
        ids=_IDS,
        distances=np.array([0, 0.5], np.float32),
        sources=_SOURCES,
        thumbnails=(b"one", None),
        metric="euclidean",
        k=2,
        origin=_ORIGIN,
    )


def _pairs() -> PairTable:
    first, second = (np.array([row], np.int32) for row in range(2))
    return PairTable.of_pictures(
        PairedPictures(_IDS, _SOURCES, (b"one", b"two"), first, second),
        distances=np.array([0.1], np.float32),
        bits=np.array([3], np.uint8),
        turns=np.array([2], np.uint8),
        near=np.array([True], np.bool_),
        metric="euclidean",
        threshold=0.8,
        hash_bits=12,
        origin=_ORIGIN,
    )


def _labelled() -> LabelTable:
    texts = ("cat", "dög")
    return LabelTable(ids=_IDS, sources=("a.jpg", "\udcff"), labels=texts, thumbnails=(b"one", b"two"), origin=_ORIGIN)


def _rankings() -> RankingTable:
    depths = np.array([1, 2], np.int64)
    return RankingTable(
        rows=np.arange(2, dtype=np.int32),
        ids=_IDS,
        sources=("a", "b"),
        labels=("cat", "dog"),
        neighbours=ListColumn.divided(np.arange(3, dtype=np.int32), depths),
        distances=ListColumn.divided(np.zeros(3, np.float32), depths),
        origin=_ORIGIN,
        metric="1",
        k=1,
    )


def _predictions() -> PredictionTable:
    return PredictionTable(
        ids=_IDS,
        sources=("a.jpg", "b.jpg"),
        labels=("cat", "dog"),
        splits=("train", "test"),
        predicted=("cat", "cat"),
        probabilities=np.array([0.5, 1], np.float32),
        true_probabilities=np.array([0.5, 0], np.float32),
    )


def _npy(array: "np.ndarray[Any, Any]") -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _packs() -> Iterator[bytes]:
    coded = coded_pictures.encode(np.zeros((3, 4, 3), np.uint8))
    pictures = [
        PackPicture(id, sources, (4, 3), 5, 3, coded_size=len(coded))
        for id, sources in zip(_IDS, _SOURCES, strict=True)
    ]
    for some in (pictures, pictures[:0]):
        yield from _written(lambda path, some=some: write_pack(path, _FRAMING, some, [coded] * len(some)))  # type: ignore[misc]


def _former_packs() -> Iterator[bytes]:
    yield former_pack([PackPicture("a", (Source("b", "c"),), (4, 3))], np.zeros((1, 4, 4, 3), np.uint8))


def _rejections() -> Iterator[bytes]:
    rejections = [Rejection("a.jpg", "preprocess", "damaged"), Rejection("\udcff", "features", "é")]
    yield from _written(lambda path: write_rejections(path, rejections))


def _csvs() -> Iterator[bytes]:
    yield b'source,label\r\na/b.jpg,cat\r\n"c,""d.jpg",dog\r\n'
    yield b"\xef\xbb\xbfname,source,label\n, a.jpg ,cat\nb,b.jpg,\n\nx\n"
    yield b"source;label\na;b\n"
    yield b"\xff\xfes\0"


_NPY_WORDS = (
    b"\x93NUMPY\x01\x00",
    b"'descr': ",
    b"'<f4'",
    b"'|u1'",
    b"'fortran_order': ",
    b"'shape': ",
    b"(2, 2)",
    b"True",
)
_PACK_WORDS = (
    *_NPY_WORDS,
    b'{"fit":"pad"}\n',
    b'"sources":[',
    b'"size":[4,3]',
    b'"path":',
    b'"thumbnail_size":',
    b"null",
    b"{}",
    b"[]",
)
_PARQUET_WORDS = (b"PAR1", b"model", b"image_size", b"dimension", b"thumbnail", b"\x15", b"\x18", b"\x26")


def _parquet(name: str, read: Callable[[Any], object], seeds: Callable[[], Iterator[bytes]]) -> Target:
    return Target(name, partial(_table, read), seeds, _PARQUET_WORDS)


TARGETS = (
    _parquet("images", ImageTable.read, lambda: _written(_images().write)),
    _parquet("neighbours", NeighbourTable.read, lambda: _written(_neighbours().write)),
    _parquet("pairs", PairTable.read, lambda: _written(_pairs().write)),
    _parquet("labelled", LabelTable.read, lambda: _written(_labelled().write)),
    _parquet("rankings", RankingTable.read, lambda: _written(_rankings().write)),
    _parquet("predictions", PredictionTable.read, lambda: _written(_predictions().write)),
    _parquet("indexed", _read_indexed, lambda: _written(_indexed().write)),
    _parquet("embedded", _read_embedded, lambda: _written(_embedded().write)),
    _parquet(
        "thumbnails-of-tables",
        lambda file: read_thumbnails(file.getvalue(), b"onetwo"),
        lambda: _written(_images().write),
    ),
    Target("thumbnails", _shown, lambda: (b"onetwo", b"one", b"")),
    Target("vectors", _vectors, lambda: (_npy(np.ones((3, 2), np.float32)),), _NPY_WORDS, 512),
    Target("packs", _pack, _packs, _PACK_WORDS, 1200),
    Target("pack-tables", _pack_table, lambda: chain(_packs(), _former_packs()), _PACK_WORDS, 1200),
    Target("rejections", partial(_on_disk, read_rejections), _rejections, _PACK_WORDS, 600),
    Target("labels", _labels, _csvs, (b"source", b"label", b"name", b'"', b",", b"\r\n"), 600),
)
