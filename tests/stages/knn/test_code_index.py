"""Codes of a library: their bytes, their recall, and the searches of the stage and the service by them."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stages import index, search
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files import thumbnail_files
from stages.files.tables.index_table import TABLE, IndexTable
from stages.files.tables.neighbour_table import NeighbourTable
from stages.knn import code_index
from stages.knn.code_index import CodeFacts
from stages.knn.search_settings import SearchSettings
from stages.knn.searcher_factory import open_searcher
from stages.knn.top_k import NONE
from stages.knn.vector_set import VectorSet
from stages.serving.search.search_engine import SearchEngine
from tests.stages.file_trees import tree
from tests.stages.image_tables import image_table
from tests.stages.serving.segments import open_library

COUNT, DIMENSION = 5_000, 24
CPU = {"CUDA_VISIBLE_DEVICES": ""}
ALGORITHMS = ("ivfflat", "ivfpq")


@pytest.fixture(scope="module")
def vectors() -> NDArray[np.float32]:
    """Vectors around forty centres, as those of pictures of some kinds are."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(40, DIMENSION)).astype(np.float32)
    spread = 0.5 * random.standard_normal((COUNT, DIMENSION), np.float32)
    found: NDArray[np.float32] = centres[random.integers(40, size=COUNT)] + spread
    return found


def written(library: VectorSet, algorithm: str, path: Path) -> CodeFacts:
    exact = open_searcher(library, SearchSettings(metric=library.metric), CPU)
    found = code_index.write(library, algorithm, exact, path)
    assert found is not None
    return found


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_most_neighbours_are_found_and_their_distances_are_true(
    algorithm: str, metric: str, vectors: NDArray[np.float32], tmp_path: Path
) -> None:
    library = VectorSet(vectors, metric)
    coded = written(library, algorithm, tmp_path / "codes.bin")
    assert (coded.algorithm, coded.metric, coded.lists, coded.probes) == (algorithm, metric, 96, 12)
    assert coded.recall > 0.9
    held = code_index.open_codes(tmp_path / "codes.bin", COUNT, DIMENSION)
    (tmp_path / "codes.bin").unlink()
    queries, nobody = library.part(np.arange(0, COUNT, 50)), np.full(100, NONE, np.int64)
    found = held.nearest(library, queries, 10, nobody)
    true = open_searcher(library, SearchSettings(metric=metric), CPU).search(queries, 10, nobody)
    same = found.rows[:, :, None] == true.rows[:, None, :]
    assert same.any(axis=2).mean() > 0.9
    query, column, other = np.nonzero(same)
    assert np.array_equal(found.distances[query, column], true.distances[query, other])


def test_all_lists_and_all_candidates_are_the_exact_answer(vectors: NDArray[np.float32], tmp_path: Path) -> None:
    library = VectorSet(vectors)
    written(library, "ivfflat", tmp_path / "codes.bin")
    held = code_index.open_codes(tmp_path / "codes.bin", COUNT, DIMENSION)
    held._index.nprobe = 96
    queries, nobody = library.part(np.arange(20)), np.full(20, NONE, np.int64)
    found = held.nearest(library, queries, 40, nobody)
    true = open_searcher(library, SearchSettings(), CPU).search(queries, 40, nobody)
    assert np.array_equal(found.rows[:, :10], true.rows[:, :10])
    assert np.array_equal(found.distances[:, :10], true.distances[:, :10])


def test_the_bytes_do_not_depend_on_the_number_of_threads(vectors: NDArray[np.float32], tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", vectors)
    program = (
        "import sys, numpy as np, pathlib\n"
        "from stages.knn import code_index; from stages.knn.vector_set import VectorSet\n"
        "from stages.knn.searcher_factory import open_searcher; from stages.knn.search_settings import SearchSettings\n"
        "library = VectorSet(np.load(sys.argv[1]))\n"
        "searcher = open_searcher(library, SearchSettings(), {})\n"
        "for each in sys.argv[3:]:\n"
        "    code_index.write(library, each, searcher, pathlib.Path(sys.argv[2]) / each)\n"
    )
    for threads in ("1", "2"):
        (tmp_path / threads).mkdir()
        command = [sys.executable, "-c", program, str(tmp_path / "vectors.npy"), str(tmp_path / threads), *ALGORITHMS]
        subprocess.run(command, check=True, env={**os.environ, **CPU, "OMP_NUM_THREADS": threads})
    codes = tree(tmp_path / "1")
    assert len(codes) == len(ALGORITHMS)
    assert tree(tmp_path / "2") == codes


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_more_picture_leaves_the_codebook_and_all_other_codes_as_they_were(algorithm: str, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    vectors = random.normal(size=(code_index.SAMPLE + 60, 4)).astype(np.float32)  # training is slow
    written(VectorSet(vectors), algorithm, tmp_path / "more")
    written(VectorSet(np.delete(vectors, code_index.SAMPLE + 7, axis=0)), algorithm, tmp_path / "before")
    written(VectorSet(np.delete(vectors, 7, axis=0)), algorithm, tmp_path / "another sample")
    faiss = importlib.import_module("stages.knn.faiss_backend").faiss
    more, before, other = (faiss.read_index(str(tmp_path / each)) for each in ("more", "before", "another sample"))

    def centres(index: Any) -> NDArray[np.float32]:
        found: NDArray[np.float32] = index.quantizer.reconstruct_n(0, code_index.LISTS)
        return found

    assert np.array_equal(centres(more), centres(before))
    assert not np.array_equal(centres(more), centres(other))
    kept = [row for row in range(len(vectors)) if row != code_index.SAMPLE + 7]
    for each in (more, before):
        each.make_direct_map()
    assert np.array_equal(more.reconstruct_batch(kept), before.reconstruct_n(0, len(kept)))


def test_codes_are_the_same_whether_pictures_came_at_once_or_later(
    vectors: NDArray[np.float32], tmp_path: Path
) -> None:
    at_once = segment(tmp_path / "whole", vectors, {"ALGORITHM": "ivfpq"})
    in_parts = segment(tmp_path / "parts", vectors, {"ALGORITHM": "ivfpq"}, parts=3)
    files = ["codes.bin", "hashes.npy", "index.json"]  # the table names the parts
    others = ["coarse", "images.parquet", "thumbnails", "vectors"]
    assert sorted(each.name for each in at_once.iterdir()) == sorted([*files, *others])
    for file in files:
        assert (at_once / file).read_bytes() == (in_parts / file).read_bytes(), file
    assert tree(at_once / "coarse") == tree(in_parts / "coarse")


def test_a_small_library_has_no_codes(tmp_path: Path) -> None:
    library = VectorSet(np.eye(40, dtype=np.float32))
    assert (
        code_index.write(library, "ivfpq", open_searcher(library, SearchSettings(), CPU), tmp_path / "codes.bin")
        is None
    )
    assert not (tmp_path / "codes.bin").exists()


def test_codes_that_are_damaged_or_of_others(vectors: NDArray[np.float32], tmp_path: Path) -> None:
    path = tmp_path / "codes.bin"
    written(VectorSet(vectors), "ivfflat", path)
    with pytest.raises(StageError, match=r"has codes of 5000 vectors of 24 dimensions, not of 5000 of 25"):
        code_index.open_codes(path, COUNT, DIMENSION + 1)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"no codes" * 1000):
        path.write_bytes(content)
        with pytest.raises(StageError, match=r"codes\.bin is not a file of codes: reprocess the index"):
            code_index.open_codes(path, COUNT, DIMENSION)


def test_facts_of_another_version_are_none() -> None:
    coded = CodeFacts("ivfpq", "cosine", 71, 8, 4544, 0.97)
    assert code_index.from_data(coded.as_data()) == coded
    assert code_index.from_data(None) is None
    assert code_index.from_data({"algorithm": "ivfpq", "cells": 3}) is None


def segment(root: Path, vectors: NDArray[np.float32], environment: Mapping[str, str], parts: int = 1) -> Path:
    """The segment a of an index, as the stage writes it from so many parts, over which the pictures are spread."""
    for directory in ("a", "vectors"):
        (root / directory).mkdir(parents=True)
    for part in range(parts):
        rows = range(part, len(vectors), parts)
        ids = [f"a{row:063x}" for row in rows]
        image_table(ids, vectors.shape[1], None, [b"jpeg"] * len(ids)).write(root / "a" / f"part{part}.parquet")
        np.save(root / "vectors" / f"part{part}.npy", vectors[rows])
        thumbnail_files.write(root / "thumbnails" / f"part{part}.thumbnails", [b"jpeg"] * len(ids))
    inputs = [
        DatumInput("features", root / "a", "library/a", ""),
        *(DatumInput(kind, root / kind, f"{kind}/a", "") for kind in ("vectors", "thumbnails")),
    ]
    index.start(CPU | dict(environment))(Datum({each.name: each for each in inputs}, root / "index"))
    return root / "index" / "a"


@pytest.fixture(scope="module")
def with_codes(vectors: NDArray[np.float32], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A segment of the vectors with codes, which no test may change."""
    return segment(tmp_path_factory.mktemp("coded"), vectors, {"ALGORITHM": "ivfflat"})


def asked(root: Path, vectors: NDArray[np.float32]) -> Path:
    """A bucket with an entry of queries that are near the library's pictures."""
    ids = [f"b{row:063x}" for row in range(len(vectors))]
    entry = root / "queries" / "3f" / "e"
    entry.mkdir(parents=True)
    image_table(ids, DIMENSION).write(entry / "images.parquet")
    np.save(entry / "vectors.npy", vectors)
    return entry.parent


def test_the_stages_write_codes_on_request_and_search_by_them(
    with_codes: Path, vectors: NDArray[np.float32], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = {"ALGORITHM": "ivfflat", "K": "5"}
    coded = copytree(with_codes, tmp_path / "index" / "a")
    assert (coded / "codes.bin").exists()
    assert not (segment(tmp_path / "exact", vectors, {}) / "codes.bin").exists()
    bucket = asked(tmp_path, vectors[:50] + np.float32(0.01))
    inputs = {"index": DatumInput("index", coded, "a", ""), "queries": DatumInput("queries", bucket, "queries/3f", "")}
    capsys.readouterr()
    search.start(CPU | chosen)(Datum(inputs, tmp_path / "out"))
    stated = json.loads((coded / "index.json").read_text())["codes"]["recall"]
    assert stated > 0.9
    said = f"codes ivfflat: approximate, as asked; recall@10 {stated:.4f}, measured by index on 200 pictures of the"
    assert said in capsys.readouterr().out
    found = NeighbourTable.read(tmp_path / "out" / "e" / "a.parquet")
    search.start(CPU | {"K": "5"})(Datum(inputs, tmp_path / "exact"))
    exact = NeighbourTable.read(tmp_path / "exact" / "e" / "a.parquet")
    assert np.mean([mine == true for mine, true in zip(found.ids, exact.ids, strict=True)]) > 0.9
    search.start(CPU | {"ALGORITHM": "ivfpq", "K": "5"})(Datum(inputs, tmp_path / "other"))
    assert "a has no codes ivfpq of the euclidean distance: searching exactly" in capsys.readouterr().out
    assert NeighbourTable.read(tmp_path / "other" / "e" / "a.parquet").ids == exact.ids
    (coded / "codes.bin").write_bytes(b"damaged")
    with pytest.raises(StageError, match=r"codes\.bin is not a file of codes"):
        search.start(CPU | chosen)(Datum(inputs, tmp_path / "damaged"))


def test_a_search_by_codes_reads_no_vectors_but_those_of_the_candidates(
    with_codes: Path, vectors: NDArray[np.float32], tmp_path: Path
) -> None:
    """The others may be anything, as these are."""
    chosen = {"ALGORITHM": "ivfflat", "K": "3"}
    coded = copytree(with_codes, tmp_path / "index" / "a")
    inputs = {
        "index": DatumInput("index", coded, "a", ""),
        "queries": DatumInput("queries", asked(tmp_path, vectors[:1]), "queries/e", ""),
    }
    search.start(CPU | chosen)(Datum(inputs, tmp_path / "whole"))
    nearest = np.argsort(((vectors - vectors[0]) ** 2).sum(axis=1))
    places = IndexTable.read(coded / TABLE).vectors.of(nearest[1000:].tolist())
    for number, row in zip(places.numbers, places.rows, strict=True):
        there = np.load(coded / "vectors" / f"{places.files[number]}.npy", mmap_mode="r+")
        there[row] = np.nan
        there.flush()
    search.start(CPU | chosen)(Datum(inputs, tmp_path / "without"))
    one, other = (tmp_path / each / "e" / "a.parquet" for each in ("whole", "without"))
    assert one.read_bytes() == other.read_bytes()
    with pytest.raises(StageError, match="NaN or infinite"):
        search.start(CPU | {"K": "3"})(Datum(inputs, tmp_path / "exact"))


def test_the_service_answers_by_codes_only_when_asked(with_codes: Path, vectors: NDArray[np.float32]) -> None:
    library = open_library([with_codes])
    point, known = vectors[7:8], [7]
    searching = SearchEngine(library, SearchSettings(), CPU)
    assert searching.prepared(60)
    true = searching.search(point, 9, known=known)
    assert (true.exact, true.recall) == (True, None)
    coded = searching.search(point, 9, known=known, exact=False)
    assert not coded.exact
    assert coded.recall is not None
    assert coded.recall > 0.9
    assert (coded.topk.rows[0, 0], coded.topk.distances[0, 0]) == (7, 0)
    common = np.isin(coded.topk.rows[0], true.topk.rows[0])
    assert common.mean() > 0.8
    assert searching.search(point, 9).exact
    within = np.zeros(COUNT, np.bool_)
    within[:20] = True
    assert searching.search(point, 9, within=within, exact=False).exact
    assert searching.combined(vectors[:2], 9, how="all").exact
    with pytest.raises(StageError, match="no codes for approximate answers by the cosine distance"):
        searching.search(point, 9, metric="cosine", exact=False)
    searching.close()


@pytest.mark.parametrize(("dimension", "parts"), [(1, 1), (7, 7), (96, 48), (97, 1), (1280, 64), (2048, 64)])
def test_parts_of_a_vector(dimension: int, parts: int) -> None:
    assert code_index.parts_of_vector(dimension) == parts
