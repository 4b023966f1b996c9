"""The stage map on plain directories: places from vectors and the layout alone, and layouts that do not fit."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from stages import layout, map as map_stage
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files.layout_files import ARRAYS, FACTS, Layout, projected, read_layout
from stages.files.tables.map_table import MapTable
from stages.record.origin import ALL, Origin
from tests.pipes import Pipes
from tests.stages.serving.segments import MODEL, ids, write_segment

DIMENSION = 24
ORIGIN = Origin(MODEL, "pad", 96, DIMENSION, "small", ("cpu",))


def groups(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Vectors around four points."""
    chance = np.random.default_rng(seed)
    centres = 4 * np.random.default_rng(99).normal(size=(4, DIMENSION))
    return np.asarray(centres[np.arange(count) % 4] + 0.3 * chance.normal(size=(count, DIMENSION)), np.float32)


@pytest.fixture(scope="module")
def fitted() -> Layout:
    """A layout by two principal components, without the minutes that numba takes to compile UMAP on a busy machine."""
    vectors = groups(120).astype(np.float64)
    mean = vectors.mean(axis=0)
    components = np.linalg.svd(vectors - mean)[2]
    fields, points = projected(ORIGIN, "euclidean", groups(120), mean, components[:12])
    positions = (points[:, :2] / np.abs(points[:, :2]).max()).astype(np.float32)
    clusters = (np.arange(120) % 4).astype(np.int32)
    known = {"points": points.astype(np.int32), "positions": positions, "clusters": clusters}
    return Layout(ORIGIN, "euclidean", np.array(ids("0", 120), "S64"), **known, **fields, facts={"seed": 3})


@pytest.fixture
def root(tmp_path: Path, fitted: Layout) -> Path:
    """The repo layouts, and the index of a segment: the sample's pictures and as many others."""
    (tmp_path / "layouts").mkdir()
    fitted.write(tmp_path / "layouts")
    write_segment(tmp_path / "index" / "0", ids("0", 240), np.concatenate([groups(120), groups(120, 1)]))
    return tmp_path


def run(root: Path, out: Path, index: str = "index", layouts: str = "layouts") -> MapTable:
    out.mkdir(exist_ok=True)
    inputs = [DatumInput("index", root / index / "0", "0", ""), DatumInput("layouts", root / layouts, "", "")]
    map_stage.start({})(Datum({each.name: each for each in inputs}, out))
    return MapTable.read(out / "0.parquet")


def test_pictures_lie_with_their_like_and_those_of_the_sample_where_the_layout_has_them(
    root: Path, fitted: Layout, tmp_path: Path
) -> None:
    found = run(root, tmp_path / "out")
    places = np.column_stack([found.x, found.y])
    assert np.array_equal(places[:120], fitted.positions) and list(found.clusters[:120]) == fitted.clusters.tolist()
    centres = np.stack([places[:120][group::4].mean(axis=0) for group in range(4)])
    nearest = np.linalg.norm(places[120:, None] - centres, axis=2).argmin(axis=1)
    assert np.array_equal(nearest, np.arange(120) % 4)
    assert list(found.clusters[120:]) == (np.arange(120) % 4).tolist()
    assert np.abs(places).max() <= 1


def test_one_more_picture_moves_no_other_and_a_rebuild_gives_equal_bytes(root: Path, tmp_path: Path) -> None:
    """Whatever other rows the matrix products have, and however many threads compute them."""
    vectors = np.concatenate([groups(120), groups(120, 1)])
    before = run(root, tmp_path / "out")
    for count in (1, 2, 3, 7, 63, 64, 65, 239):
        write_segment(root / f"some{count}" / "0", ids("0", count), vectors[:count])
        some = run(root, tmp_path / f"out{count}", f"some{count}")
        assert np.array_equal(some.x, before.x[:count]) and np.array_equal(some.y, before.y[:count])
    run(root, tmp_path / "again")
    assert (tmp_path / "again" / "0.parquet").read_bytes() == (tmp_path / "out" / "0.parquet").read_bytes()


def test_the_same_place_in_any_order_of_the_sum(fitted: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """All products are whole numbers below 2**53: a sum of them the other way round has the same bits."""
    vectors = 3 * groups(50, 5)
    expected = map_stage.place(fitted, vectors)
    reverse = Layout(
        **{name: getattr(fitted, name) for name in ("origin", "metric", "ids", "center", "positions", "clusters")},
        components=fitted.components[:, ::-1],
        points=fitted.points,
        scale=fitted.scale,
        shift=fitted.shift,
    )
    found = map_stage.place(reverse, np.ascontiguousarray(vectors[:, ::-1]))
    assert np.array_equal(expected[0], found[0]) and np.array_equal(expected[1], found[1])
    monkeypatch.setattr(map_stage, "_BLOCK", 1)
    assert np.array_equal(map_stage.place(fitted, vectors)[0], expected[0])


def test_lazy_inputs_are_read_once(root: Path, tmp_path: Path) -> None:
    expected = run(root, tmp_path / "out")
    pipes = [Pipes(root / each, root / "lazy" / each) for each in ("index/0", "layouts")]
    assert run(root / "lazy", tmp_path / "again") == expected
    assert all(len(each.opened) == len({*each.opened}) for each in pipes)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"model": "0" * 64}, "the layout was computed with the model small 5eed"),
        ({"metric": "cosine"}, "of euclidean distances"),
    ],
)
def test_a_layout_of_another_model_is_named_and_places_nothing(
    root: Path, tmp_path: Path, facts: dict[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_segment(root / "other" / "0", ids("0", 9), groups(9), facts=facts)
    found = run(root, tmp_path / "out", "other")
    assert len(found) == 0 and said in found.stale and "lookalike map fit" in found.stale
    assert "map: 0: the layout" in capsys.readouterr().out


def test_what_is_not_a_layout(root: Path, tmp_path: Path) -> None:
    (root / "none").mkdir()
    with pytest.raises(StageError, match=r"holds no layout: fit a layout: lookalike map fit"):
        run(root, tmp_path / "out", layouts="none")
    content = (root / "layouts" / ARRAYS).read_bytes()
    for broken in (content[:-200], b"", content.replace(b"positions", b"positionz")):
        (root / "layouts" / ARRAYS).write_bytes(broken)
        with pytest.raises(StageError, match=r"does not hold a layout of this version"):
            run(root, tmp_path / "out")
    (root / "layouts" / FACTS).write_text('{"version": 99}')
    with pytest.raises(StageError, match=r"version 99"):
        read_layout(root / "layouts")


def test_vectors_with_nan_and_too_few_pictures(root: Path, tmp_path: Path) -> None:
    vectors = groups(60)
    vectors[7, 3] = np.nan
    write_segment(root / "nan" / "0", ids("0", 60), vectors)
    with pytest.raises(StageError, match=f"picture {ids('0', 60)[7]} has numbers that are NaN"):
        run(root, tmp_path / "out", "nan")
    names = np.array(ids("0", 60), "S64")
    with pytest.raises(StageError, match="NaN"):
        layout.fit(names, vectors, ORIGIN, "euclidean", 0, {})
    with pytest.raises(StageError, match="at least 50 pictures, and the library has 49: add more"):
        layout.fit(names[:49], groups(49), ORIGIN, "euclidean", 0, {})
    with pytest.raises(StageError, match="same vector"):
        layout.fit(names, np.ones((60, DIMENSION), np.float32), ORIGIN, "euclidean", 0, {})


def test_a_layout_is_read_as_it_was_written(root: Path, fitted: Layout) -> None:
    found = read_layout(root / "layouts")
    assert found is not None and np.array_equal(found.points, fitted.points) and found.origin == ORIGIN
    assert found.facts["seed"] == 3 and {*ALL} <= found.facts["origin"].keys()


@pytest.mark.only_in_all
@pytest.mark.timeout(900)
def test_umap_lays_kinds_apart_and_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    names = np.array(ids("0", 120), "S64")
    for number, seed in enumerate((3, 3, 4)):
        (tmp_path / str(number)).mkdir()
        layout.fit(names, groups(120), ORIGIN, "euclidean", seed, {"library": 120}).write(tmp_path / str(number))
    content = [(tmp_path / str(number) / ARRAYS).read_bytes() for number in range(3)]
    assert content[0] == content[1] != content[2]
    found = read_layout(tmp_path / "0")
    assert found is not None and {*found.facts["versions"]} >= {"umap-learn", "numba"}
    assert found.facts["sample"] == 120 and len(found.facts["clusters"]) == 4
    for group in range(4):
        assert len({*found.clusters[group::4].tolist()}) == 1
    places, _ = map_stage.place(found, groups(120))
    assert np.array_equal(places, found.positions)
