"""The benchmark of the stages at tiny sizes: its measurements and its comparisons are right."""

import json
import re
from pathlib import Path

import keras
import numpy as np
import pytest

from benchmarks import stages
from benchmarks.kit.contenders import Contender, race
from benchmarks.races import coldstart, features, searching
from benchmarks.races.agreement import agreement
from benchmarks.races.backbones import Backbone
from stages.backbone.backbone_spec import WeightsOrigin
from stages.backbone.backbones import describe, save_backbone
from stages.decode.stl10 import SIDE


@pytest.mark.soak
def test_preprocessing_is_measured_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stages.main(["preprocess", "--rounds", "1", f"--json={tmp_path}/r.json"]) == 0
    rows = json.loads((tmp_path / "r.json").read_text())["rows"]
    assert [row["name"] for row in rows] == [
        "96 px JPEG, blocks",
        "STL-10, one file",
        "STL-10, blocks",
        "12-megapixel JPEG",
        "12-megapixel JPEG to 224 px",
        "640 × 480 JPEG to 224 px, blocks",
    ]
    assert all(row["rate"] > 0 for row in rows)
    assert "pictures/s/core" in capsys.readouterr().out


@pytest.mark.soak
def test_the_cold_start_is_measured_beside_the_import_of_tensorflow() -> None:
    result = coldstart.measure(1)
    ours, bound = result.rows
    assert (ours.section, ours.name, bound.name) == ("cold", "ours", "bound")
    assert ours.seconds and bound.seconds
    assert 0.2 < ours.seconds < bound.seconds + coldstart.MORE
    assert result.lines[0].met == "yes"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Backbone:
    """A network for STL-10's pictures that takes hardly any time."""
    pixels = keras.Input((SIDE, SIDE, 3), dtype="uint8")
    edges = keras.layers.Conv2D(12, 5, strides=4, activation="relu")(keras.layers.Rescaling(1 / 255)(pixels))
    model = keras.Model(pixels, keras.layers.GlobalMaxPooling2D()(edges))
    directory = tmp_path_factory.mktemp("model")
    save_backbone(model, describe(model, "tiny", "max", WeightsOrigin("random", "")), directory)
    return Backbone(str(directory))


@pytest.mark.soak
def test_features_are_measured_as_the_stage_and_bare(tiny: Backbone) -> None:
    result = features.measure(500, 1, tiny, larger=())
    rows = {row.name: row for row in result.rows}
    assert rows.keys() == {"ours", "embedder", "keras", "abreast 32", "bare 32", "ceiling"}
    assert {row.section for row in result.rows} == {"features"}
    assert all(row.rate and row.peak_mib and row.peak_mib > 100 for row in result.rows)
    assert rows["ceiling"].rate == max(rows[name].rate or 0 for name in ("abreast 32", "bare 32"))
    lines = {line.what.rpartition(", ")[2]: line for line in result.lines}
    assert lines["each pass of 32"].goal == "1.1 × the bare pass"
    padding = re.match(r"([\d,]+) pictures are computed for (\d+) in 2 parts, (.+)% more", lines["its padding"].ours)
    assert padding is not None
    computed, pictures = (int(padding[each]) for each in (1, 2))
    assert computed % 32 == 0
    assert 480 < pictures < 500, "copies are one picture"
    assert padding[3] == f"{100 * (computed / pictures - 1):.1f}"
    assert re.match(r".+ s: Python .+, the libraries, the model", result.lines[-1].ours)


@pytest.mark.soak
def test_contenders_answer_and_agree(tmp_path: Path) -> None:
    searching._write_vectors(tmp_path, 300, 40)
    names = ["ours", "faiss", "sklearn"]
    kernels = {"numpy:Haswell": {"OPENBLAS_CORETYPE": "Haswell"}}
    taken = race("benchmarks.races.searchers", tmp_path, [*names, *kernels], 1, kernels)
    assert all(min(each.opening, each.first, each.seconds, each.processor) > 0 for each in taken.values())
    assert all(20 < each.peak_mib < 1000 for each in taken.values())
    agreed = agreement(tmp_path, names)
    assert {line.met for line in agreed.lines} == {"yes"}
    assert [row.rate for row in agreed.rows if row.section.startswith("agreement")] == [1.0] * 3
    library, queries = (np.load(tmp_path / f"{name}.npy").astype(float) for name in ("library", "queries"))
    true = np.sqrt(((queries[:, None] - library) ** 2).sum(axis=2))
    found = np.load(tmp_path / "ours.npz")
    np.testing.assert_allclose(found["distances"], np.sort(true)[:, :3], rtol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(true, found["rows"], axis=1), found["distances"], rtol=1e-6)


def test_ties_agree_and_different_neighbours_do_not(tmp_path: Path) -> None:
    np.save(tmp_path / "library.npy", np.array([[0, 0], [0, 0], [3, 4]], np.float32))
    np.save(tmp_path / "queries.npy", np.array([[0, 0], [0, 1]], np.float32))
    rows = {"one": [[0], [0]], "tied": [[1], [0]], "wrong": [[0], [2]]}
    distances = {"one": [[0], [1]], "tied": [[0.5], [1]], "wrong": [[0], [4.2]]}
    for name in rows:
        np.savez(tmp_path / f"{name}.npz", rows=np.array(rows[name]), distances=np.array(distances[name], np.float32))
    agreed = agreement(tmp_path, list(rows))
    shares = {row.name: row.rate for row in agreed.rows if row.section.startswith("agreement")}
    assert shares == {"one and tied": 1.0, "one and wrong": 0.5, "tied and wrong": 0.5}
    apart = {row.name: row.rate for row in agreed.rows if row.section.startswith("distances apart")}
    assert apart == pytest.approx({"one and tied": 0.5, "one and wrong": 3.2, "tied and wrong": 3.2})
    assert [line.met for line in agreed.lines] == ["yes", "no", "no"]


def test_a_contender_that_cannot_run_gives_the_reason(tmp_path: Path) -> None:
    searching._write_vectors(tmp_path, 30, 4)
    with pytest.raises(RuntimeError, match="annoy does not run here: KeyError: 'annoy'"):
        Contender("benchmarks.races.searchers", "annoy", tmp_path).__enter__()


def test_cuml_takes_part_or_is_reported_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    names, lines = searching._searchers(sklearn=True)
    assert names == ["ours", "faiss", "sklearn"]
    assert [line.ours for line in lines] == ["not measured: no NVIDIA GPU"]


@pytest.mark.gpu
@pytest.mark.skipif(bool(searching._without_cuml()), reason=searching._without_cuml() or "cuML is here")
def test_cuml_agrees(tmp_path: Path) -> None:
    searching._write_vectors(tmp_path, 3000, 200)
    race("benchmarks.races.searchers", tmp_path, ["ours", "cuml"], 1)
    assert {line.met for line in agreement(tmp_path, ["ours", "cuml"]).lines} == {"yes"}


@pytest.mark.parametrize(
    ("flags", "kernels"),
    [
        ("fpu avx2 fma avx512f avx512bw avx512dq avx512vl", ["Haswell", "SkylakeX"]),
        ("fpu avx2 fma sse4a", ["Haswell", "Zen"]),
        ("fpu", []),
    ],
)
def test_only_kernels_for_this_processor_are_tried(flags: str, kernels: list[str], tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor: 0\nflags\t\t: {flags}\nbugs: many\n")
    assert searching._kernels(tmp_path / "cpuinfo") == kernels


def test_wrong_arguments_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["nothing"], ["--pictures", "10"], ["--rounds", "0"]):
        with pytest.raises(SystemExit):
            stages.main(wrong)
    assert "10 is not a number from 1,000" in capsys.readouterr().err
