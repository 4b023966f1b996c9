"""Runs of the fuzzer: one input again, and changes by a seed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.mutations import mutations


@pytest.mark.parametrize(("target", "code"), [("names", 0), ("nothing", 2)])
def test_one_input_can_be_run_again(tmp_path: Path, target: str, code: int) -> None:
    (tmp_path / "input").write_bytes(b"a/b.jpg")
    command = [sys.executable, "-m", "tests.fuzz", target, "--input", str(tmp_path / "input")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == code


def test_the_same_seed_makes_the_same_changes() -> None:
    seeds, words = [b"abcdef", b""], [b"word"]
    made = list(mutations(seeds, words, 200, seed=3))
    assert made == list(mutations(seeds, words, 200, seed=3)) != list(mutations(seeds, words, 200, seed=4))
    assert len(set(made)) > 100
