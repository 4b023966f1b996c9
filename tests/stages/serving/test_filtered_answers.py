"""Every door gives the pictures and distances of brute force in float64 over the pictures that a filter admits: the
stage search with its entries, a search over HTTP, and the package for Python."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

import lookalike
from stages import search
from stages.datum.contract import Datum, DatumInput
from stages.files.question import Question
from stages.files.tables import annotation_table
from stages.files.tables.neighbour_table import NeighbourTable
from stages.filters.entry_question import entry_json
from stages.record.origin import Origin
from stages.record.sources import Source
from tests.example_counts import examples
from tests.stages.image_tables import image_table
from tests.stages.serving import services
from tests.stages.serving.segments import ids, open_library, write_segment
from tests.stages.serving.services import Service

if TYPE_CHECKING:
    from stages.backbone.embedder import Embedder

_SIDE, _SEGMENTS = 40, "07c"
_K = 5

_CAMERAS = ["", "Canon EOS 5D", "Canon G7", "NIKON"]
_LABELS = ["cat", "dog", None]


@dataclass(frozen=True)
class FileFacts:
    """What the tests' own filters, in Python, know of a file."""

    source: Source
    label: str | None
    rating: int | None


@dataclass(frozen=True)
class World:
    """An index on the disk, the service of it, and all that brute force needs. files: of each row."""

    segments: Sequence[Path]
    service: Service
    names: Sequence[str]
    vectors: NDArray[np.float32]
    files: Sequence[Sequence[FileFacts]]
    origin: Origin


@pytest.fixture(scope="module")
def world(embedder: "Embedder", tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root, random = tmp_path_factory.mktemp("filtered"), np.random.default_rng(3)
    dimension, spec = embedder.spec.dimension, embedder.spec
    names = [id for each in _SEGMENTS for id in ids(each, _SIDE)]
    vectors = random.standard_normal((len(names), dimension)).astype(np.float32)
    vectors[50:54] = vectors[50]  # equal distances, ordered by id
    files = [
        [
            FileFacts(
                Source(
                    f"trip/{row % 3}/{row:03}-{copy}.jpg",
                    "5eed" * 16,
                    int(random.integers(1, 9)),
                    int(random.integers(1, 9)),
                    row,
                    random.choice(["", "2023-05-05T10:00:00", "2024-02-02T11:00:00"]),
                    camera=str(random.choice(_CAMERAS)),
                ),
                random.choice(np.array(_LABELS, object)),
                int(random.integers(0, 5)) if row % 4 else None,
            )
            for copy in range(1 + row % 2)
        ]
        for row in range(len(names))
    ]
    facts = {"dimension": dimension, "model": spec.sha256, "image_size": spec.image_size}
    written = []
    for at, name in enumerate(_SEGMENTS):
        rows = slice(at * _SIDE, (at + 1) * _SIDE)
        sources = {id: [each.source for each in of] for id, of in zip(names[rows], files[rows], strict=True)}
        hashes = [int(each) for each in random.integers(0, 1 << 63, _SIDE, np.uint64)]
        directory = root / "index" / name
        written.append(write_segment(directory, names[rows], vectors[rows], sources, facts, hashes=hashes))
        said = [each for of in files[rows] for each in of]
        columns: dict[str, Any] = {"path": [each.source.path for each in said], "label": [each.label for each in said]}
        if at != 1:  # nobody rates pictures of the second segment
            columns["rating"] = pa.array([each.rating for each in said], pa.int64())
        annotation_table.write_annotations(pa.table(columns), directory / annotation_table.FILE)
    files = [
        [FileFacts(each.source, each.label, None if row // _SIDE == 1 else each.rating) for each in of]
        for row, of in enumerate(files)
    ]
    snapshot = services.snapshot(open_library(written), embedder, root / "cache")
    with services.running(snapshot) as service:
        yield World(written, service, names, vectors, files, snapshot.library.origin)


FILTERS = [
    ("camera LIKE 'Canon%'", lambda each: each.source.camera.startswith("Canon")),
    ("camera IS NULL", lambda each: not each.source.camera),
    ("taken >= '2024-01-01'", lambda each: each.source.taken >= "2024"),
    ("NOT (taken < '2024-01-01')", lambda each: each.source.taken >= "2024"),
    ("label IN ('cat')", lambda each: each.label == "cat"),
    ("label <> 'cat'", lambda each: each.label not in ("cat", None)),
    ("rating > 2", lambda each: each.rating is not None and each.rating > 2),
    ("rating IS NULL", lambda each: each.rating is None),
    ("width / height > 1", lambda each: each.source.width > each.source.height),
    ("width % 2 = 1", lambda each: each.source.width % 2 == 1),
    ("folder = 'trip/1'", lambda each: each.source.path.startswith("trip/1/")),
    ("lower(name) LIKE '%-1.jpg'", lambda each: each.source.path.endswith("-1.jpg")),
    ("bytes BETWEEN 20 AND 30", lambda each: 20 <= each.source.bytes <= 30),
]
"""Filters, and what they mean in Python for the files where they are known to hold."""

conditions = st.recursive(
    st.sampled_from(FILTERS),
    lambda inner: st.builds(
        lambda one, other, both: (
            f"({one[0]} {'AND' if both else 'OR'} {other[0]})",
            (lambda each: one[1](each) and other[1](each)) if both else (lambda each: one[1](each) or other[1](each)),
        ),
        inner,
        inner,
        st.booleans(),
    ),
    max_leaves=4,
)


def _nearest(world: World, row: int, condition: Any, folder: str) -> list[tuple[str, float]]:
    """The nearest by brute force in float64, itself first, as ids with distances in float32."""
    admitted = [any(condition(each) and each.source.path.startswith(folder) for each in of) for of in world.files]
    vectors = world.vectors.astype(np.float64)
    distances = np.sqrt(((vectors - vectors[row]) ** 2).sum(axis=1)).astype(np.float32)
    order = [int(each) for each in np.argsort(distances, kind="stable") if admitted[each] and each != row]
    order = ([row] if admitted[row] else []) + order
    return [(world.names[each], float(distances[each])) for each in order[:_K]]


@given(conditions, st.integers(0, 119), st.sampled_from(["", "trip/2/"]))
@settings(max_examples=examples(30))
def test_a_service_is_exact_under_every_filter(world: World, condition: Any, row: int, folder: str) -> None:
    where, holds = condition
    expected = _nearest(world, row, holds, folder)
    question = {"id": world.names[row], "k": _K, "where": where, "filter": folder}
    answer = world.service.search(question)
    assert answer.status == 200, answer.body
    found = answer.data["neighbors"]
    assert [each["id"] for each in found] == [id for id, _ in expected]
    np.testing.assert_allclose([each["distance"] for each in found], [distance for _, distance in expected], 1e-6)
    with lookalike.Library.open(f"http://127.0.0.1:{world.service.port}") as library:
        same = library.search(world.names[row], _K, where=where, filter=folder)
        assert [each.id for each in same] == [id for id, _ in expected]


@given(st.lists(st.tuples(conditions, st.integers(0, 119)), min_size=1, max_size=3), st.sampled_from(["", "trip/2/"]))
@settings(max_examples=examples(16))
def test_entries_of_the_pipelines_are_exact_under_every_filter(world: World, asked: Any, folder: str) -> None:
    """One process searches all segments for several entries of one bucket, each with its own filters."""
    with TemporaryDirectory() as scratch:
        bucket, out = Path(scratch) / "3f", Path(scratch) / "out"
        for number, ((where, _), row) in enumerate(asked):
            entry = bucket / f"entry {number}"
            entry.mkdir(parents=True)
            image_table([world.names[row]], 0, origin=world.origin).write(entry / "images.parquet")
            np.save(entry / "vectors.npy", world.vectors[row : row + 1])
            (entry / "question.json").write_bytes(entry_json(Question(where=where, filter=folder)))
        stage = search.start({"CUDA_VISIBLE_DEVICES": "", "K": str(_K)})
        for segment in world.segments:
            index = DatumInput("index", segment, segment.name, "")
            stage(Datum({"index": index, "queries": DatumInput("queries", bucket, "queries/3f", "")}, out))
        for number, ((_, holds), row) in enumerate(asked):
            tables = [NeighbourTable.read(out / f"entry {number}" / f"{each}.parquet") for each in _SEGMENTS]
            rows = [(each.id, float(each.distance)) for table in tables for each in table]
            rows.sort(key=lambda each: (each[0] != world.names[row], each[1], each[0]))
            expected = _nearest(world, row, holds, folder)
            assert [id for id, _ in rows[:_K]] == [id for id, _ in expected]
            np.testing.assert_allclose([each for _, each in rows[:_K]], [each for _, each in expected], 1e-6)


def test_a_filter_that_fits_no_longer_finds_nothing_and_says_why(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels were numbers when the entry was put. Another entry of the same bucket is answered."""
    for name, where in (("bad", "label > 5"), ("good", "label = 'cat'"), ("odd", "weather = 'sunny'")):
        entry = tmp_path / "3f" / name
        entry.mkdir(parents=True)
        image_table([world.names[0]], 0, origin=world.origin).write(entry / "images.parquet")
        np.save(entry / "vectors.npy", world.vectors[:1])
        (entry / "question.json").write_text(json.dumps({"where": where}))
    inputs = {"index": DatumInput("index", world.segments[0], "0", "")}
    inputs["queries"] = DatumInput("queries", tmp_path / "3f", "queries/3f", "")
    search.start({"CUDA_VISIBLE_DEVICES": "", "K": "5"})(Datum(inputs, tmp_path / "out"))
    counts = [len(NeighbourTable.read(tmp_path / "out" / name / "0.parquet")) for name in ("bad", "good", "odd")]
    assert counts == [0, 5, 0]
    said = capsys.readouterr().out
    assert "entry bad finds nothing in 0: label is a text and 5 is a number: they cannot be compared" in said
    assert "no picture of 0 has weather" in said


def test_facets_for_notebooks(world: World) -> None:
    with lookalike.Library.open(f"http://127.0.0.1:{world.service.port}") as library:
        found = library.facets("camera", "rating", where="label = 'cat'")
        assert {each.column for each in found} == {"camera", "rating"}
        expected = {
            name: sum(any(f.label == "cat" and f.source.camera == name for f in of) for of in world.files)
            for name in _CAMERAS[1:]
        }
        assert {each.value: each.pictures for each in found if each.column == "camera"} == expected
        assert found.to_arrow().column_names == ["column", "value", "end", "pictures"]
        assert "Canon G7" in repr(found) and "<table" in found._repr_html_()
        with pytest.raises(lookalike.LookalikeError, match="there is no column camra: is it camera?"):
            library.search(world.names[0], where="camra = 'x'")
