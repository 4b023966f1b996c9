"""Nothing but pictures and rejections comes of hostile files, and the datum goes on."""

import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from stages.files.packs import read_pack, read_rejections
from tests.example_counts import examples
from tests.stages import hostile_files

FEW = 2
"""Damaged variants of each kind, of every format, in `make test`."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, hostile_files.HostileFile]]:
    directory = tmp_path_factory.mktemp("hostile")
    return directory, hostile_files.write(hostile_files.corpus(17, examples(FEW)), directory)


MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""Runs a command, and prints the most memory (KiB) of one of its processes."""


@dataclass(frozen=True)
class Ran:
    """The output of preprocess, and the most memory that one of its processes took, in KiB."""

    out: Path
    peak: int


@pytest.fixture(scope="module")
def ran(files: tuple[Path, dict[str, hostile_files.HostileFile]], tmp_path_factory: pytest.TempPathFactory) -> Ran:
    out = tmp_path_factory.mktemp("out")
    stage = [sys.executable, "-m", "stages.preprocess", "--input", f"images={files[0]}::", "--out", str(out)]
    environment = {**os.environ, "IMAGE_SIZE": "32"}
    command = [sys.executable, "-c", MEASURE, *stage]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return Ran(out, int(done.stdout.split()[-1]))


@pytest.fixture(scope="module")
def outcome(ran: Ran) -> tuple[dict[str, int], dict[str, list[str]]]:
    """The number of pictures, and the reasons of rejections, of each file."""
    out = ran.out
    pictures: dict[str, int] = defaultdict(int)
    reasons: dict[str, list[str]] = defaultdict(list)
    for pack in (out / "library").glob("*/*.pack"):
        for picture, _ in read_pack(pack).framed():
            for source in picture.sources:
                pictures[source.path.partition("/")[0]] += 1
    for table in (out / "rejected").rglob("*.jsonl"):
        for each in read_rejections(table):
            reasons[each.source.partition("/")[0]].append(each.reason)
    return pictures, reasons


def test_every_file_is_a_picture_or_has_a_reason(
    files: tuple[Path, dict[str, hostile_files.HostileFile]], outcome: tuple[dict[str, int], dict[str, list[str]]]
) -> None:
    pictures, reasons = outcome
    assert files[1].keys() == pictures.keys() | reasons.keys()


def test_good_files_are_read_and_bad_ones_refused(
    files: tuple[Path, dict[str, hostile_files.HostileFile]], outcome: tuple[dict[str, int], dict[str, list[str]]]
) -> None:
    pictures, reasons = outcome
    for name, each in files[1].items():
        if each.pictures is not None:
            assert bool(pictures.get(name)) == each.pictures, (name, reasons.get(name))


def test_reasons_are_sentences_for_people(outcome: tuple[dict[str, int], dict[str, list[str]]]) -> None:
    for name, several in outcome[1].items():
        for reason in several:
            assert 8 < len(reason) < 300, name
            assert "Error" not in reason and "Traceback" not in reason, (name, reason)


def test_hostile_files_take_no_more_memory_than_a_datum_may(ran: Ran) -> None:
    assert ran.peak < 1.5 * 2**20
